"""Every attribute asked of everybody with a part of the budget, and tables by expectation maximization (EM)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache, reduce
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.counts import RowCounts
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import PureOracle, oracle
from sottovoce.oracles.thresholds import shared
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Together
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import BOOTSTRAP, Fit, Floats, Method
from sottovoce.questions.marginals.methods.coefficients import along
from sottovoce.questions.marginals.models.structure import EVENNESS
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

TOLERANCE = 1e-5  # the change of every cell below which a guess has settled: Omega of cormode2018marginal, section 5.4
MOST_STEPS = 50_000
WORK = 1 << 34  # multiplications that one call of EM may take
MOST_ANSWERS = 1 << 24  # joint answers that are counted at once
MOST_VALUES = 2048  # of one attribute, whose channel is a matrix
MOST_AT_ONCE = 1 << 20  # joint answers of tables that are climbed at once
BOOTSTRAP_WORK = 1 << 33  # multiplications that the replicates of tables alike may take
REPLICATES = 40  # of a parametric bootstrap
FEWEST = 4  # where so many would take too long
PRIOR = 4  # replicates' worth of the mean error of a table, for each of its cells
UNIFORM_PART = 0.01  # of a start, since a cell that starts at 0 stays there
PICKED = 3  # of a workload's tables, and as many typical populations for each, when an error is predicted
TYPICAL = 4
TIE = 0.25  # the share of such a table in which its attributes go together in any way
PREDICTION_WORK = 1 << 27
PREDICTION_STEPS = 6000  # divided by the number of axes


@dataclass(frozen=True)
class Channel:
    """What one attribute's oracle makes of a value: the chance of each answer (columns) for each value (rows)."""

    law: Floats
    inverse: Floats  # what an answer adds to each value's unbiased frequency

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, source: PureOracle) -> Channel:
        """All answers that support a value are equally likely, and so are all others: true of grr and hr."""
        values = np.arange(source.size)[:, None]
        if source.names[0] == "hr":
            answers = np.arange(1 << source.bits)
            supports = np.bitwise_count((values + 1) & answers) & 1 == 0
        else:
            answers = np.arange(source.size)
            supports = values == answers
        inside = int(supports[0].sum())
        law = np.where(supports, source.p / inside, (1 - source.p) / (len(answers) - inside))
        return cls(law, (supports - source.q) / source.gap)


def climb(
    heard: Floats, laws: Sequence[Floats], start: Floats, work: int = WORK, steps: int = MOST_STEPS
) -> tuple[Floats, NDArray[np.int64]]:
    """(guess, steps) of EM for many tables at once: rows of shares of joint answers, and of first guesses.

    A row stops when no cell of it changes by TOLERANCE any more, or when so much work or so many steps are done.
    """
    # f(x) <- f(x) sum over y of h(y) P(y|x) / sum over x' of P(y|x') f(x')            cormode2018marginal, section 4.4
    batch, shape = len(start), start.shape[1:]
    cells, answers = prod(shape), prod(law.shape[1] for law in laws)
    joined = joint_law(laws) if batch * cells * answers <= 1 << 18 else None
    most = min(steps, max(2, work // (batch * cost(laws))))
    guess, target = start.reshape(batch, cells).copy(), heard.reshape(batch, answers)
    taken = np.zeros(batch, np.int64)
    active = np.arange(batch)
    current = guess.copy()
    for step in range(1, most + 1):
        if joined is not None:
            ratio = _divided(target, current @ joined)
            update = current * (ratio @ joined.T)
        else:
            ratio = _divided(target, _along_rows(current, shape, [law.T for law in laws]))
            update = current * _along_rows(ratio, [law.shape[1] for law in laws], laws)
        moving = np.abs(update - current).max(axis=1) >= TOLERANCE
        current = update
        taken[active] = step
        if not moving.all():
            guess[active] = current
            active, current, target = active[moving], current[moving], target[moving]
            if not len(active):
                break
    guess[active] = current
    return guess.reshape(start.shape), taken


def cost(laws: Sequence[Floats]) -> int:
    """About how many multiplications one step takes for one table."""
    return int(2 * prod(law.shape[1] for law in laws) * sum(law.shape[0] for law in laws))


def joint_law(laws: Sequence[Floats]) -> Floats:
    """The chance of each joint answer (columns) for each cell (rows)."""
    out: Floats = np.ones((1, 1))
    for law in laws:
        out = np.asarray(np.kron(out, law), dtype=float)
    return out


def _divided(heard: Floats, expected: Floats) -> Floats:
    return np.divide(heard, expected, out=np.zeros_like(heard), where=expected > 0)


def _along_rows(rows: Floats, shape: Sequence[int], matrices: Sequence[Floats]) -> Floats:
    table = np.moveaxis(rows.reshape(len(rows), *shape), 0, -1)
    for matrix in matrices:
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, 0)), 0, len(shape) - 1)
    return np.moveaxis(table, -1, 0).reshape(len(rows), -1)


def unbiased(heard: Floats, channels: Sequence[Channel]) -> Floats:
    """The table whose product of channels gives the shares of joint answers: unbiased, and linear in them."""
    return along(heard, [channel.inverse for channel in channels])


class Made(NamedTuple):
    """A table and how many steps EM took to it."""

    table: Floats
    steps: int


class JointFit(Fit):
    """Tables by EM on the counts of joint answers. ``is_uniform_start``: from the uniform table, else a quick one."""

    errors: ClassVar[str] = BOOTSTRAP

    def __init__(self, work: Workload, aggregate: Aggregate, is_uniform_start: bool) -> None:
        counts = aggregate.counts
        assert isinstance(counts, RowCounts)
        self._work = work
        self._people = aggregate.people
        self._ledger = counts
        self._is_uniform_start = is_uniform_start
        oracles = aggregate.plan.cohorts[0].oracles
        self._channels = [Channel.of(each) for each in oracles]
        self._made: dict[Places, Made] = {}
        self._variances: dict[Places, Floats] = {}

    @cached_property
    def _answers(self) -> list[NDArray[np.int64]]:
        """For each attribute the answers in the different reports."""
        layouts = [each.layout for each in self._ledger.cohorts[0].oracles]
        return [
            layout.read(payload, layout.fields[0].name).astype(np.int64)
            for layout, payload in zip(layouts, self._ledger.told(0)[0], strict=True)
        ]

    def heard(self, places: Places) -> Floats:
        """The shares of the joint answers about some attributes."""
        shape = tuple(self._channels[place].law.shape[1] for place in places)
        if prod(shape) > MOST_ANSWERS:
            raise InvalidInput(
                f"marginal: {prod(shape):,} joint answers are more than the {MOST_ANSWERS:,} counted at once"
            )
        keys = np.ravel_multi_index([self._answers[place] for place in places], shape)
        people = self._ledger.rows[1]
        return (np.bincount(keys, people, prod(shape)) / self._people).reshape(shape)

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        missing = [each for each in dict.fromkeys(sets) if each not in self._made]
        for group in self._alike(missing):
            heard = np.stack([self.heard(each) for each in group])
            guesses, steps = self._estimated(heard, self._law(group[0]))
            for each, guess, count in zip(group, guesses, steps.tolist(), strict=True):
                self._made[each] = Made(guess.ravel(), count)
        return [self._made[each].table for each in sets]

    def is_heard(self, part: Places) -> bool:
        return True

    def steps(self, places: Places) -> int:
        """How many steps EM took; 1 from the uniform start means that it stopped there, as the paper saw it fail."""
        self.tables([places])
        return self._made[places].steps

    def failures(self, sets: Sequence[Places] | None = None) -> int:
        """In how many of these tables (by default the workload's) EM stopped at its first step."""
        listed = list(self._work.sample if sets is None else sets)
        self.tables(listed)
        return sum(self._made[each].steps == 1 for each in listed)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        missing = [each for each in dict.fromkeys(sets) if each not in self._variances]
        for group in self._alike(missing, REPLICATES):
            self._variances.update(zip(group, self._bootstrap(group), strict=True))
        return [self._variances[each] for each in sets]

    def _alike(self, sets: Sequence[Places], copies: int = 1) -> list[list[Places]]:
        """Sets in groups whose attributes have the same channels, so that they can be climbed at once."""
        groups: dict[tuple[int, ...], list[Places]] = {}
        for each in sets:
            groups.setdefault(tuple(id(self._channels[place]) for place in each), []).append(each)
        out = []
        for group in groups.values():
            answers = copies * prod(self._channels[place].law.shape[1] for place in group[0])
            size = max(1, MOST_AT_ONCE // answers)
            out += [group[first : first + size] for first in range(0, len(group), size)]
        return out

    def _law(self, places: Places) -> list[Channel]:
        return [self._channels[place] for place in places]

    def _estimated(
        self, heard: Floats, channels: Sequence[Channel], steps: int = MOST_STEPS
    ) -> tuple[Floats, NDArray[np.int64]]:
        start = first_guess(heard, channels, self._is_uniform_start)
        return climb(heard, [channel.law for channel in channels], start, steps=steps)

    def _bootstrap(self, group: Sequence[Places]) -> list[Floats]:
        """Mean squared errors in crowds that could have sent these reports.

        A crowd's truth is the unbiased table with an error of its own law added, brought to the simplex. Around one
        truth only, an EM that stops at the uniform table would be taken for exact whenever that truth is near it.
        """
        channels = self._law(group[0])
        shape = self._work.shape(group[0])
        laws = [channel.law for channel in channels]
        steps = max(self.steps(places) for places in group)
        copies = min(max(BOOTSTRAP_WORK // (len(group) * steps * cost(laws)), FEWEST), REPLICATES)
        truths, heard = [], []
        for places in group:
            draws = np.random.Generator(np.random.PCG64([len(places), *places]))
            known = unbiased(self.heard(places), channels)
            near = norm_sub(known.ravel()).reshape(shape)
            for told in crowds(near, channels, self._people, copies, draws):
                truth = norm_sub((known + unbiased(told, channels) - near).ravel()).reshape(shape)
                truths.append(truth)
                heard.append(crowds(truth, channels, self._people, 1, draws)[0])
        guesses, _ = self._estimated(np.stack(heard), channels, 2 * steps)
        errors = (guesses - np.stack(truths)) ** 2
        means = errors.reshape(len(group), copies, -1).mean(axis=1)
        # a cell that is 0 in every replicate is not known exactly: a few more with the table's mean error
        return list((copies * means + PRIOR * means.mean(axis=1, keepdims=True)) / (copies + PRIOR))


def first_guess(heard: Floats, channels: Sequence[Channel], is_uniform: bool) -> Floats:
    """Where EM starts for rows of joint answers: the uniform table, or the unbiased one brought to the simplex.

    The latter is the quick start of zhang2018calm, section 3.6, kept off the edges of the simplex.
    """
    shape = tuple(len(channel.law) for channel in channels)
    even = np.full((len(heard), *shape), 1 / prod(shape))
    if is_uniform:
        return even
    near = np.stack([norm_sub(unbiased(each, channels).ravel()).reshape(shape) for each in heard])
    return (1 - UNIFORM_PART) * near + UNIFORM_PART * even


def crowds(truth: Floats, channels: Sequence[Channel], people: int, count: int, draws: np.random.Generator) -> Floats:
    """Shares of the joint answers of so many crowds of people who follow ``truth``."""
    answers = [channel.law.shape[1] for channel in channels]
    if truth.size * prod(answers) <= 1 << 16:
        held = _whole(truth.ravel() * people)
        law = joint_law([channel.law for channel in channels])
        law /= law.sum(axis=1, keepdims=True)
        told = np.stack([draws.multinomial(held, law).sum(axis=0) for _ in range(count)])
        return np.asarray(told / people).reshape(count, *answers)
    law = along(truth, [channel.law.T for channel in channels]).ravel()
    return np.asarray(draws.multinomial(people, law / law.sum(), count) / people).reshape(count, *answers)


def _whole(people: Floats) -> NDArray[np.int64]:
    """Numbers of people rounded to whole ones, so that the sum stays: those nearest to the next one round up."""
    held = np.floor(people).astype(np.int64)
    left = round(float(people.sum())) - int(held.sum())
    held[np.argsort(held - people, kind="stable")[:left]] += 1
    return held


class _Split(Method):
    """Everybody is asked every attribute, with an equal part of epsilon."""

    is_uniform_start: ClassVar[bool]

    @abstractmethod
    def oracles(self, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> list[PureOracle]:
        """The oracle of each attribute, at its part of the budget."""

    def _fits(self, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> str | None:
        if max(work.sizes) > MOST_VALUES:
            return f"an attribute has {max(work.sizes):,} values, more than the {MOST_VALUES:,} of the largest channel"
        try:
            answers = [Channel.of(each).law.shape[1] for each in self.oracles(work, epsilon, options)]
        except InvalidInput as wrong:
            return f"with epsilon/{len(work.names)} for each attribute, {wrong}"
        largest = max(prod(answers[place] for place in places) for places in work.sample)
        if largest > MOST_ANSWERS:
            return f"a table has {largest:,} joint answers, more than the {MOST_ANSWERS:,} that are counted at once"
        return None

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> Together:
        oracles = self.oracles(work, epsilon, options)
        asks = [Ask(Cells.of(schema, name), each) for name, each in zip(work.names, oracles, strict=True)]
        return Together([Cohort(tuple(asks))])

    def fit(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> JointFit:
        return JointFit(work, aggregate, self.is_uniform_start)

    def shares(self, work: Workload, options: Mapping[str, Any], parts: Sequence[Places]) -> list[float]:
        return [1.0] * len(parts)

    def predict(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
        """EM itself on a few typical tables: no formula is known for its error."""
        channels = [Channel.of(each) for each in self.oracles(work, terms.epsilon, options)]
        draws = np.random.Generator(np.random.PCG64(1))
        total = 0.0
        picked = [work.sample[at] for at in np.linspace(0, len(work.sample) - 1, 2 * PICKED + 1).astype(int)[1::2]]
        for places in picked:
            own = [channels[place] for place in places]
            truths = np.stack([typical(work.shape(places), draws) for _ in range(TYPICAL)])
            heard = np.concatenate([crowds(truth, own, terms.people, 1, draws) for truth in truths])
            start = first_guess(heard, own, self.is_uniform_start)
            steps = PREDICTION_STEPS // max(len(own), 2)
            guesses, _ = climb(heard, [channel.law for channel in own], start, PREDICTION_WORK, steps)
            total += float(((guesses - truths) ** 2).sum())
        return total / (PICKED * TYPICAL)


def typical(shape: Sequence[int], draws: np.random.Generator) -> Floats:
    """A table of attributes that are loosely tied: mostly independent, partly any table."""
    singles = [draws.dirichlet([EVENNESS] * size) for size in shape]
    anything = draws.dirichlet([EVENNESS] * prod(shape)).reshape(shape)
    return (1 - TIE) * reduce(np.multiply.outer, singles) + TIE * anything


class InputEM(_Split):
    """Randomized response on every attribute, and EM for each pair of them from the uniform table.

    It may stop at the uniform table: :meth:`JointFit.failures` counts how often.
    """

    name: ClassVar[str] = "inp-em"
    about: ClassVar[str] = "every attribute with a part of epsilon, EM for pairs"
    source: ClassVar[str] = "cormode2018marginal, section 4.4"
    is_baseline: ClassVar[bool] = True
    is_uniform_start: ClassVar[bool] = True

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        if work.order > 2:
            return f"it answers tables of at most 2 attributes, and up_to is {work.order}"
        return self._fits(work, terms.epsilon, {})

    def oracles(self, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> list[PureOracle]:
        return [_pure("grr", size, shared(epsilon, len(work.names))) for size in work.sizes]


class SplitEM(_Split):
    """The oracle of least variance for every attribute, and EM for any table from an unbiased quick start.

    Of oracles those are taken whose joint answers can be counted: ``grr`` for few values and ``hr``, which at small
    epsilon has the variance of ``oue``, for many.
    """

    name: ClassVar[str] = "em"
    about: ClassVar[str] = "every attribute with a part of epsilon, EM from a quick start"
    source: ClassVar[str] = "zhang2018calm, section 3.6"
    is_baseline: ClassVar[bool] = True
    is_uniform_start: ClassVar[bool] = False

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        try:
            return self._fits(work, terms.epsilon, self.settle(work, terms))
        except InvalidInput as wrong:
            return f"with epsilon/{len(work.names)} for each attribute, {wrong}"

    def settle(self, work: Workload, terms: Terms, **options: Any) -> dict[str, Any]:
        super().settle(work, terms, **options)
        return {"oracles": [_least(size, shared(terms.epsilon, len(work.names))) for size in work.sizes]}

    def oracles(self, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> list[PureOracle]:
        part = shared(epsilon, len(work.names))
        return [_pure(name, size, part) for name, size in zip(options["oracles"], work.sizes, strict=True)]


@lru_cache(maxsize=1024)
def _pure(name: str, size: int, epsilon: Decimal) -> PureOracle:
    made = oracle(name, size=size, epsilon=epsilon)
    if not isinstance(made, PureOracle) or name not in ("grr", "hr"):
        raise InvalidInput(f"plan: oracle ({name}) must be grr or hr, whose joint answers can be counted")
    return made


def _least(size: int, epsilon: Decimal) -> str:
    return min(("grr", "hr"), key=lambda name: _pure(name, size, epsilon).noise(1).floor)
