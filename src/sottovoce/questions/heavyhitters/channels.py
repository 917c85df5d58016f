"""Channels by a public hash: people tell blocks of bits beside the channel of their value, and each
channel spells one candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle
from sottovoce.protocol.encodings import Ask, Window
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.heavyhitters.method import HeavyHitterMethod, SearchTarget
from sottovoce.questions.heavyhitters.parts import PartsDesign, require_heard, split_of
from sottovoce.questions.method import NO_OPTIONS, Options, RoundResult
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_CELLS = 22  # bits of a channel and a block together


@dataclass(frozen=True)
class ChannelDesign(PartsDesign):
    """A value in blocks of so many bits, each told beside the value's channel."""

    told: ClassVar[int] = 1

    block: int
    strict: bool

    @classmethod
    def of(cls, target: SearchTarget, options: Options) -> Self:
        """The design that options describe; by default blocks of 8 bits."""
        bits = target.bits
        strict = options.get("strict", False)
        if not isinstance(strict, bool):
            raise InvalidInput(f"strict ({strict}) must be true or false")
        usual = min(8, bits)
        block = whole("block", options.get("block", usual), 1, min(16, bits))
        return cls(target, split_of(options), block, strict)

    @property
    def tag(self) -> int:
        """Bits of a channel's number."""
        # h >= k^1.5, so that two of k values seldom share a channel   wang2021thesis, section 4.4.1
        channels = isqrt(self.target.top**3 - 1) + 1
        return min((channels - 1).bit_length(), MOST_CELLS - self.block)

    @cached_property
    def windows(self) -> list[Window]:
        """The blocks, each beside the channel; the last one may be shorter."""
        name, bits = self.target.name, self.target.bits
        tagged = bits if self.tag else 0
        windows = []
        for start in range(0, bits, self.block):
            fresh = min(self.block, bits - start)
            windows.append(Window(name, bits, start, fresh, self.tag, tagged))
        return windows

    def parts(self, epsilon: Decimal) -> list[tuple[Ask, ...]]:
        parts: list[tuple[Ask, ...]] = []
        for window in self.windows:
            source = oracle("olh", size=window.size, epsilon=epsilon)
            parts.append((Ask(window, source),))
        return parts


class Channels(HeavyHitterMethod):
    """A public hash sends every value to a channel; each person tells a block of bits beside her
    channel.

    Where a channel has one frequent value, the most frequent block of each place spells it: one
    candidate a channel. ``strict``: only candidates that the hash does send to the channel where
    they were found, which leaves out most of what noise put together, and was not part of the
    method as published.
    """

    name: ClassVar[str] = "hash"
    about: ClassVar[str] = (
        "channels by a public hash, a candidate each, which the whole value tests"
    )
    source: ClassVar[str] = "wang2021thesis, section 4.1.2"
    options: ClassVar[tuple[str, ...]] = ("split", "block", "strict")

    def settle(
        self, target: SearchTarget, terms: Terms, options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        self.check_options(options)
        design = ChannelDesign.of(target, options)
        return {"split": design.split, "block": design.block, "strict": design.strict}

    def cohorts(
        self, schema: Schema, target: SearchTarget, epsilon: Decimal, options: Options
    ) -> Family:
        return Listed(ChannelDesign.of(target, options).cohorts(epsilon))

    def explain(self, target: SearchTarget, plan: Plan, options: Options) -> list[str]:
        design = ChannelDesign.of(target, options)
        lengths = ", ".join(str(window.fresh) for window in design.windows)
        people = plan.cohort_people(len(plan.cohorts) - 1)
        return [
            f"{1 << design.tag:,} channels; blocks of {lengths} bits, {people:,} people each",
            design.explain(plan),
        ]

    def estimate(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        design = ChannelDesign.of(target, options)
        spelled = _spelled_by_channels(design, aggregate)
        ranked = design.tested(aggregate, _candidates(design, spelled))
        found = ranked.findings(target, self.name, aggregate.people)
        return RoundResult(found)


def _spelled_by_channels(design: ChannelDesign, aggregate: Aggregate) -> list[int]:
    """The number that the most frequent blocks of each channel spell, channel by channel."""
    channels = 1 << design.tag
    numbers = [0] * channels
    for index, window in enumerate(design.windows):
        cohort = design.first_cohort + index
        require_heard(aggregate.cohort_people(cohort), f"block {index + 1}")
        support = aggregate.support(cohort, design.first_ask)
        table = support.reshape(channels, 1 << window.fresh)  # (channels, blocks)
        for channel, block in enumerate(table.argmax(axis=1).tolist()):
            numbers[channel] = numbers[channel] << window.fresh | block
    return numbers


def _candidates(design: ChannelDesign, numbers: Sequence[int]) -> list[int]:
    """Those of the channels' values that can be spelled, each once; if strict, those of their own
    channel.
    """
    last = design.windows[-1]
    attribute = design.target.attribute
    kept: list[int] = []
    for channel, number in enumerate(numbers):
        if not design.strict or last.of(number) >> last.fresh == channel:
            kept.append(number)
    return [number for number in dict.fromkeys(kept) if attribute.spelled(number) is not None]
