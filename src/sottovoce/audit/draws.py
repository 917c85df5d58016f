"""The draws that a device is made of, checked over the bits they read: coins, uniform numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import comb, perm
from typing import Any

from sottovoce.audit.walk import BranchingBits, Draws, Law, Path, Word, law_of
from sottovoce.ground.entropy import COIN_BITS, WHOLE, System
from sottovoce.ground.errors import NotEnumerable

MAX_SUBSETS = 5_000  # orders in which a subset may be drawn; beyond, a smaller one stands for it
MAX_COIN_WAYS = 1 << 8  # of one coin over its bits; it has 65


def faults_of_draws(draws: Draws) -> Iterator[str]:
    """What is wrong with the draws that devices made, in words."""
    for threshold in sorted(draws.coins):
        law = law_of(lambda path, t=threshold: BranchingBits(path).coin(t), 4)  # type: ignore[misc]
        chance = _chance(law, True)
        if chance != _stated(threshold):
            yield f"a coin of threshold {threshold} lands heads with chance {float(chance):.6g}"
    for limit in sorted(draws.limits):
        if limit > 0 and not _is_uniform(limit):
            yield f"a draw below {limit} is not uniform"
    for threshold in sorted(draws.many_coins):
        if not _are_independent(threshold):
            yield f"two coins of threshold {threshold} are not independent coins of its chance"
    for total, chosen in sorted(draws.subsets):
        if not _is_fair_subset(total, chosen):
            yield f"a subset of {chosen} of {total} is not drawn uniformly"


def _chance(law: Law[Any], output: Any) -> Fraction:
    return Fraction(law.chances.get(output, 0), law.total)


def _stated(threshold: int) -> Fraction:
    return Fraction(max(0, min(threshold, WHOLE)), WHOLE)


class _AgainError(Exception):
    """A second word was asked for: the first was rejected."""


class _OneWord(System):
    """Gives one word, and notes how many bits the next one would have."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.widths: list[int] = []

    def bits(self, count: int) -> Any:
        self.widths.append(count)
        if len(self.widths) > 1:
            raise _AgainError
        return Word(self._path, count)


def _is_uniform(limit: int) -> bool:
    """Whether a draw is a uniform word, kept if in range(limit), or else drawn anew that way."""
    path = Path()
    kept = False
    while True:
        source = _OneWord(path)
        try:
            drawn: Any = source.below(limit)
        except _AgainError:
            if source.widths[0] != source.widths[1]:
                return False
        except NotEnumerable:
            return False
        else:
            if limit == 1 and isinstance(drawn, int):
                return drawn == 0
            if not isinstance(drawn, Word) or (drawn.low, drawn.high) != (0, limit):
                return False
            kept = True
        if not path.advance():
            return kept


class _LazyBits:
    """Bits of which some are given; the others branch, and only where a mask looks at them."""

    def __init__(self, path: Path, known: dict[int, bool], inverted: bool = False) -> None:
        self._path, self._known, self._inverted = path, known, inverted

    def __invert__(self) -> _LazyBits:
        return _LazyBits(self._path, self._known, not self._inverted)

    def __rand__(self, mask: int) -> int:
        found = 0
        for place in range(mask.bit_length()):
            if mask >> place & 1:
                if place not in self._known:
                    self._known[place] = self._path.choose(2) == 1
                found |= (self._known[place] != self._inverted) << place
        return found


class _TwoLanes(System):
    """Draws of two bits: one lane reads a given word from its highest bit on, one branches."""

    def __init__(self, path: Path, lane: int, word: int) -> None:
        self._path, self._lane, self._word = path, lane, word
        self._place = COIN_BITS

    def bits(self, count: int) -> Any:
        self._place -= 1
        return _LazyBits(self._path, {self._lane: bool(self._word >> max(self._place, 0) & 1)})


def _are_independent(threshold: int) -> bool:
    """Two coins at once: each lands as the word it reads says, the other one by its chance."""
    words = (0, WHOLE // 3, max(threshold - 1, 0), min(threshold, WHOLE - 1), WHOLE - 1)
    return all(_lands(threshold, lane, word) for lane in (0, 1) for word in words)


def _lands(threshold: int, lane: int, word: int) -> bool:
    try:
        law = law_of(lambda path: _TwoLanes(path, lane, word).coins(threshold, 2), MAX_COIN_WAYS)
    except (NotEnumerable, TypeError):  # the bits are used otherwise than lane by lane
        return False
    mine = (word < threshold) << lane
    heads = _stated(threshold)
    return _chance(law, mine | 2 >> lane) == heads and _chance(law, mine) == 1 - heads


class _BranchingBelow(BranchingBits):
    """Uniform integers branch; what is made of them is the device's code."""

    def below(self, limit: int) -> int:
        return self._path.choose(limit)


def _is_fair_subset(total: int, chosen: int) -> bool:
    while perm(total, chosen) > MAX_SUBSETS:
        total, chosen = (total - 1, chosen) if total > chosen + 1 else (total - 1, chosen - 1)
    law = law_of(lambda path: _BranchingBelow(path).subset(total, chosen), MAX_SUBSETS + 1)
    fair = Fraction(1, comb(total, chosen))
    sizes = {output.bit_count() for output in law.chances}
    return sizes == {chosen} and all(_chance(law, output) == fair for output in law.chances)
