"""Which method releases a table: asked for by name, or chosen by public facts alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Any

from sottovoce.accounting import Neighbours
from sottovoce.central.method import (
    CentralTable,
    ReleaseMethod,
    ReleaseTerms,
    RowBatch,
    Settled,
)
from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.method import AUTO

MAY_BE_EMPTY = "may_be_empty"  # an option that methods need not have: to others any cell may be


class PublicFacts(CentralTable):
    """Of a table what everybody may know before the release: a choice can rest on nothing else.

    Values that are not public are left out. How many people there are is public only if neighbours
    have equally many, and else told as 0; so is the number of rows.
    """

    def __init__(self, table: CentralTable, neighbours: Neighbours) -> None:
        self.columns = table.columns
        self.is_known = table.is_known
        self.is_sets = table.is_sets
        self.has_user_column = table.has_user_column
        self.values = tuple(
            values if is_known else ()
            for values, is_known in zip(table.values, table.is_known, strict=True)
        )
        self.people = table.people if neighbours == "replace-one" else 0
        self.rows = 0

    def batches(self) -> Iterator[RowBatch]:
        raise InvalidInput("rows are not public")


@dataclass(frozen=True)
class MethodRank:
    """What is known of a method before anything is drawn."""

    method: str
    predicted: float | None  # squared error of a count
    reason: str | None = None  # why it does not fit
    settled: Settled = field(default_factory=Settled)  # the options it would have

    def to_json(self) -> dict[str, Any]:
        """The rank as plain values."""
        return {"method": self.method, "predicted": self.predicted, "reason": self.reason}


@dataclass(frozen=True)
class ReleaseChoice:
    """A method, why it was taken, and the others beside it."""

    method: ReleaseMethod
    why: str
    ranks: tuple[MethodRank, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)  # that were chosen with it

    def terms(self, asked: ReleaseTerms) -> ReleaseTerms:
        """The terms that the method is to know: without others' options, with those chosen."""
        own = own_terms(self.method, asked)
        return replace(own, options={**own.options, **self.options})

    def to_json(self) -> dict[str, Any]:
        """The choice as plain values."""
        ranks = [rank.to_json() for rank in self.ranks]
        return {
            "method": self.method.name,
            "why": self.why,
            "options": dict(self.options),
            "ranking": ranks,
        }


def choose(
    name: str, methods: Sequence[ReleaseMethod], table: CentralTable, terms: ReleaseTerms
) -> ReleaseChoice:
    """The method of a release.

    Args:
        name: of a method, or ``auto``.
        methods: all there are; where no error can be predicted, ``auto`` takes the first that fits.
        table: of which only :class:`PublicFacts` are looked at.
        terms: what is promised, with the options that the method must know.
    """
    facts = PublicFacts(table, terms.neighbours)
    if name != AUTO:
        method = _named(name, methods)
        own = own_terms(method, terms)
        _check_options(method, own.options)
        reason = method.refuse(facts, own)
        if reason is not None:
            raise InvalidInput(f"method ({name}): {reason}")
        return ReleaseChoice(method, "asked for")
    ranks = tuple(_ranked(method, facts, terms) for method in methods)
    fitting = [rank for rank in ranks if rank.reason is None]
    if not fitting:
        reasons = "; ".join(f"{rank.method}: {rank.reason}" for rank in ranks)
        raise InvalidInput(f"method (auto): none fits ({reasons})")
    best = min(fitting, key=_error)
    why = _why(best, ranks)
    if best.settled.why is not None:
        why = f"{why}; {best.settled.why}"
    return ReleaseChoice(_named(best.method, methods), why, ranks, best.settled.options)


def _named(name: str, methods: Sequence[ReleaseMethod]) -> ReleaseMethod:
    for method in methods:
        if method.name == name:
            return method
    names = ", ".join([AUTO, *(method.name for method in methods)])
    raise InvalidInput(f"method ({name}) must be one of {names}")


def _check_options(method: ReleaseMethod, options: Mapping[str, Any]) -> None:
    for option in options:
        if option not in method.options:
            known = ", ".join(method.options) or "none"
            raise InvalidInput(
                f"option {option!r} is not one that method {method.name} has (it has: {known})"
            )


def own_terms(method: ReleaseMethod, terms: ReleaseTerms) -> ReleaseTerms:
    """The terms without what a method need not know."""
    if MAY_BE_EMPTY in method.options:
        return terms
    options = {name: value for name, value in terms.options.items() if name != MAY_BE_EMPTY}
    return replace(terms, options=options)


def _ranked(method: ReleaseMethod, facts: PublicFacts, terms: ReleaseTerms) -> MethodRank:
    terms = own_terms(method, terms)
    unknown = [option for option in terms.options if option not in method.options]
    if unknown:
        return MethodRank(method.name, None, f"it has no option {unknown[0]!r}")
    try:
        settled = Settled()
        predicted = None
        reason = method.refuse(facts, terms)
        if reason is None:
            settled = method.settle(facts, terms)
            final = replace(terms, options={**terms.options, **settled.options})
            predicted = method.predict(facts, final)
    except InvalidInput as wrong:  # an option, or a delta of 0, that it cannot have
        return MethodRank(method.name, None, str(wrong))
    return MethodRank(method.name, predicted, reason, settled)


def _error(rank: MethodRank) -> float:
    return float("inf") if rank.predicted is None else rank.predicted


def _why(best: MethodRank, ranks: Sequence[MethodRank]) -> str:
    """The choice in words."""
    others = [rank for rank in ranks if rank.method != best.method]
    refused = [f"{rank.method} does not fit: {rank.reason}" for rank in others if rank.reason]
    rivals = [rank for rank in others if rank.reason is None]
    if not rivals:
        told = "the only method that fits" if refused else "the only method"
    elif best.predicted is None or not isfinite(best.predicted):
        told = "the first that fits, where no error can be predicted before values are found"
    else:
        known = [f"{rank.method} {sqrt(_error(rank)):.3g}" for rank in rivals if rank.predicted]
        blind = [f"{rank.method}, not known beforehand" for rank in rivals if not rank.predicted]
        told = (
            f"the least predicted error of a count, {sqrt(best.predicted):.3g}, against "
            f"{', '.join([*known, *blind])}"
        )
    return "; ".join([told, *refused])
