"""Every way that a device's coins can fall: private coins branch, public ones are settled first.

A coin is one comparison of a 64-bit word, so it branches into two ways with exact chances, not into
2**64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from math import comb, lcm
from typing import Any, Generic, NoReturn, TypeVar

from sottovoce.ground.entropy import Entropy, Stream, System
from sottovoce.ground.errors import NotEnumerable

MAX_BRANCHES = 1 << 12  # outcomes of one draw that are listed
MAX_DEPTH = 1 << 12  # draws of one way
MAX_COUNTED_BITS = 12  # bits that are listed one by one; more are a word that may only be compared

FEW_PUBLIC = 3  # public coins that stand for too many to list

T = TypeVar("T", bound=Hashable)


class Path:
    """The choices of one way, replayed; :meth:`advance` turns to the next way, depth first."""

    def __init__(self) -> None:
        self._choices: list[int] = []
        self.start()

    def start(self) -> None:
        """Begin the way anew."""
        self._widths: list[int] = []
        self.top = 1  # the way's chance is top / bottom
        self.bottom = 1

    def _next(self, width: int) -> int:
        depth = len(self._widths)
        if width > MAX_BRANCHES or depth >= MAX_DEPTH:
            raise NotEnumerable("a device has too many ways to go; use a sampling audit")
        if depth == len(self._choices):
            self._choices.append(0)
        self._widths.append(width)
        return self._choices[depth]

    def choose(self, width: int) -> int:
        """One of ``range(width)``, all equally likely."""
        self.bottom *= width
        return self._next(width)

    def split(self, part: int, total: int) -> bool:
        """True with chance ``part / total``."""
        heads = self._next(2) == 1
        self.top *= part if heads else total - part
        self.bottom *= total
        return heads

    def advance(self) -> bool:
        """Turn to the next way; False after the last."""
        while self._choices and self._choices[-1] == self._widths[len(self._choices) - 1] - 1:
            self._choices.pop()
        if not self._choices:
            return False
        self._choices[-1] += 1
        self.start()
        return True


class Word:
    """A uniform integer of many bits, known only as far as it was compared.
    It does nothing else.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self.low, self.high = 0, 1 << count  # it lies in range(low, high)

    def __lt__(self, threshold: int) -> bool:
        if threshold <= self.low or threshold >= self.high:
            return threshold > self.low
        below = self._path.split(threshold - self.low, self.high - self.low)
        self.low, self.high = (self.low, threshold) if below else (threshold, self.high)
        return below

    def __ge__(self, threshold: int) -> bool:
        return not self < threshold

    def __le__(self, threshold: int) -> bool:
        return self < threshold + 1

    def __gt__(self, threshold: int) -> bool:
        return not self < threshold + 1

    def _refuse(self, *_: object) -> NoReturn:
        raise NotEnumerable(
            "a device uses many bits otherwise than by comparing them; use a sampling audit"
        )

    __index__ = __int__ = __and__ = __rand__ = __or__ = __xor__ = __mod__ = __add__ = __sub__ = (
        __rshift__
    ) = _refuse
    __eq__ = __hash__ = _refuse


class BranchingBits(System):
    """A device's generator with only its bits replaced: all draws are the device's own code."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def bits(self, count: int) -> Any:
        return (
            self._path.choose(1 << count) if count <= MAX_COUNTED_BITS else Word(self._path, count)
        )


@dataclass(frozen=True)
class Tickets:
    """Outcomes that stand for all of the first draw, the cohort's: one ticket of each cohort."""

    limit: int
    outcomes: Sequence[int]


class PublicCoins(Entropy):
    """Public coins, settled by the first report and the same for all others.

    Few outcomes are branched over by ``path``; of many, or without a path, one is drawn from
    ``source``. Whoever asks for other draws than the first report did makes public coins tell
    something: ``differs`` is then true.
    """

    def __init__(self, source: Entropy, path: Path | None, tickets: Tickets | None = None) -> None:
        self._source, self._path, self._tickets = source, path, tickets
        self._limits: list[int] = []
        self._drawn: list[int] = []
        self._position = 0
        self._is_settled = False
        self.branched: list[int] = []
        self.ways = 1  # as if every way had the widths of this one
        self.is_sampled = False
        self.differs = False

    def start(self) -> None:
        """Before each report."""
        self._position = 0

    def finish(self, reported: bool) -> None:
        """After each report: one that was sent settles which draws there are."""
        if not reported:
            return
        self.differs |= self._is_settled and self._position != len(self._limits)
        self._is_settled = True

    def bits(self, count: int) -> int:
        return self.below(1 << count)

    def below(self, limit: int) -> int:
        position = self._position
        self._position += 1
        if position == len(self._limits) and not self._is_settled:
            self._limits.append(limit)
            self._drawn.append(self._draw(limit))
        if position >= len(self._limits) or self._limits[position] != limit:
            self.differs = True
            return self._source.below(limit)
        return self._drawn[position]

    def _draw(self, limit: int) -> int:
        outcomes: Sequence[int] = range(limit)
        if self._tickets is not None and len(self._limits) == 1 and limit == self._tickets.limit:
            outcomes = self._tickets.outcomes
        if self._path is None or (limit > MAX_BRANCHES and isinstance(outcomes, range)):
            self.is_sampled |= limit > 1
            return self._source.below(limit)
        self.ways *= len(outcomes)
        place = self._path.choose(len(outcomes))
        self.branched.append(place)
        return outcomes[place]


class BranchingPublic(Entropy):
    """Public coins that branch as private ones do: all of them are part of the report's law.

    A draw of more than ``most`` outcomes is one of a few that ``seed`` chooses, the same ones for
    every report. The first draw is never such a one if its limit is ``tickets``.
    """

    def __init__(self, seed: bytes, most: int, path: Path, tickets: int) -> None:
        self._seed, self._most, self._path, self._tickets = seed, most, path, tickets
        self._times: Counter[int] = Counter()  # that a draw of each limit was one of a few

    def bits(self, count: int) -> int:
        return self.below(1 << count)

    def below(self, limit: int) -> int:
        tickets, self._tickets = self._tickets, 0
        if limit <= self._most or limit == tickets:
            return self._path.choose(limit)
        number = self._times[limit]
        self._times[limit] += 1
        place = self._path.choose(FEW_PUBLIC)
        name = b"few public coins %d %d %d " % (limit, number, place)
        return Stream(name + self._seed).below(limit)


class EndsFirst(Entropy):
    """Sampled public coins; the first draw, the cohort's,
    is at its ends in the first two samples.
    """

    def __init__(self, source: Entropy, number: int) -> None:
        self._source, self._number = source, number

    def bits(self, count: int) -> int:
        return self._source.bits(count)

    def below(self, limit: int) -> int:
        number, self._number = self._number, 2
        return (0, limit - 1)[number] if number < 2 else self._source.below(limit)


@dataclass
class Draws:
    """What devices drew with, so that each of these can be checked by itself."""

    coins: set[int] = field(default_factory=set)
    many_coins: set[int] = field(default_factory=set)
    limits: set[int] = field(default_factory=set)
    subsets: set[tuple[int, int]] = field(default_factory=set)


class Walker(BranchingBits):
    """A device's private coins along one path, beside public ones that are settled."""

    def __init__(self, path: Path, public: Entropy, draws: Draws) -> None:
        super().__init__(path)
        self._public = public
        self._draws = draws

    @property
    def public(self) -> Entropy:
        return self._public

    def coin(self, threshold: int) -> bool:
        self._draws.coins.add(threshold)
        return super().coin(threshold)

    def below(self, limit: int) -> int:
        self._draws.limits.add(limit)
        return self._path.choose(limit)

    def coins(self, threshold: int, count: int) -> int:
        self._draws.many_coins.add(threshold)
        if 1 << min(count, 64) > MAX_BRANCHES:
            raise NotEnumerable("a device tosses too many coins; use a sampling audit")
        return sum(1 << place for place in range(count) if Word(self._path, 64) < threshold)

    def subset(self, total: int, chosen: int) -> int:
        self._draws.subsets.add((total, chosen))
        choice = self._path.choose(comb(total, chosen))
        members = next(islice(combinations(range(total), chosen), choice, None))
        return sum(1 << member for member in members)


@dataclass(frozen=True)
class Law(Generic[T]):
    """Exact chances: ``chances[output] / total``."""

    chances: dict[T, int]
    total: int

    def scaled(self, total: int) -> dict[T, int]:
        """The chances as parts of ``total``, a multiple of its own."""
        times = total // self.total
        return {output: part * times for output, part in self.chances.items()}


def law_of(
    draw: Callable[[Path], T], limit: int, count: Callable[[], None] | None = None
) -> Law[T]:
    """The law of ``draw`` from every way it can go, at most ``limit``; ``count`` is told of each.

    >>> law = law_of(lambda path: BranchingBits(path).coin(1 << 62), limit=10)
    >>> law.chances[True] / law.total
    0.25
    """
    path = Path()
    sums: dict[int, dict[T, int]] = {}  # denominator -> output -> sum of numerators
    for _ in range(limit):
        output = draw(path)
        if count is not None:
            count()
        if path.top:
            part = sums.setdefault(path.bottom, {})
            part[output] = part.get(output, 0) + path.top
        if not path.advance():
            return _joined(sums)
    raise NotEnumerable(f"a device has more than {limit} ways to go; use a sampling audit")


def _joined(sums: dict[int, dict[T, int]]) -> Law[T]:
    total = lcm(*sums)
    chances: dict[T, int] = {}
    for bottom, part in sums.items():
        for output, top in part.items():
            chances[output] = chances.get(output, 0) + top * (total // bottom)
    return Law(chances, total)


def of_one_total(laws: Sequence[Law[T]]) -> list[dict[T, int]]:
    """The chances of all laws as parts of one total."""
    total = lcm(*(law.total for law in laws))
    return [law.scaled(total) for law in laws]
