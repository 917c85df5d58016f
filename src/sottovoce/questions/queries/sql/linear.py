"""Sums over selections: some at once, with their covariances, from all groups of reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import Joint, Term
from sottovoce.questions.queries.sql.expressions import Weight
from sottovoce.questions.queries.sql.fits import Fits, GroupWeight, JointBatch, Request
from sottovoce.questions.queries.sql.rows import RowGroup


@dataclass(frozen=True, eq=False)
class LinearPiece:
    """A number times the sum of a weight over a selection, within a group of reports.

    ``quantity``: to which of the wanted sums it belongs.
    """

    quantity: int
    group: RowGroup
    number: float
    weight: Weight | None
    term: Term


@dataclass(frozen=True, eq=False)
class Linear:
    """Estimated sums. ``is_exact``: whether all of them are known without a whisper.

    ``unbiased``: what intervals rest on, where the tables have unbiased answers too.
    """

    values: Floats  # (quantities,)
    covariance: Floats  # (quantities, quantities)
    draws: Floats | None  # (draws, quantities)
    is_exact: bool
    unbiased: Linear | None = None

    @property
    def sure(self) -> Linear:
        """The sums whose covariance says where the truth may be, whatever people hold."""
        return self if self.unbiased is None else self.unbiased


@dataclass(eq=False)
class _Part:
    """What one fitted table adds to the sums: coefficients of its answers."""

    weight: GroupWeight
    coefficients: Floats  # (quantities, terms)
    request: Request


class LinearSums:
    """Some sums that wait for the answers of fitted tables."""

    def __init__(
        self, quantities: int, pieces: Iterable[LinearPiece], fits: Fits, batch: JointBatch
    ) -> None:
        self.known = np.zeros(quantities)  # what needs no whisper
        self.groups: list[list[_Part]] = []
        by_group: dict[int, list[LinearPiece]] = {}
        for piece in pieces:
            by_group.setdefault(id(piece.group), []).append(piece)
        for own in by_group.values():
            parts = self._parts(own, fits, batch)
            if parts:
                self.groups.append(parts)

    def _parts(self, pieces: Sequence[LinearPiece], fits: Fits, batch: JointBatch) -> list[_Part]:
        """The fitted tables of one group of reports, each asked for all selections at once."""
        group = pieces[0].group
        places: dict[int, int] = {}
        terms: list[Term] = []
        entries: dict[str | None, list[tuple[int, int, float]]] = {}
        weights: dict[str | None, GroupWeight] = {}
        for piece in pieces:
            for number, weight in fits.weights(group, piece.weight):
                scale = piece.number * number * weight.total
                if not piece.term:  # everybody: the total is public
                    self.known[piece.quantity] += scale
                    continue
                if id(piece.term) not in places:
                    places[id(piece.term)] = len(terms)
                    terms.append(piece.term)
                weights[weight.key] = weight
                entry = (piece.quantity, places[id(piece.term)], scale)
                entries.setdefault(weight.key, []).append(entry)
        found = []
        for key, listed in entries.items():
            coefficients = np.zeros((len(self.known), len(terms)))
            for quantity, place, scale in listed:
                coefficients[quantity, place] += scale
            request = batch.add(group, weights[key], terms)
            found.append(_Part(weights[key], coefficients, request))
        return found

    def result(self) -> Linear:
        """The sums, once the batch has run."""
        values, covariance = self._moments(_answered)
        is_exact = not self.groups
        unbiased = None
        if any(_answered(part).unbiased for parts in self.groups for part in parts):
            unbiased = Linear(*self._moments(_sure), None, is_exact)
        return Linear(values, covariance, self._draws(), is_exact, unbiased)

    def _moments(self, joint: Callable[[_Part], Joint]) -> tuple[Floats, Floats]:
        """Values and covariances, by the joint estimate that is taken of each part."""
        values = self.known.copy()
        covariance = np.zeros((len(values), len(values)))
        for parts in self.groups:
            joints = [joint(part) for part in parts]
            for part, own in zip(parts, joints, strict=True):
                values = values + part.coefficients @ own.values
            covariance = covariance + _covariance(parts, joints)
        return values, covariance

    def _draws(self) -> Floats | None:
        """Draws of the sums, if all tables have some that go together."""
        if not self.groups or any(len(parts) > 1 for parts in self.groups):
            return None
        draws: Floats | None = None
        for (part,) in self.groups:
            drawn = _answered(part).draws
            if drawn is None:
                return None
            own = drawn @ part.coefficients.T  # (draws, quantities)
            draws = own if draws is None else draws + own[: len(draws)]
        return None if draws is None else draws + self.known


def _answered(part: _Part) -> Joint:
    """What a part's table said."""
    assert part.request.joint is not None
    return part.request.joint


def _sure(part: _Part) -> Joint:
    """The unbiased answers of a part's table, or what it has."""
    joint = _answered(part)
    return joint if joint.unbiased is None else joint.unbiased


def _covariance(parts: Sequence[_Part], joints: Sequence[Joint]) -> Floats:
    """That of the sums of one group: within a table as it says, between two by their weights."""
    total = np.zeros((len(parts[0].coefficients),) * 2)
    for first, one in zip(parts, joints, strict=True):
        for second, other in zip(parts, joints, strict=True):
            if first is second:
                middle = one.covariance
            else:
                # corr[S, S'] = cos(w, w') corr[terms]
                alike = first.weight.alike(second.weight)
                correlation = (_correlation(one.covariance) + _correlation(other.covariance)) / 2
                middle = alike * np.outer(one.std_errors, other.std_errors) * correlation
            total += first.coefficients @ middle @ second.coefficients.T
    return (total + total.T) / 2


def _correlation(covariance: Floats) -> Floats:
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.outer(errors, errors)
    safe = np.where(scale > 0, scale, 1.0)
    found = np.where(scale > 0, covariance / safe, 0.0)
    np.fill_diagonal(found, 1.0)
    return found
