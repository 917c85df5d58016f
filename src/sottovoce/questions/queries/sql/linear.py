"""Sums over selections: some at once, with their covariances, from all groups of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import Term
from sottovoce.questions.queries.sql.expressions import Weight
from sottovoce.questions.queries.sql.fits import Fits, GroupWeight, JointBatch, Request
from sottovoce.questions.queries.sql.rows import RowGroup


@dataclass(frozen=True, eq=False)
class Piece:
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
    """Estimated sums. ``is_exact``: whether all of them are known without a whisper."""

    values: Floats  # (quantities,)
    covariance: Floats  # (quantities, quantities)
    draws: Floats | None  # (draws, quantities)
    is_exact: bool


@dataclass(eq=False)
class _Part:
    """What one fitted table adds to the sums: coefficients of its answers."""

    weight: GroupWeight
    coefficients: Floats  # (quantities, terms)
    request: Request


class LinearSums:
    """Some sums that wait for the answers of fitted tables."""

    def __init__(
        self, quantities: int, pieces: Iterable[Piece], fits: Fits, batch: JointBatch
    ) -> None:
        self.known = np.zeros(quantities)  # what needs no whisper
        self.groups: list[list[_Part]] = []
        by_group: dict[int, list[Piece]] = {}
        for piece in pieces:
            by_group.setdefault(id(piece.group), []).append(piece)
        for own in by_group.values():
            parts = self._parts(own, fits, batch)
            if parts:
                self.groups.append(parts)

    def _parts(self, pieces: Sequence[Piece], fits: Fits, batch: JointBatch) -> list[_Part]:
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
        values = self.known.copy()
        covariance = np.zeros((len(values), len(values)))
        draws: Floats | None = None
        has_draws = all(len(parts) == 1 for parts in self.groups)
        for parts in self.groups:
            for part in parts:
                joint = part.request.joint
                assert joint is not None
                values = values + part.coefficients @ joint.values
                if not has_draws or joint.draws is None:
                    has_draws = False
                    continue
                own = joint.draws @ part.coefficients.T  # (draws, quantities)
                draws = own if draws is None else draws + own[: len(draws)]
            covariance = covariance + _covariance(parts)
        if not has_draws or draws is None:
            return Linear(values, covariance, None, not self.groups)
        return Linear(values, covariance, draws + self.known, False)


def _covariance(parts: Sequence[_Part]) -> Floats:
    """That of the sums of one group: within a table as it says, between two by their weights."""
    total = np.zeros((len(parts[0].coefficients),) * 2)
    for first in parts:
        for second in parts:
            one, other = first.request.joint, second.request.joint
            assert one is not None
            assert other is not None
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
