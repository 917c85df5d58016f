"""Every attribute asked of everybody with a part of epsilon, and tables by EM."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from sottovoce.ground.arguments import plain_option, share
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
from sottovoce.questions.marginals.methods.climbing import (
    CELL_TOLERANCE,
    EM_STEPS,
    Channel,
    Channels,
    Estimates,
    climb,
    cost,
    crowds,
    first_guess,
    typical,
    unbiased,
)
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_ANSWERS = 1 << 24  # joint answers of one table that are counted
MAX_CHANNEL_VALUES = 2048  # of an attribute, whose channel is a dense matrix
MAX_BATCH_ANSWERS = 1 << 20  # joint answers of all tables in one call of climb

BOOTSTRAP_WORK = 1 << 33  # multiplications for the replicates of one group of tables
BOOTSTRAP_REPLICATES = 40  # of the parametric bootstrap
MIN_REPLICATES = 4  # where so many would take too long
PRIOR_REPLICATES = 4  # replicates' worth of the table's mean error, for each of its cells

PREDICTED_TABLES = 3  # of a workload's tables, when an error is predicted
TYPICAL_POPULATIONS = 4  # for each of them
PREDICTION_WORK = 1 << 27  # multiplications for the populations of one table
COUNTED_AT_ONCE = 1 << 17  # in which joint answers are counted
PREDICTION_STEPS = 6000  # divided by the number of attributes


def _joint_answers(
    layouts: Sequence[Layout],
    shape: Places,
    sets: Sequence[Places],
    told: Sequence[Payload],
    people: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    """How many people gave each joint answer to sets of asks: for :meth:`Aggregate.over_rows`.

    Args:
        layouts: of the asks that are told.
        shape: how many answers there are to each ask of a set, for all sets the same.
        sets: which of the asks that are told.
        told: what people said to these asks.
        people: how many said each row; None for one each.

    Returns:
        (sets, joint answers).
    """
    counts = np.zeros((len(sets), prod(shape)), np.int64)
    for start in range(0, len(told[0]), COUNTED_AT_ONCE):
        rows = slice(start, start + COUNTED_AT_ONCE)
        answers = [
            layout.read(payload[rows], layout.fields[0].name).astype(np.int64)
            for layout, payload in zip(layouts, told, strict=True)
        ]  # (rows,) each
        own = None if people is None else people[rows]
        for number, each in enumerate(sets):
            joint = np.ravel_multi_index([answers[ask] for ask in each], shape)
            counts[number] += tally(joint, own, counts.shape[1])
    return counts


class EMTable(NamedTuple):
    """A table and how many steps EM took to it."""

    table: Floats  # (cells,)
    steps: int


class EmFit(Fit):
    """Tables by EM on the counts of joint answers, with errors by a parametric bootstrap.

    ``is_uniform_start``: EM starts from the uniform table, else from a quick unbiased one.
    ``tolerance``: the change of a cell at which it stops.
    """

    errors: ClassVar[str] = BOOTSTRAP

    def __init__(
        self,
        work: Workload,
        aggregate: Aggregate,
        is_uniform_start: bool,
        tolerance: float = CELL_TOLERANCE,
    ) -> None:
        aggregate.require_counts("EM")
        self._work = work
        self._people = aggregate.people
        self._aggregate = aggregate
        self._is_uniform_start = is_uniform_start
        self._tolerance = tolerance
        self._channels = [Channel.of(source) for source in aggregate.plan.cohorts[0].oracles]
        self._estimates: dict[Places, EMTable] = {}
        self._variances: dict[Places, Floats] = {}

    def heard(self, group: Sequence[Places]) -> Floats:
        """The shares of the joint answers about sets of attributes with the same channels: (sets,
        *answers), an axis for each attribute. All are asked for at once.
        """
        shape = tuple(channel.law.shape[1] for channel in self._channels_of(group[0]))
        size = prod(shape)
        if size > MOST_ANSWERS:
            limit = f"the {MOST_ANSWERS:,} counted at once"
            raise InvalidInput(f"marginal: {size:,} joint answers are more than {limit}")
        asks = sorted({place for places in group for place in places})
        layouts = [self._aggregate.plan.cohorts[0].oracles[ask].layout for ask in asks]
        sets = [tuple(asks.index(place) for place in places) for places in group]
        counted = partial(_joint_answers, layouts, shape, sets)
        counts = self._aggregate.over_rows(0, asks, counted)  # (sets, answers)
        return (counts / self._people).reshape(-1, *shape)

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        missing = [places for places in dict.fromkeys(sets) if places not in self._estimates]
        for group in self._alike(missing):
            guesses, steps = self._estimated(self.heard(group), self._channels_of(group[0]))
            for places, guess, count in zip(group, guesses, steps.tolist(), strict=True):
                self._estimates[places] = EMTable(guess.ravel(), count)
        return [self._estimates[places].table for places in sets]

    def is_heard(self, part: Places) -> bool:
        return True

    def steps(self, places: Places) -> int:
        """How many steps EM took; 1 from the uniform start is the failure that the paper saw."""
        self.tables([places])
        return self._estimates[places].steps

    def remark(self, places: Places) -> str:
        if not self._is_uniform_start or self.steps(places) > 1:
            return ""
        return (
            f"EM stopped where it began, at the uniform table: no cell changed by "
            f"{self._tolerance:g} (option tolerance)"
        )

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
        laws = [channel.law for channel in channels]
        return climb(heard, laws, start, steps=steps, tolerance=self._tolerance)

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
        for places, told in zip(group, self.heard(group), strict=True):
            # seeded by the table, whatever else is asked for
            draws = Generator(PCG64([len(places), *places]))
            estimate = unbiased(told, channels)
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
    options: ClassVar[tuple[str, ...]] = ("tolerance",)

    def settle(self, work: Workload, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """``tolerance``, the change of a cell at which EM stops; plans hold it only if it is given.

        Args:
            work: The tables asked for.
            terms: Epsilon and the number of people.
            options: ``tolerance``, between 0 and 1, by default 1e-5 as in the paper.
        """
        self.check_options(options)
        if "tolerance" not in options:
            return {}
        if not share("tolerance", options["tolerance"]):
            raise InvalidInput("tolerance (0) must be greater than 0")
        return {"tolerance": plain_option(options["tolerance"])}

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
        return EmFit(work, aggregate, self.is_uniform_start, _tolerance(options))

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
            total += self._squared_error(asked, terms.people, draws, _tolerance(options))
        return total / (len(indices) * TYPICAL_POPULATIONS)

    def _squared_error(
        self, channels: Channels, people: int, draws: Generator, tolerance: float
    ) -> float:
        """The sum of EM's squared errors over all cells of all typical populations."""
        shape = [len(channel.law) for channel in channels]
        truths = np.stack([typical(shape, draws) for _ in range(TYPICAL_POPULATIONS)])
        heard = np.concatenate([crowds(truth, channels, people, 1, draws) for truth in truths])
        start = first_guess(heard, channels, self.is_uniform_start)
        steps = PREDICTION_STEPS // max(len(channels), 2)
        laws = [channel.law for channel in channels]
        # (populations, *shape)
        guesses, _ = climb(heard, laws, start, PREDICTION_WORK, steps, tolerance)
        return float(((guesses - truths) ** 2).sum())


class InputEM(_Split):
    """Randomized response on every attribute, and EM for each pair of them from the uniform table.

    It may stop at the uniform table: such tables say so, and :meth:`EmFit.failures` counts them.
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
        part = shared(terms.epsilon, len(work.names))
        oracles = [_least_noisy(size, part) for size in work.sizes]
        return {**super().settle(work, terms, options), "oracles": oracles}

    def oracles(self, work: Workload, epsilon: Decimal, options: Options) -> list[PureOracle]:
        part = shared(epsilon, len(work.names))
        names = options["oracles"]
        return [_pure(name, size, part) for name, size in zip(names, work.sizes, strict=True)]


def _tolerance(options: Options) -> float:
    """The change of a cell at which EM stops."""
    return float(share("tolerance", options.get("tolerance", CELL_TOLERANCE)))


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
