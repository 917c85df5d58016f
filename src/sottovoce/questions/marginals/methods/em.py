"""Every attribute asked of everybody with a part of epsilon, and tables by EM.

EM: expectation maximization. f(x) is a table over cells x, P(y | x) the channel of an answer y, and
h(y) the shares reported. A joint answer is what one person says to several attributes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial, reduce
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import PureOracle, oracle
from sottovoce.oracles.base import tally
from sottovoce.oracles.layout import Layout, Payload
from sottovoce.oracles.thresholds import shared
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import BOOTSTRAP, Fit, Floats, MarginalMethod
from sottovoce.questions.marginals.methods.coefficients import along, along_rows
from sottovoce.questions.marginals.models.structure import EVENNESS
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

Estimates = tuple[Floats, NDArray[np.int64]]  # (tables, *values) and (tables,)

# change of a cell at which EM stops: Omega of cormode2018marginal, section 5.4
CELL_TOLERANCE = 1e-5
EM_STEPS = 50_000  # of one table at most
EM_WORK = 1 << 34  # multiplications of one call of climb at most

MOST_ANSWERS = 1 << 24  # joint answers of one table that are counted
MAX_CHANNEL_VALUES = 2048  # of an attribute, whose channel is a dense matrix
MAX_BATCH_ANSWERS = 1 << 20  # joint answers of all tables in one call of climb
MAX_JOINT_LAW_WORK = 1 << 18  # tables x cells x answers up to which one joint matrix is faster
MAX_CROWD_LAW = 1 << 16  # cells x answers up to which the people of a crowd are fixed

BOOTSTRAP_WORK = 1 << 33  # multiplications for the replicates of one group of tables
BOOTSTRAP_REPLICATES = 40  # of the parametric bootstrap
MIN_REPLICATES = 4  # where so many would take too long
PRIOR_REPLICATES = 4  # replicates' worth of the table's mean error, for each of its cells
UNIFORM_PART = 0.01  # of a start, since a cell that starts at 0 stays there

PREDICTED_TABLES = 3  # of a workload's tables, when an error is predicted
TYPICAL_POPULATIONS = 4  # for each of them
TYPICAL_TIE = 0.25  # the share of such a population in which attributes go together in any way
PREDICTION_WORK = 1 << 27  # multiplications for the populations of one table
PREDICTION_STEPS = 6000  # divided by the number of attributes


@dataclass(frozen=True)
class Channel:
    """The randomizer of one attribute as a matrix, and its unbiased inverse."""

    law: Floats  # (values, answers): P(y | x), so that rows sum to 1
    inverse: Floats  # (values, answers): what an answer adds to each value's unbiased frequency

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, source: PureOracle) -> Channel:
        """Of ``grr`` or ``hr``: answers that support a value are alike, and so are all others."""
        values = np.arange(source.size)[:, None]  # (values, 1)
        if source.names[0] == "hr":
            # row x + 1 of the Hadamard matrix has a +1 at y where <x + 1, y> is even
            answers = np.arange(1 << source.bits)
            supports = np.bitwise_count((values + 1) & answers) & 1 == 0
        else:
            answers = np.arange(source.size)
            supports = values == answers
        # supports: (values, answers), and every value is supported by equally many answers
        supporting = int(supports[0].sum())
        chance_inside = source.p / supporting
        chance_outside = (1 - source.p) / (len(answers) - supporting)
        law = np.where(supports, chance_inside, chance_outside)
        # f(x) = (share of answers that support x - q) / (p - q)
        inverse = (supports - source.q) / source.gap
        return cls(law, inverse)


Channels = Sequence[Channel]  # one for each attribute of a table


def climb(
    heard: Floats, laws: Sequence[Floats], start: Floats, work: int = EM_WORK, steps: int = EM_STEPS
) -> Estimates:
    """EM for many tables over the same channels at once.

    A table stops when no cell of it changes by CELL_TOLERANCE any more; all stop at the limits.

    Args:
        heard: Shares h(y) of the joint answers, (tables, *answers): one axis for each attribute.
        laws: The channel of each attribute, (values, answers).
        start: First guesses, (tables, *values).
        work: Multiplications that may be spent on all tables together.
        steps: The most steps of one table.

    Returns:
        The guesses, shaped as ``start``, and the steps that each table took, (tables,).
    """
    batch, shape = len(start), start.shape[1:]
    answer_shape = [law.shape[1] for law in laws]
    cells, answers = prod(shape), prod(answer_shape)
    # One matrix for all axes is fastest while small; else the axes are multiplied one by one.
    joint = None
    if batch * cells * answers <= MAX_JOINT_LAW_WORK:
        joint = joint_law(laws)  # (cells, answers)
    transposed = [law.T for law in laws]
    affordable = max(2, work // (batch * cost(laws)))
    guess = start.reshape(batch, cells).copy()
    steps_taken = np.zeros(batch, np.int64)
    # Only the tables that still move are computed: ``active`` are their rows of ``guess``.
    active = np.arange(batch)
    current = guess.copy()  # (active, cells)
    shares = heard.reshape(batch, answers)  # (active, answers)
    for step in range(1, min(steps, affordable) + 1):
        # f(x) <- f(x) sum_y P(y|x) h(y) / sum_x' P(y|x') f(x')     cormode2018marginal, section 4.4
        if joint is not None:
            ratio = _ratio(shares, current @ joint)  # (active, answers)
            gain = ratio @ joint.T  # (active, cells)
        else:
            ratio = _ratio(shares, along_rows(current, shape, transposed))
            gain = along_rows(ratio, answer_shape, laws)
        update = current * gain
        is_moving = np.abs(update - current).max(axis=1) >= CELL_TOLERANCE  # (active,)
        current = update
        steps_taken[active] = step
        if not is_moving.all():
            guess[active] = current
            active, current, shares = active[is_moving], current[is_moving], shares[is_moving]
            if not len(active):
                break
    guess[active] = current
    return guess.reshape(start.shape), steps_taken


def cost(laws: Sequence[Floats]) -> int:
    """About how many multiplications one step takes for one table."""
    answers = prod(law.shape[1] for law in laws)
    values = sum(law.shape[0] for law in laws)
    return int(2 * answers * values)  # there and back, one axis after the other


def joint_law(laws: Sequence[Floats]) -> Floats:
    """The chance of each joint answer (columns) for each cell (rows)."""
    joint: Floats = np.ones((1, 1))
    for law in laws:
        joint = np.asarray(np.kron(joint, law), dtype=float)
    return joint


def _ratio(shares: Floats, expected: Floats) -> Floats:
    """Reported over expected shares, 0 for answers that the guess makes impossible."""
    return np.divide(shares, expected, out=np.zeros_like(shares), where=expected > 0)


def unbiased(heard: Floats, channels: Channels) -> Floats:
    """The table (*values) whose product of channels gives the shares of joint answers (*answers).

    Unbiased, and linear in the shares; cells may be negative.
    """
    return along(heard, [channel.inverse for channel in channels])


def first_guess(heard: Floats, channels: Channels, is_uniform: bool) -> Floats:
    """Where EM starts: at the uniform tables, or at the unbiased ones brought to the simplex.

    The latter is the quick start of zhang2018calm, section 3.6, kept off the edges of the simplex.

    ``heard`` are shares of joint answers, (tables, *answers); the guesses are (tables, *values).
    """
    shape = tuple(len(channel.law) for channel in channels)
    uniform = np.full((len(heard), *shape), 1 / prod(shape))
    if is_uniform:
        return uniform
    projected = []
    for shares in heard:
        table = norm_sub(unbiased(shares, channels).ravel())
        projected.append(table.reshape(shape))
    return (1 - UNIFORM_PART) * np.stack(projected) + UNIFORM_PART * uniform


def crowds(truth: Floats, channels: Channels, people: int, count: int, draws: Generator) -> Floats:
    """Shares (count, *answers) of the joint answers of so many crowds who follow ``truth``."""
    answers = [channel.law.shape[1] for channel in channels]
    if truth.size * prod(answers) <= MAX_CROWD_LAW:
        # the people are fixed, as in a survey: only their answers are random
        cell_people = _rounded(truth.ravel() * people)  # (cells,)
        law = joint_law([channel.law for channel in channels])  # (cells, answers)
        law /= law.sum(axis=1, keepdims=True)  # rounding may leave a sum just above 1
        answer_counts = [draws.multinomial(cell_people, law).sum(axis=0) for _ in range(count)]
        shares = np.asarray(np.stack(answer_counts) / people)
    else:
        # too many joint answers for that: people are drawn anew, which varies a little more
        expected = along(truth, [channel.law.T for channel in channels]).ravel()  # (answers,)
        shares = np.asarray(draws.multinomial(people, expected / expected.sum(), count) / people)
    return shares.reshape(count, *answers)


def _rounded(people: Floats) -> NDArray[np.int64]:
    """Numbers of people as integers of the same sum: those nearest to the next one round up."""
    whole = np.floor(people).astype(np.int64)
    missing = round(float(people.sum())) - int(whole.sum())
    nearest_first = np.argsort(whole - people, kind="stable")
    whole[nearest_first[:missing]] += 1
    return whole


def typical(shape: Sequence[int], draws: Generator) -> Floats:
    """A table of attributes that are loosely tied: mostly independent, partly any table."""
    singles = [draws.dirichlet([EVENNESS] * size) for size in shape]
    tied = draws.dirichlet([EVENNESS] * prod(shape)).reshape(shape)
    independent = reduce(np.multiply.outer, singles)
    return (1 - TYPICAL_TIE) * independent + TYPICAL_TIE * tied


def _joint_answers(
    layouts: Sequence[Layout],
    shape: Places,
    told: Sequence[Payload],
    people: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    """How many people gave each joint answer to some asks: for :meth:`Aggregate.over_rows`."""
    answers = [
        layout.read(payload, layout.fields[0].name).astype(np.int64)
        for layout, payload in zip(layouts, told, strict=True)
    ]  # (rows,) each
    return tally(np.ravel_multi_index(answers, shape), people, prod(shape))


class EMTable(NamedTuple):
    """A table and how many steps EM took to it."""

    table: Floats  # (cells,)
    steps: int


class EmFit(Fit):
    """Tables by EM on the counts of joint answers, with errors by a parametric bootstrap.

    ``is_uniform_start``: EM starts from the uniform table, else from a quick unbiased one.
    """

    errors: ClassVar[str] = BOOTSTRAP

    def __init__(self, work: Workload, aggregate: Aggregate, is_uniform_start: bool) -> None:
        aggregate.require_counts("EM")
        self._work = work
        self._people = aggregate.people
        self._aggregate = aggregate
        self._is_uniform_start = is_uniform_start
        self._channels = [Channel.of(source) for source in aggregate.plan.cohorts[0].oracles]
        self._estimates: dict[Places, EMTable] = {}
        self._variances: dict[Places, Floats] = {}

    def heard(self, places: Places) -> Floats:
        """The shares of the joint answers about some attributes, an axis of answers for each."""
        shape = tuple(self._channels[place].law.shape[1] for place in places)
        size = prod(shape)
        if size > MOST_ANSWERS:
            limit = f"the {MOST_ANSWERS:,} counted at once"
            raise InvalidInput(f"marginal: {size:,} joint answers are more than {limit}")
        layouts = [self._aggregate.plan.cohorts[0].oracles[place].layout for place in places]
        counts = self._aggregate.over_rows(0, places, partial(_joint_answers, layouts, shape))
        return (counts / self._people).reshape(shape)

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        missing = [places for places in dict.fromkeys(sets) if places not in self._estimates]
        for group in self._alike(missing):
            heard = np.stack([self.heard(places) for places in group])  # (tables, *answers)
            guesses, steps = self._estimated(heard, self._channels_of(group[0]))
            for places, guess, count in zip(group, guesses, steps.tolist(), strict=True):
                self._estimates[places] = EMTable(guess.ravel(), count)
        return [self._estimates[places].table for places in sets]

    def is_heard(self, part: Places) -> bool:
        return True

    def steps(self, places: Places) -> int:
        """How many steps EM took; 1 from the uniform start is the failure that the paper saw."""
        self.tables([places])
        return self._estimates[places].steps

    def failures(self, sets: Sequence[Places] | None = None) -> int:
        """In how many of these tables (by default the workload's) EM stopped at its first step."""
        listed = list(self._work.sample if sets is None else sets)
        self.tables(listed)
        return sum(self._estimates[places].steps == 1 for places in listed)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        missing = [places for places in dict.fromkeys(sets) if places not in self._variances]
        for group in self._alike(missing, BOOTSTRAP_REPLICATES):
            self._variances.update(zip(group, self._bootstrap(group), strict=True))
        return [self._variances[places] for places in sets]

    def _alike(self, sets: Sequence[Places], copies: int = 1) -> list[list[Places]]:
        """Sets in groups of the same channels, small enough that EM takes each group at once."""
        by_channels: dict[tuple[int, ...], list[Places]] = {}
        for places in sets:
            # Channel.of caches, so that equal oracles have one and the same channel
            key = tuple(id(channel) for channel in self._channels_of(places))
            by_channels.setdefault(key, []).append(places)
        groups = []
        for alike in by_channels.values():
            answers = prod(channel.law.shape[1] for channel in self._channels_of(alike[0]))
            size = max(1, MAX_BATCH_ANSWERS // (copies * answers))
            groups += [alike[first : first + size] for first in range(0, len(alike), size)]
        return groups

    def _channels_of(self, places: Places) -> list[Channel]:
        return [self._channels[place] for place in places]

    def _estimated(self, heard: Floats, channels: Channels, steps: int = EM_STEPS) -> Estimates:
        """(guesses, steps taken) of EM for rows of joint answers, as :func:`climb` has them."""
        start = first_guess(heard, channels, self._is_uniform_start)
        return climb(heard, [channel.law for channel in channels], start, steps=steps)

    def _bootstrap(self, group: Sequence[Places]) -> list[Floats]:
        """Mean squared errors (cells,) of each table in crowds that could have sent these reports.

        A crowd's truth is the unbiased table with an error of its own law added, brought to the
        simplex. Around one truth only, an EM that stops at the uniform table would be taken for
        exact whenever that truth is near it.
        """
        channels = self._channels_of(group[0])
        shape = self._work.shape(group[0])
        step_cost = cost([channel.law for channel in channels])
        steps = max(self.steps(places) for places in group)
        affordable = BOOTSTRAP_WORK // (len(group) * steps * step_cost)
        copies = min(max(affordable, MIN_REPLICATES), BOOTSTRAP_REPLICATES)
        truths, heard = [], []  # copies of the first table, then of the second, ...
        for places in group:
            # seeded by the table, whatever else is asked for
            draws = Generator(PCG64([len(places), *places]))
            estimate = unbiased(self.heard(places), channels)
            centre = norm_sub(estimate.ravel()).reshape(shape)
            for shares in crowds(centre, channels, self._people, copies, draws):
                shifted = estimate + unbiased(shares, channels) - centre
                truth = norm_sub(shifted.ravel()).reshape(shape)
                truths.append(truth)
                heard.append(crowds(truth, channels, self._people, 1, draws)[0])
        guesses, _ = self._estimated(np.stack(heard), channels, 2 * steps)
        errors = (guesses - np.stack(truths)) ** 2  # (tables x copies, *shape)
        means = errors.reshape(len(group), copies, -1).mean(axis=1)  # (tables, cells)
        # A cell that is 0 in every replicate is not known exactly: a few more with the mean error.
        prior = PRIOR_REPLICATES * means.mean(axis=1, keepdims=True)  # (tables, 1)
        return list((copies * means + prior) / (copies + PRIOR_REPLICATES))


class _Split(MarginalMethod):
    """Everybody is asked every attribute, with an equal part of epsilon."""

    is_uniform_start: ClassVar[bool]

    @abstractmethod
    def oracles(self, work: Workload, epsilon: Decimal, options: Options) -> list[PureOracle]:
        """The oracle of each attribute, at its part of ``epsilon``."""

    def _fits(self, work: Workload, epsilon: Decimal, options: Options) -> str | None:
        """Why the channels or the joint answers are too large; None if they are not."""
        largest = max(work.sizes)
        if largest > MAX_CHANNEL_VALUES:
            limit = f"the {MAX_CHANNEL_VALUES:,} of the largest channel"
            return f"an attribute has {largest:,} values, more than {limit}"
        try:
            oracles = self.oracles(work, epsilon, options)
            answers = [Channel.of(source).law.shape[1] for source in oracles]
        except InvalidInput as wrong:
            return f"with epsilon/{len(work.names)} for each attribute, {wrong}"
        most = max(prod(answers[place] for place in places) for places in work.sample)
        if most > MOST_ANSWERS:
            limit = f"the {MOST_ANSWERS:,} that are counted at once"
            return f"a table has {most:,} joint answers, more than {limit}"
        return None

    def cohorts(
        self,
        schema: Schema,
        work: Workload,
        epsilon: Decimal,
        options: Options,
    ) -> Listed:
        asks = []
        oracles = self.oracles(work, epsilon, options)
        for name, source in zip(work.names, oracles, strict=True):
            asks.append(Ask(Cells.of(schema, name), source))
        return Listed([Cohort(tuple(asks))], keep="rows")

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> EmFit:
        return EmFit(work, aggregate, self.is_uniform_start)

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        return [1.0] * len(parts)

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        """EM itself on a few typical tables: no formula is known for its error."""
        oracles = self.oracles(work, terms.epsilon, options)
        channels = [Channel.of(source) for source in oracles]
        draws = Generator(PCG64(1))
        # the tables in the middle of the first, second and last third of the workload
        ends_and_middles = np.linspace(0, len(work.sample) - 1, 2 * PREDICTED_TABLES + 1)
        indices = np.unique(ends_and_middles.astype(int)[1::2])
        total = 0.0
        for index in indices:
            asked = [channels[place] for place in work.sample[index]]
            total += self._squared_error(asked, terms.people, draws)
        return total / (len(indices) * TYPICAL_POPULATIONS)

    def _squared_error(self, channels: Channels, people: int, draws: Generator) -> float:
        """The sum of EM's squared errors over all cells of all typical populations."""
        shape = [len(channel.law) for channel in channels]
        truths = np.stack([typical(shape, draws) for _ in range(TYPICAL_POPULATIONS)])
        heard = np.concatenate([crowds(truth, channels, people, 1, draws) for truth in truths])
        start = first_guess(heard, channels, self.is_uniform_start)
        steps = PREDICTION_STEPS // max(len(channels), 2)
        laws = [channel.law for channel in channels]
        guesses, _ = climb(heard, laws, start, PREDICTION_WORK, steps)  # (populations, *shape)
        return float(((guesses - truths) ** 2).sum())


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

    def oracles(self, work: Workload, epsilon: Decimal, options: Options) -> list[PureOracle]:
        part = shared(epsilon, len(work.names))
        return [_pure("grr", size, part) for size in work.sizes]


class SplitEM(_Split):
    """The oracle of least variance for every attribute, and EM for any table from a quick start.

    Of oracles those are taken whose joint answers can be counted: ``grr`` for few values, and for
    many ``hr``, which at small epsilon has the variance of ``oue``.
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

    def settle(self, work: Workload, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        part = shared(terms.epsilon, len(work.names))
        return {"oracles": [_least_noisy(size, part) for size in work.sizes]}

    def oracles(self, work: Workload, epsilon: Decimal, options: Options) -> list[PureOracle]:
        part = shared(epsilon, len(work.names))
        names = options["oracles"]
        return [_pure(name, size, part) for name, size in zip(names, work.sizes, strict=True)]


@lru_cache(maxsize=1024)
def _pure(name: str, size: int, epsilon: Decimal) -> PureOracle:
    """An oracle whose joint answers can be counted; any other is refused."""
    source = oracle(name, size=size, epsilon=epsilon)
    if not isinstance(source, PureOracle) or name not in ("grr", "hr"):
        rule = "must be grr or hr, whose joint answers can be counted"
        raise InvalidInput(f"plan: oracle ({name}) {rule}")
    return source


def _least_noisy(size: int, epsilon: Decimal) -> str:
    """The name of the oracle whose estimate of a value of frequency 0 varies least."""
    return min(("grr", "hr"), key=lambda name: _pure(name, size, epsilon).noise(1).floor)
