"""What a release tells: noisy counts of tuples, and all that a reader must know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from sottovoce.central.guarantee import CentralGuarantee
from sottovoce.central.method import CentralTable, Integers, ReleasedCounts, TupleCounts
from sottovoce.central.rebuilt import found_table, rebuilt_estimate
from sottovoce.ground.errors import InvalidInput
from sottovoce.results.estimate import Table
from sottovoce.results.joint import JointEstimate

RELEASE_LEVEL = 0.95  # of the intervals in files


@dataclass(frozen=True)
class ReleasedAttribute:
    """An attribute of a release; of values that were not public, those that were released."""

    name: str
    is_known: bool
    values: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Release:
    """A private release of a table or of sets.

    Counts are numbers of users, unbiased where the notes do not say otherwise. Tuples are in the
    order of their labels, which tells nothing of the data.

    Throughout:
        k: how many values a tuple has.
        level: of the intervals.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(tea=sv.Categorical(["green", "black"]), milk=sv.Boolean())
    >>> people = {"tea": ["green", "black"] * 500, "milk": [True, True, False, True] * 250}
    >>> told = sv.release(people, epsilon=1, delta="1e-6", up_to=2, schema=schema)
    >>> sorted(told.tuples), len(told.rows(1)), told.guarantee.epsilon
    ([1, 2], 4, Decimal('1'))
    """

    attributes: tuple[ReleasedAttribute, ...]  # and the values that they have
    is_sets: bool  # whether sets were released, not a table
    tuples: Mapping[int, TupleCounts]  # by k; codes are places in the attributes' values
    guarantee: CentralGuarantee  # what it promises to each user
    parameters: Mapping[str, Any]  # as they were asked for
    choice: Mapping[str, Any]  # the method, and why
    ledger: Mapping[str, Any]  # what was spent on what
    notes: tuple[str, ...] = ()  # what a reader should know
    versions: Mapping[str, str] = field(default_factory=dict)  # of the libraries that made it
    total: float | None = None  # users, where noise tells of it
    fitted: JointEstimate | None = field(default=None, repr=False)  # as the method gave it

    @cached_property
    def joint(self) -> JointEstimate:
        """Tables of any attributes with all that analysis needs, as of a local estimate."""
        found = self.fitted or rebuilt_estimate(self)
        if found is None:
            raise InvalidInput(
                f"a release by {self.method} lists tuples that were found, and no whole tables: "
                "analysis needs public values of all attributes, and residual or priview"
            )
        return found

    def marginal(self, *attributes: str) -> Table:
        """A table of shares: of all values together, or of those tuples that were found.

        Args:
            *attributes: names, beyond ``up_to`` of them only where whole tables were released; then
                the table is that of maximum entropy, and says so.
        """
        if self.is_sets:
            raise InvalidInput("a release of sets has no table of attributes: see rows(k)")
        has_tables = self.fitted is not None or self.total is not None
        return self.joint.marginal(*attributes) if has_tables else found_table(self, attributes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def method(self) -> str:
        """The name of the method that released it."""
        return str(self.choice["method"])

    def labels(self, k: int) -> list[tuple[tuple[str, Any], ...]]:
        """Of each k-tuple its (attribute, value) pairs."""
        counts = self._counts(k)
        attributes, codes = counts.attributes.tolist(), counts.codes.tolist()
        return [
            tuple(
                (self.attributes[place].name, self.attributes[place].values[code])
                for place, code in zip(places, values, strict=True)
            )
            for places, values in zip(attributes, codes, strict=True)
        ]

    def interval(self, k: int, level: float = RELEASE_LEVEL) -> tuple[Any, Any]:
        """(low, high) of the true number of users of each k-tuple, as if noise were normal."""
        if not 0 < level < 1:
            raise InvalidInput(f"level ({level}) must lie between 0 and 1")
        counts = self._counts(k)
        reach = NormalDist().inv_cdf((1 + level) / 2) * counts.std_errors
        return counts.counts - reach, counts.counts + reach

    def rows(self, k: int, level: float = RELEASE_LEVEL) -> list[dict[str, Any]]:
        """One mapping for each k-tuple: its values, and what is known of its count."""
        counts = self._counts(k)
        low, high = self.interval(k, level)
        figures = zip(
            self.labels(k),
            counts.counts.tolist(),
            counts.std_errors.tolist(),
            low.tolist(),
            high.tolist(),
            counts.may_be_spurious.tolist(),
            strict=True,
        )
        return [
            {
                "tuple": [value for _, value in label] if self.is_sets else dict(label),
                "count": count,
                "std_error": error,
                "low": bottom,
                "high": top,
                "may_be_spurious": is_doubtful,
            }
            for label, count, error, bottom, top, is_doubtful in figures
        ]

    def _counts(self, k: int) -> TupleCounts:
        if k not in self.tuples:
            known = ", ".join(map(str, sorted(self.tuples)))
            raise InvalidInput(f"k ({k}) must be one of those released: {known}")
        return self.tuples[k]

    def __str__(self) -> str:
        found = ", ".join(
            f"{len(counts.counts):,} of k = {k}" for k, counts in sorted(self.tuples.items())
        )
        what = "sets of items" if self.is_sets else "tuples of values"
        lines = [
            f"Guarantee: {self.guarantee}",
            f"Method: {self.method}: {self.choice['why']}",
            f"Released: {found} {what}",
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        sizes = {k: len(counts.counts) for k, counts in sorted(self.tuples.items())}
        return f"<Release by {self.method} of {sizes}>"


def public_part(
    table: CentralTable, released: ReleasedCounts
) -> tuple[tuple[ReleasedAttribute, ...], dict[int, TupleCounts]]:
    """What may be told of a table: attributes with released or public values, tuples in an order
    that tells nothing.

    Args:
        table: whose codes the tuples have.
        released: by a method.
    """
    attributes = []
    renumbered: list[Integers] = []  # of each attribute, from its codes to released ones
    for place, name in enumerate(table.columns):
        values = table.values[place]
        if table.is_known[place]:
            kept = list(range(len(values)))
        else:
            kept = sorted(_used(released, place), key=lambda code: sort_key(values[code]))
        numbers = np.full(len(values), -1, np.int64)
        numbers[kept] = np.arange(len(kept))
        renumbered.append(numbers)
        labels = tuple(values[code] for code in kept)
        attributes.append(ReleasedAttribute(name, table.is_known[place], labels))
    tuples = {k: _ordered(counts, renumbered) for k, counts in sorted(released.tuples.items())}
    return tuple(attributes), tuples


def sort_key(label: Any) -> tuple[int, Any]:
    """Numbers by size, then text."""
    return (1, label) if isinstance(label, str) else (0, label)


def _used(released: ReleasedCounts, place: int) -> set[int]:
    """The codes of an attribute that occur in tuples."""
    found: set[int] = set()
    for counts in released.tuples.values():
        found |= set(np.unique(counts.codes[counts.attributes == place]).tolist())
    return found


def _ordered(counts: TupleCounts, renumbered: Sequence[Integers]) -> TupleCounts:
    """The tuples with released codes: each sorted in itself, then all of them."""
    codes = np.empty_like(counts.codes)
    for place, numbers in enumerate(renumbered):
        is_here = counts.attributes == place
        codes[is_here] = numbers[counts.codes[is_here]]
    rows = np.arange(len(codes))[:, None]
    inside = np.lexsort((codes, counts.attributes), axis=1)  # (tuples, k)
    attributes, codes = counts.attributes[rows, inside], codes[rows, inside]
    # the first column decides, then the next: attributes before codes
    keys = [*codes.T[::-1], *attributes.T[::-1]]
    order = np.lexsort(keys)
    return TupleCounts(
        attributes[order],
        codes[order],
        counts.counts[order],
        counts.std_errors[order],
        counts.may_be_spurious[order],
    )
