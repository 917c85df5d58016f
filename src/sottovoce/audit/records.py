"""The records that an audit compares: all of them, or the extremes and a spread of each attribute's values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations, islice, product
from math import prod
from typing import Any

from sottovoce.attributes import CODE, MEMBERS, Attribute, Items, Ordinal, Text
from sottovoce.plans import Plan

MAX_RECORDS = 64  # that are compared at once
Record = dict[str, Any]


class Records:
    """Records of a plan's schema, from one end of every attribute to the other.

    ``scope`` says what they cover: ``all`` records, ``all read`` (every value of what one cohort reads, the others at
    both ends), or ``some``.
    """

    def __init__(self, plan: Plan, most: int = MAX_RECORDS) -> None:
        self._plan, self._most = plan, most
        names = plan.cohorts.attributes
        form = plan.cohorts.form
        self._values = {name: values_of(plan.schema[name], form, most) for name in names}
        self._sizes = {name: _count(plan.schema[name], form) for name in names}
        others = [name for name in plan.schema if name not in self._values]
        self._values |= {name: _ends(plan.schema[name]) for name in others}
        self.scope = "all" if self._is_whole(names) else "all read"

    def _is_whole(self, names: Iterable[str]) -> bool:
        return prod(self._sizes[name] for name in names) <= self._most

    @property
    def lowest(self) -> Record:
        return {name: values[0] for name, values in self._values.items()}

    @property
    def highest(self) -> Record:
        return {name: values[-1] for name, values in self._values.items()}

    def of_cohort(self, index: int) -> list[Record]:
        """The records to compare in one cohort."""
        whole = self._is_whole(self._sizes)
        names = list(self._sizes) if whole else list(self._plan.cohorts[index].attributes)
        low, high = self.lowest, self.highest
        if whole or self._is_whole(names):
            cells = [dict(zip(names, cell, strict=True)) for cell in product(*(self._values[name] for name in names))]
            found = [low | cell for cell in cells]
            if len(names) < len(self._values):  # what is not read must not matter
                found += [high | cells[0], high | cells[-1]]
            return found
        self.scope = "some"
        return self._some(names)

    def _some(self, names: Sequence[str]) -> list[Record]:
        low, high = self.lowest, self.highest
        moved = chain.from_iterable(
            (low | {name: self._values[name][-1]}, high | {name: self._values[name][0]}) for name in names
        )
        longest = max(len(self._values[name]) for name in names)
        spread = (
            low | {name: self._values[name][step % len(self._values[name])] for name in names}
            for step in range(1, longest)
        )
        return _distinct(chain((low, high), islice(moved, self._most // 2), spread), self._most)

    def lacking(self, index: int) -> Record | None:
        """A record without the first attribute that a cohort reads; None if too many values may stand in for it."""
        name = self._plan.cohorts[index].attributes[0]
        is_many = self._plan.cohorts.form != MEMBERS and self._sizes[name] > self._most
        if is_many or isinstance(self._plan.schema[name], Text):
            return None
        return {other: value for other, value in self.lowest.items() if other != name}

    def pairs(self) -> list[tuple[Record, Record]]:
        """A few pairs that a mechanism should hardly tell apart."""
        low, high = self.lowest, self.highest
        found = [(low, high)]
        if self._plan.cohorts.form == MEMBERS:  # neither empty nor full
            name = next(iter(self._sizes))
            inner = [value for value in self._values[name] if 0 < len(value) < self._sizes[name].bit_length() - 1]
            if inner:
                found.append((low | {name: inner[0]}, high | {name: inner[-1]}))
        return found


def _distinct(records: Iterable[Record], most: int) -> list[Record]:
    found: list[Record] = []
    for record in records:
        if record not in found:
            found.append(record)
        if len(found) == most:
            break
    return found


def _count(attribute: Attribute, form: str) -> int:
    """How many answers an encoding can tell apart."""
    if form == MEMBERS:
        return 1 << attribute.size
    return attribute.spellings if isinstance(attribute, Text) else attribute.size


def _ends(attribute: Attribute) -> list[Any]:
    form = MEMBERS if isinstance(attribute, Items) else CODE
    values = values_of(attribute, form, 2)
    return [values[0], values[-1]]


def values_of(attribute: Attribute, form: str, most: int) -> list[Any]:
    """Values with different codes, both ends among them: all of them if they are at most ``most``.

    >>> values_of(Ordinal(18, 97, bins=4), CODE, most=8)
    [18, 38, 58, 78]
    >>> values_of(Items("abc"), MEMBERS, most=4)
    [[], ['a'], ['b', 'c'], ['a', 'b', 'c']]
    """
    if form == MEMBERS:
        return _sets(list(attribute.labels()), most)
    if isinstance(attribute, Text):
        return _texts(attribute, most)
    if isinstance(attribute, Ordinal):
        span = attribute.high - attribute.low + 1
        # the first number of a bin: the least x with floor(x size / span) = code
        return [attribute.low - (-code * span // attribute.size) for code in _spread(attribute.size, most)]
    if attribute.kind == "integer":
        return _spread(attribute.size, most)
    labels = attribute.labels()
    return [labels[code] for code in _spread(attribute.size, most)]


def _spread(size: int, most: int) -> list[int]:
    """Codes from 0 to ``size - 1``, evenly."""
    if size <= most:
        return list(range(size))
    return [step * (size - 1) // (most - 1) for step in range(most)]


def _sets(labels: list[Any], most: int) -> list[list[Any]]:
    """Sets from the empty one to the full one; of many the first and last items, by sizes that double."""
    count = len(labels)
    if 1 << min(count, 64) <= most:
        return [list(some) for size in range(count + 1) for some in combinations(labels, size)]
    sizes = [1 << step for step in range(count.bit_length()) if 1 << step < count]
    first = [labels[:size] for size in sizes[: (most - 2) // 2]]
    last = [labels[count - size :] for size in reversed([*sizes[: (most - 3) // 2], count - 1])]
    return [[], *first[: most - 3], *last[: most - 2 - len(first)], labels]


def _texts(attribute: Text, most: int) -> list[str]:
    """The shortest strings, and the longest of one character where there are more."""
    letters = attribute.alphabet or "abcdefghijklmnopqrstuvwxyz"
    weights = [len(letter.encode()) for letter in letters]
    longest = [letter * (attribute.bytes // weight) for letter, weight in zip(letters, weights, strict=True)]
    if attribute.spellings <= most:
        return _all_texts(attribute, letters)
    return list(dict.fromkeys(["", *letters[: most // 2], *longest[-max(1, most // 2 - 1) :]]))


def _all_texts(attribute: Text, letters: str) -> list[str]:
    found = [""]
    for text in found:
        found += [text + letter for letter in letters if len((text + letter).encode()) <= attribute.bytes]
    return found
