"""Heavy hitters, method against method, and against a genie who tests every value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.api.surveys import asked
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.measure.choices import MethodChoice
from sottovoce.measure.popular import (
    Judge,
    PopularComparison,
    PopularCrowd,
    answered,
    checked,
    compare_popular,
    read_columns,
)
from sottovoce.measure.runs import seeded
from sottovoce.oracles import PureOracle, oracle
from sottovoce.questions.base import Question
from sottovoce.schema import Attribute, Integer, Label, Schema, Text

GENIE = "genie"
VALUE_NAME = "value"  # of the attribute in the simulated plans
WINDOW = 24  # bits of the domain whose oracle the genie hears through: as large as a window's

MAX_SINGLE_DRAWS = 1 << 16  # Gaussian draws that are made one by one

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Holdings:
    """Different values, and how many people hold each.

    >>> held = Holdings.of(Text(bytes=3, longer="cut"), ["hello", "help", "yes"], [5, 2, 4])
    >>> held.values, held.counts.tolist()
    (['hel', 'yes'], [7, 4])
    """

    attribute: Attribute
    values: Sequence[Label]
    counts: Whole

    @classmethod
    def of(
        cls, attribute: Attribute, values: Sequence[Any], counts: Sequence[int] | None = None
    ) -> Holdings:
        """Values as an attribute keeps them: what is cut to the same adds up."""
        total: dict[Label, int] = {}
        for value, count in zip(
            values, [1] * len(values) if counts is None else counts, strict=True
        ):
            kept = _kept(attribute, value)
            total[kept] = total.get(kept, 0) + int(count)
        held = sorted(
            (value for value, count in total.items() if count),
            key=lambda value: (str(value), value),
        )
        if not held:
            raise InvalidInput("table: there must be at least one person")
        return cls(attribute, held, np.array([total[value] for value in held], np.int64))

    @property
    def people(self) -> int:
        return int(self.counts.sum())

    def sampled(self, people: int, top: int, seed: int, run: int) -> ValueCrowd:
        """People drawn with replacement."""
        counts = seeded(seed, run, 0).multinomial(people, self.counts / self.counts.sum())
        return ValueCrowd(self, counts.astype(np.int64), top)


def _kept(attribute: Attribute, value: Any) -> Label:
    try:
        if isinstance(attribute, Text):
            text: str = attribute.fitted(value)
            attribute.spell(text)
            return text
        return attribute.spell(value)
    except (ValueError, TypeError, KeyError):
        raise InvalidInput(f"table: a {attribute.rule}") from None


@dataclass(frozen=True, eq=False)
class ValueCrowd:
    """How many people of one run hold each value."""

    held: Holdings
    counts: Whole
    top: int

    @property
    def people(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def truth(self) -> Mapping[Any, int]:
        order = np.argsort(-self.counts, kind="stable")[: self.top].tolist()
        return {
            self.held.values[place]: int(self.counts[place])
            for place in order
            if self.counts[place]
        }

    def table(self) -> Mapping[str, Any]:
        attribute = self.held.attribute
        kind = np.uint64 if isinstance(attribute, Integer) and attribute.bits <= 64 else object
        values = np.empty(len(self.counts), kind)
        values[:] = self.held.values
        return {VALUE_NAME: np.repeat(values, self.counts)}

    def few(self, people: int) -> ValueCrowd:
        ends = np.cumsum(self.counts) * min(people, self.people) // self.people
        return ValueCrowd(self.held, np.diff(ends, prepend=0), self.top)


def read_holdings(
    path: Path,
    value: str,
    count: str | None = None,
    *,
    bytes: int | None = None,
    bits: int | None = None,
    alphabet: str | None = None,
) -> Holdings:
    """The values of a CSV or Parquet file, each row one person or, with ``count``, so many.

    ``bytes``: they are text, cut to so many bytes of UTF-8 (never within a character);
    ``alphabet``: the only characters there are. ``bits``: they are whole numbers of so many bits.
    """
    if (bytes is None) == (bits is None):
        raise InvalidInput("give bytes for text or bits for whole numbers, and not both")
    if bits is not None and alphabet is not None:
        raise InvalidInput("alphabet is for text; whole numbers have none")
    attribute: Attribute = (
        Text(bytes=bytes or 0, alphabet=alphabet, longer="cut") if bits is None else Integer(bits)
    )
    wanted = [value] if count is None else [value, count]
    table = read_columns(path, wanted)
    values = table[value].to_pylist()
    if bits is None and not all(isinstance(each, str) for each in values):
        raise InvalidInput(f"table: column {value!r} must be text; of whole numbers give --bits")
    counts = None if count is None else [_count(count, each) for each in table[count].to_pylist()]
    return Holdings.of(attribute, values, counts)


def _count(name: str, number: Any) -> int:
    try:
        return whole("count", number, 0, 1 << 60)
    except InvalidInput:
        raise InvalidInput(f"table: column {name!r} must hold whole numbers of people") from None


def largest(random: np.random.Generator, many: int, top: int) -> Floats:
    """The ``top`` largest of ``many`` standard normal draws, without drawing them all.

    Their upper tails are nearly a Poisson process of rate ``many``: G_1/many < G_2/many < ..., with
    G the sums of standard exponential draws. Of few draws all are drawn.
    """
    if many <= MAX_SINGLE_DRAWS:
        return np.sort(random.standard_normal(many))[::-1][:top]
    norm = imported("scipy.stats").norm
    return np.asarray(norm.isf(np.cumsum(random.standard_exponential(top)) / many))


def genie(held: Holdings, top: int) -> Judge:
    """What all people's reports tell of every spelling: the largest of as many normal estimates.

    Every value that somebody holds gets N(n_v, n sigma^2), with sigma^2 that of optimised local
    hashing; so does every other of the 2^m spellings, of which only the largest matter.
    """
    bits = held.attribute.spelling_bits

    def judge(crowd: PopularCrowd, epsilon: Any, seed: int) -> Mapping[Any, float]:
        assert isinstance(crowd, ValueCrowd)
        source = oracle("olh", size=1 << min(bits, WINDOW), epsilon=epsilon)
        assert isinstance(source, PureOracle)
        people = crowd.people
        spread = people * np.sqrt(source.noise(people).floor)
        random = seeded(seed, 3)
        true = crowd.counts + spread * random.standard_normal(len(crowd.counts))
        false = spread * largest(random, 2**bits - len(true), top)
        limit = np.sort(np.concatenate([true, false]))[::-1][min(top, len(true) + len(false)) - 1]
        return {
            crowd.held.values[place]: float(true[place])
            for place in np.flatnonzero(true >= limit).tolist()
        } | {
            ("nobody holds it", place): float(each)
            for place, each in enumerate(false)
            if each >= limit
        }

    return judge


def compare_heavyhitters(
    held: Holdings,
    top: int,
    epsilons: Sequence[Any],
    methods: Sequence[str],
    runs: int,
    seed: int,
    people: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    candidates: Sequence[Any] | None = None,
) -> Iterator[PopularComparison]:
    """One row per epsilon and method; a method may carry options, as in ``pem:queries=1048576``.

    ``people``: sampled with replacement in each run, the same for every row; by default everybody
    answers once. ``candidates``: given to every method's estimate. The method ``genie`` is the
    limit that no other method knows.

    >>> held = Holdings.of(Integer(bits=20), [7, 1000, 5], [5_000, 3_000, 2_000])
    >>> row, = compare_heavyhitters(held, 2, ["4"], ["genie"], runs=2, seed=1)
    >>> row.f1, row.found
    (1.0, 2.0)
    """
    runs, count = checked(runs, people, held.people)
    schema = Schema(**{VALUE_NAME: held.attribute})
    judges = []
    for text in methods:
        choice = MethodChoice.parse(text)
        if choice.method == GENIE:
            whole("top", top, 1, 1 << 20)
            judges.append((text, genie(held, top)))
        else:
            wanted = {
                **choice.options,
                "attribute": VALUE_NAME,
                "top": top,
                "method": choice.method,
            }
            question = asked("heavy-hitters", **wanted)
            judges.append(
                (
                    text,
                    _judge(
                        question, schema, {} if candidates is None else {"candidates": candidates}
                    ),
                )
            )
    crowds: list[PopularCrowd] = []
    for run in range(runs):
        everybody = ValueCrowd(held, held.counts, top)
        crowds.append(everybody if people is None else held.sampled(count, top, seed, run))
    yield from compare_popular(crowds, judges, top, epsilons, seed, progress)


def _judge(question: Question, schema: Schema, given: Mapping[str, Any]) -> Judge:
    return lambda crowd, epsilon, seed: answered(question, schema, crowd, epsilon, seed, given)
