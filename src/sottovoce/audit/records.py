"""The records that an audit compares: all, or the extremes and a spread of each attribute's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations, islice, product, zip_longest
from math import prod
from typing import Any

from sottovoce.protocol.plan import Plan
from sottovoce.schema import CODE, MEMBERS, SPELLING, Attribute, FixedPoint, Items, Ordinal, Text

MAX_RECORDS = 64  # that are compared at once
Record = dict[str, Any]
_STRANGE = ("?", "?" * 1024, -1, 0.5)  # values that a schema may lack; no schema has the last


class Records:
    """Records of a plan's schema, from one end of every attribute to the other.

    ``scope`` says what they cover: ``all`` records, ``all read`` (every value of what one cohort
    reads, the others at both ends and then one at a time, as many as there is room for), or
    ``some``.
    """

    def __init__(self, plan: Plan, most: int = MAX_RECORDS) -> None:
        self._plan, self._most = plan, most
        names = plan.cohorts.attributes
        form = plan.cohorts.form
        self._values = {name: values_of(plan.schema[name], form, most) for name in names}
        self._sizes = {name: _count(plan.schema[name], form) for name in names}
        for name in plan.columns:  # neighbours have equal public values
            self._values[name], self._sizes[name] = [public_value(plan.schema[name])], 1
        for name in plan.schema:  # what no cohort reads, too
            if name not in self._values and not isinstance(plan.schema[name], FixedPoint):
                unread = MEMBERS if isinstance(plan.schema[name], Items) else CODE
                self._values[name] = values_of(plan.schema[name], unread, most)
                self._sizes[name] = _count(plan.schema[name], unread)
        self.scope = "all" if self._is_whole(self._sizes) else "all read"

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
        names = self._compared(index)
        if not self._is_whole(names):
            self.scope = "some"
            return self._some(names)
        low, high = self.lowest, self.highest
        cells = [
            dict(zip(names, cell, strict=True))
            for cell in product(*(self._values[name] for name in names))
        ]
        found = [low | cell for cell in cells]
        rest = [name for name in self._values if name not in names]
        if rest:  # what is not read must not matter
            found += [high | cells[0], high | cells[-1]]
            room = max(0, self._most - len(found))
            found += islice(
                (low | {name: value} for name in rest for value in self._values[name][1:-1]), room
            )
        return found

    def across(self) -> list[Record]:
        """Records that differ in anything that any cohort reads, both extremes first."""
        read = self._plan.cohorts.attributes
        names = next((each for each in (self._sizes, read) if self._is_whole(each)), None)
        if names is None:
            return self._some(read)
        cells = product(*(self._values[name] for name in names))
        found = [self.lowest | dict(zip(names, cell, strict=True)) for cell in cells]
        return [found[0], found[-1], *found[1:-1]]

    def _compared(self, index: int) -> list[str]:
        """The attributes gone through together: all of them, all that are read, or one cohort's."""
        read = self._plan.cohorts.attributes
        for names in (self._sizes, read):
            if self._is_whole(names):
                return list(names)
        return list(self._plan.cohorts[index].attributes)

    def _some(self, names: Sequence[str]) -> list[Record]:
        low, high = self.lowest, self.highest
        moved = chain.from_iterable(
            (low | {name: self._values[name][-1]}, high | {name: self._values[name][0]})
            for name in names
        )
        longest = max(len(self._values[name]) for name in names)
        spread = (
            low | {name: self._values[name][step % len(self._values[name])] for name in names}
            for step in range(1, longest)
        )
        return _distinct(chain((low, high), islice(moved, self._most // 2), spread), self._most)

    def outside(self, index: int) -> list[Record]:
        """Records without a valid value of what a cohort reads, if few values may stand in."""
        names = [
            name
            for name in self._plan.cohorts[index].attributes
            if self._stand_ins(name) <= self._most
        ]
        others = {
            name: _unlisted(self._plan.schema[name], self._values[name][-1]) for name in names
        }
        longest = max((len(values) for values in others.values()), default=0)
        low = self.lowest
        wrong = (
            low | {name: values[place]}
            for place in range(longest)
            for name, values in others.items()
            if values[place:]
        )
        lacking = (
            {other: value for other, value in low.items() if other != name} for name in names
        )
        missing = (low | {name: None} for name in names)
        turns = (
            record
            for turn in zip_longest(lacking, wrong, missing)
            for record in turn
            if record is not None
        )
        return list(islice(turns, max(2, self._most // 8)))

    def _stand_ins(self, name: str) -> int:
        """How many values may be drawn in place of one that is not valid."""
        attribute, form = self._plan.schema[name], self._plan.cohorts.form
        if form == MEMBERS:
            return 1
        return (
            1 << attribute.spelling_bits
            if form == SPELLING and isinstance(attribute, Text)
            else attribute.size
        )

    def pairs(self) -> list[tuple[Record, Record]]:
        """A few pairs that a mechanism should hardly tell apart."""
        low, high = self.lowest, self.highest
        found = [(low, high)]
        if self._plan.cohorts.form == MEMBERS:  # neither empty nor full
            name = next(iter(self._sizes))
            inner = [
                value
                for value in self._values[name]
                if 0 < len(value) < self._sizes[name].bit_length() - 1
            ]
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


def _unlisted(attribute: Attribute, valid: Any) -> list[Any]:
    """Values that a schema refuses: of sets also one that holds listed items beside unlisted ones.

    >>> _unlisted(Ordinal(18, 97), 97), _unlisted(Items("abc"), ["a", "b", "c"])
    ([98], [['a', 'b', 'c', '?'], ['?'], 0.5])
    """
    if isinstance(attribute, Items):
        member = next(value for value in _STRANGE if not attribute.known_members([value]))
        return [[*valid, member], [member], _STRANGE[-1]]
    near = [attribute.high + 1] if isinstance(attribute, Ordinal) else []
    return [next(value for value in [*near, *_STRANGE] if not _has_code(attribute, value))]


def _has_code(attribute: Attribute, value: Any) -> bool:
    try:
        attribute.code(value)
    except Exception:  # whatever an attribute raises for what it does not have
        return False
    return True


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
        return [attribute.starts[code] for code in _spread(attribute.size, most)]
    if attribute.kind == "integer":
        return _spread(attribute.size, most)
    labels = attribute.labels()
    return [labels[code] for code in _spread(attribute.size, most)]


def public_value(attribute: Attribute) -> Any:
    """A value that may travel in clear.

    >>> public_value(FixedPoint(0, 10, sensitive=False)), public_value(Ordinal(18, 97))
    ('0.00', 18)
    """
    return attribute.low if isinstance(attribute, FixedPoint) else values_of(attribute, CODE, 2)[0]


def _spread(size: int, most: int) -> list[int]:
    """Codes from 0 to ``size - 1``, evenly."""
    if size <= most:
        return list(range(size))
    return [step * (size - 1) // (most - 1) for step in range(most)]


def _sets(labels: list[Any], most: int) -> list[list[Any]]:
    """Sets from the empty to the full one; of many the first and last items, in doubling sizes."""
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
    longest = [
        letter * (attribute.bytes // weight)
        for letter, weight in zip(letters, weights, strict=True)
    ]
    if attribute.spellings <= most:
        return _all_texts(attribute, letters)
    return list(dict.fromkeys(["", *letters[: most // 2], *longest[-max(1, most // 2 - 1) :]]))


def _all_texts(attribute: Text, letters: str) -> list[str]:
    found = [""]
    for text in found:
        found += [
            text + letter for letter in letters if len((text + letter).encode()) <= attribute.bytes
        ]
    return found
