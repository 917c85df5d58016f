"""What an attribute is: what a person may answer, and the integers that stand for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput

Codes = NDArray[np.uint64]
Words = NDArray[np.uint64]  # a row for each person: the high and the low 64 bits of a spelling
Label = str | int | bool
OPEN = 1 << 64  # the number of codes of an open alphabet: 64-bit fingerprints
MOST_SPELLED = 128  # bits of a spelling
MOST_LABELS = 1 << 26
# what an encoding may read of an attribute
FORMS = CODE, SPELLING, MEMBERS = (
    "code",
    "spelling",
    "members",
)


@dataclass(frozen=True, eq=False)
class Sets:
    """A column of sets: person i has ``codes[starts[i]:starts[i + 1]]``, increasing, each once."""

    starts: NDArray[np.int64]
    codes: Codes

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def __getitem__(self, rows: Any) -> Sets:
        """The sets of some people: a slice, places or a mask."""
        first, lengths = self.starts[:-1][rows], self.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(first - starts[:-1], lengths) + np.arange(starts[-1])
        return Sets(starts, self.codes[places])

    @classmethod
    def of(cls, people: int, owners: NDArray[np.int64], codes: Codes, size: int) -> Sets:
        """Sets from pairs of person and code, in any order; what is repeated counts once."""
        if people and size > (1 << 62) // people:
            raise InvalidInput(f"a column of {people} sets of {size} values is too large")
        # np.unique would hash, which takes ten times as long
        pairs = np.sort(owners * size + codes.astype(np.int64))
        if len(pairs):
            pairs = pairs[np.concatenate([[True], pairs[1:] != pairs[:-1]])]
        owners, members = np.divmod(pairs, size)
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=people))])
        return cls(starts, members.astype(np.uint64))


@dataclass(frozen=True)
class Attribute(ABC):
    """One column of a record, of ``size`` codes; ``sensitive`` ones only ever leave as whispers.

    Args:
        sensitive: whether it only ever leaves as a whisper; False for public columns.

    Throughout:
        value: what a person answered.
        column: the answers of many people.
    """

    kind: ClassVar[str]
    sensitive: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.sensitive, bool):
            raise InvalidInput(f"sensitive ({self.sensitive}) must be true or false")

    @property
    @abstractmethod
    def size(self) -> int:
        """How many codes there are."""

    @abstractmethod
    def code(self, value: Any) -> int:
        """The code of one value; a bare ``ValueError`` or ``TypeError`` if it has none."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What the constructor needs, as JSON without floats."""

    @property
    def is_open(self) -> bool:
        """Whether nobody can list its values."""
        return self.size >= OPEN

    @property
    def spelling_bits(self) -> int:
        """Bits of a spelling: an integer from which the value can be read back."""
        return (self.size - 1).bit_length()

    @property
    def spellings(self) -> int:
        """How many values can be spelled; at most 2^spelling_bits."""
        return self.size

    def spell(self, value: Any) -> int:
        """The spelling of one value; the code, unless that cannot be read back."""
        return self.code(value)

    def spelled(self, number: int) -> Label | None:
        """The value of a spelling; None if no value has it.

        Args:
            number: a spelling.
        """
        return self.labels()[number] if number < self.size else None

    def short_spellings(self, most: int) -> Words:
        """The spellings of the shortest values people may write; none where none are shorter.

        Args:
            most: how many.
        """
        return np.zeros((0, 2), np.uint64)

    def prefix_label(self, number: int, length: int) -> str:
        """How the first ``length`` bits of a spelling read.

        Args:
            number: the first bits.
            length: how many they are.
        """
        return f"{number:0{length}b}" if length < self.spelling_bits else str(self.spelled(number))

    def spell_column(self, column: NDArray[Any]) -> Words:
        """The spellings of a whole column."""
        words = np.zeros((len(column), 2), np.uint64)
        if self.spelling_bits <= 64:
            words[:, 1] = by_distinct(self.spell, column)
        else:
            words[:, 0] = by_distinct(lambda value: self.spell(value) >> 64, column)
            words[:, 1] = by_distinct(lambda value: self.spell(value) & (1 << 64) - 1, column)
        return words

    def substitute(self, form: str, entropy: Entropy) -> Any:
        """What is reported without a valid value: a uniform draw, so that silence tells nothing.

        Args:
            form: what an encoding reads: a code, a spelling, or the members of a set.
            entropy: the coins.
        """
        return entropy.below(self.size)

    def known_members(self, value: Any) -> list[int]:
        """The codes of a set's members that the schema lists; nobody is asked about the others."""
        return self.members(value)

    def members(self, value: Any) -> list[int]:
        """The codes of a set's members, in order, each once."""
        raise TypeError  # one value is no set

    def members_column(self, column: Any) -> Sets:
        """The same for a column of sets."""
        raise TypeError

    @property
    def rule(self) -> str:
        """What a value must be, for whoever gave another one."""
        return f"value is not one of the schema's {self.size} values"

    def labels(self) -> Sequence[Label]:
        """The name of each code, in order."""
        raise InvalidInput(f"{self.kind}: an open alphabet has no list of labels; give candidates")

    def spans(self) -> Sequence[tuple[float, float]] | None:
        """The smallest and the largest number of each code, in order; None if values are no
        numbers.
        """
        return None

    def codes(self, column: NDArray[Any]) -> Codes:
        """The codes of a whole column."""
        return by_distinct(self.code, column)


@dataclass(frozen=True)
class Single(Attribute):
    """One value of those in the schema; ``other`` is the one that stands for every other value.

    Args:
        other: the value that stands for every other value; None to draw one.
    """

    other: Label | None = field(default=None, kw_only=True, repr=False)

    def _settle_other(self) -> None:
        """Keep ``other`` as the schema writes that value."""
        if self.other is None:
            return
        try:
            value = self._written(self.code(self.other))
        except (ValueError, TypeError, KeyError, OverflowError):
            raise InvalidInput(f"other ({self.other}) must be one of the values") from None
        object.__setattr__(self, "other", value)

    @abstractmethod
    def _written(self, code: int) -> Label:
        """How a plan writes the value of a code."""

    def substitute(self, form: str, entropy: Entropy) -> Any:
        return super().substitute(form, entropy) if self.other is None else self.code(self.other)

    def _other_option(self) -> dict[str, Any]:
        return {} if self.other is None else {"other": self.other}


def by_distinct(look: Callable[[Any], int], column: NDArray[Any]) -> Codes:
    """What ``look`` says of every value of a column, asked once for each different one."""
    if column.dtype == object:
        listed = column.tolist()
        known = {value: look(value) for value in set(listed)}
        return np.fromiter((known[value] for value in listed), np.uint64, len(listed))
    distinct, place = np.unique(column, return_inverse=True)
    table = np.array([look(value) for value in distinct.tolist()], dtype=np.uint64)
    return table[place]


def interval_codes(column: NDArray[Any], low: int, high: int) -> Codes:
    if column.size and (int(column.min()) < low or int(column.max()) > high):
        raise ValueError
    if column.dtype.kind == "u" and low >= 0:
        return column.astype(np.uint64) - np.uint64(low)
    return (column.astype(np.int64) - low).astype(np.uint64)


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def whole_number(value: Any) -> int:
    value = plain(value)
    if isinstance(value, bool):
        raise TypeError
    number = int(value)
    if not isinstance(value, str) and number != value:
        raise ValueError
    return number
