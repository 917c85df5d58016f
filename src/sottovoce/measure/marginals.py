"""Marginals, method against method: people sampled, whispers simulated, tables beside the truth."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.api.planning import plan
from sottovoce.api.surveys import asked
from sottovoce.device.simulation import simulate
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.measure.choices import MethodChoice
from sottovoce.measure.populations import Population
from sottovoce.measure.runs import WARM_UP_PEOPLE, deviation, seeded
from sottovoce.oracles import Noise
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.postprocessing import postprocess
from sottovoce.postprocessing.methods import find as find_repair
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.plan import Plan
from sottovoce.questions.marginals.estimate import MAX_TABLE_CELLS, cell_sums
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.models.bounds import stated_variances
from sottovoce.questions.method import AUTO
from sottovoce.results.estimate import Table
from sottovoce.schema import Categorical, Schema

if TYPE_CHECKING:
    from sottovoce.results.joint import JointEstimate

Floats = NDArray[np.float64]
Names = tuple[str, ...]

# sets of attributes that are listed to draw from; of more, sets are drawn until enough differ
MAX_LISTED_SETS = 100_000
LEVELS = (0.8, 0.95, 0.99)  # of the intervals whose coverage is counted
# a cell that is exact, and known to be, must not miss the truth by a float's last bit
INTERVAL_ROUNDING = 1e-12
MOST_LOOKED_AT = 64  # cohorts of a large family that are looked at for their views


@dataclass(frozen=True)
class MarginalsComparison:
    """What ``runs`` simulated crowds measured of a method at one epsilon; None if it does not fit.

    ``sse`` and ``tvd`` are means over the tables asked for, then over runs, of the sum of squared
    errors and of the total variation distance; ``sse_std`` and ``tvd_std`` their standard
    deviations over runs (None for one run). ``planned_for`` is how many attributes the plan's
    tables have, and ``k`` how many those that were asked for. ``postprocess`` names the repair
    after which they were judged, None if they were not repaired.
    """

    method: str
    epsilon: float
    k: int
    sse: float | None = None
    sse_std: float | None = None
    tvd: float | None = None
    tvd_std: float | None = None
    # to plan, simulate, aggregate, estimate and answer; median over runs
    seconds: float | None = None
    chosen: str | None = None  # the method that the plan has, of interest for auto
    views: int | None = None  # cohorts
    view_size: int | None = None  # attributes that one of them reads, at most
    view_cells: int | None = None  # values that one of them reports, at most
    people: int | None = None
    queries: int | None = None
    runs: int | None = None
    coverage: float | None = None  # share of cells inside their 95% interval, if asked for
    planned_for: int | None = None
    postprocess: str | None = None  # of unbiased tables alone
    reason: str | None = None  # why there are no figures

    def to_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True, eq=False)
class Crowd:
    """The people of one run, the tables they are asked for, and what those truly are."""

    columns: Mapping[str, NDArray[Any]]
    queries: tuple[Names, ...]
    truth: tuple[Floats, ...]

    @property
    def people(self) -> int:
        return len(next(iter(self.columns.values())))

    def asked(self, queries: Sequence[Names], sizes: Mapping[str, int]) -> Crowd:
        """The same people, asked for other tables."""
        return Crowd(
            self.columns,
            tuple(queries),
            tuple(true_table(self.columns, each, sizes) for each in queries),
        )


@dataclass(frozen=True)
class Measurement:
    """One run of one plan."""

    sse: float
    tvd: float
    seconds: float  # without planning
    coverage: float | None = None
    postprocess: str | None = None  # what repaired its tables


def coded(schema: Schema) -> Schema:
    """The same attributes by their codes, which a simulation reads without looking labels up."""
    return Schema(
        **{name: Categorical(range(attribute.size)) for name, attribute in schema.items()}
    )


def true_table(
    columns: Mapping[str, NDArray[Any]], names: Names, sizes: Mapping[str, int]
) -> Floats:
    """The frequencies of a table's cells, the last attribute varying fastest.

    >>> people = {"a": np.array([0, 1, 1, 1]), "b": np.array([0, 2, 2, 0])}
    >>> true_table(people, ("a", "b"), {"a": 2, "b": 3}).tolist()
    [0.25, 0.0, 0.0, 0.25, 0.0, 0.5]
    """
    shape = tuple(sizes[name] for name in names)
    cells = np.ravel_multi_index(tuple(columns[name] for name in names), shape)
    return np.bincount(cells, minlength=prod(shape)) / len(cells)


def sampled(population: Population, people: int, seed: int, run: int) -> Crowd:
    """People drawn with replacement, not asked for anything yet."""
    rows = seeded(seed, run, 0).integers(0, population.people, people)
    columns = {
        name: column.codes.astype(np.min_scalar_type(column.attribute.size - 1))[rows]
        for name, column in population.columns.items()
    }
    return Crowd(columns, (), ())


def random_queries(
    schema: Schema, k: int, count: int, seed: int, run: int, most_cells: int | None = None
) -> list[Names]:
    """``count`` different sets of ``k`` attributes, or all; only of tables of ``most_cells``."""
    names = tuple(schema)
    draws = seeded(seed, run, 1, k)

    def fits(places: Sequence[int]) -> bool:
        return (
            most_cells is None or prod(schema[names[place]].size for place in places) <= most_cells
        )

    if comb(len(names), k) <= max(MAX_LISTED_SETS, 4 * count):
        every = [each for each in combinations(range(len(names)), k) if fits(each)]
        chosen = (
            sorted(draws.choice(len(every), min(count, len(every)), replace=False).tolist())
            if every
            else []
        )
        return [tuple(names[place] for place in every[number]) for number in chosen]
    found: dict[tuple[int, ...], None] = {}
    for _ in range(100 * count):
        drawn = tuple(sorted(draws.choice(len(names), k, replace=False).tolist()))
        if len(found) < count and fits(drawn):
            found[drawn] = None
    return [tuple(names[place] for place in each) for each in found]


def whispers_seed(made: Plan, seed: int, run: int) -> int:
    """Plans with the same cohorts hear the same crowd: what differs between methods is then never
    luck of the draw.
    """
    digest = hashlib.sha256(json.dumps(made.cohorts.to_json(), sort_keys=True).encode()).digest()
    mixed = np.random.SeedSequence([seed, run, 2, int.from_bytes(digest[:8], "little")])
    return int(mixed.generate_state(1, np.uint64)[0])


def heard(made: Plan, crowd: Crowd, seed: int, run: int) -> Aggregate:
    """What everybody's simulated device says, added up."""
    return Aggregate(made).add(simulate(made, crowd.columns, whispers_seed(made, seed, run)))


class Judged(NamedTuple):
    """How good the answers of one run are."""

    sse: float  # mean over tables
    tvd: float  # mean over tables
    seconds: float  # that the answers took
    coverages: dict[float, float]  # by level, the share of cells inside their interval, if asked
    width: float | None  # mean of their 95% intervals, if asked
    postprocess: str | None  # what repaired the tables; None if none was

    @property
    def coverage(self) -> float | None:
        """The share of cells inside their 95% interval, if asked for."""
        return self.coverages.get(0.95)


def judged(
    estimate: JointEstimate, crowd: Crowd, coverage: bool = False, repair: str | None = None
) -> Judged:
    """Judge the tables that a crowd is asked for.

    Args:
        estimate: What the crowd said.
        crowd: The people, with the true tables.
        coverage: Whether to count the cells inside their intervals.
        repair: Of :mod:`sottovoce.postprocessing`: unbiased tables go through it first.
            Other methods have brought theirs to frequencies themselves.
    """
    start = perf_counter()
    answers = estimate.values_of(crowd.queries)
    sets = [estimate.work.places(names) for names in crowd.queries]
    is_repaired = repair is not None and any(estimate.fit.is_unbiased(each) for each in sets)
    tables: list[Table] = []
    if coverage or is_repaired:  # else nobody needs variances, which may take long
        tables = _tables(estimate, crowd.queries, sets, answers)
    if repair is not None and is_repaired:
        tables = [postprocess(each, repair) if each.is_unbiased else each for each in tables]
        answers = [each.values for each in tables]
    seconds = perf_counter() - start
    errors = [answer - true for answer, true in zip(answers, crowd.truth, strict=True)]
    sse = float(np.mean([float(error @ error) for error in errors]))
    tvd = float(np.mean([np.abs(error).sum() / 2 for error in errors]))
    coverages: dict[float, float] = {}
    width = None
    if coverage:
        coverages = {level: _coverage(tables, crowd.truth, level) for level in LEVELS}
        width = _mean_width(tables)
    return Judged(sse, tvd, seconds, coverages, width, repair if is_repaired else None)


def _tables(
    estimate: JointEstimate,
    queries: Sequence[Names],
    sets: Sequence[tuple[int, ...]],
    answers: Sequence[Floats],
) -> list[Table]:
    """The answers with their errors, as tables give them; without labels."""
    fit, people = estimate.fit, estimate.people
    stated = stated_variances(estimate.work, fit, sets, answers)
    return [
        Table(
            names,
            (),
            values,
            variances,
            people,
            Noise(float(variances.mean()), 0.0),
            is_unbiased=fit.is_unbiased(places),
            spread=cell_sums(fit, places, values, variances, people),
        )
        for names, places, values, variances in zip(queries, sets, answers, stated, strict=True)
    ]


def _coverage(tables: Sequence[Table], truth: Sequence[Floats], level: float) -> float:
    """The share of all tables' cells whose interval, as a table gives it, holds the truth."""
    inside = []
    for table, true in zip(tables, truth, strict=True):
        low, high = table.interval(level)
        inside.append((low - INTERVAL_ROUNDING <= true) & (true <= high + INTERVAL_ROUNDING))
    return float(np.concatenate(inside).mean())


def _mean_width(tables: Sequence[Table]) -> float:
    """Of the 95% intervals of all cells, as far as they lie in [0, 1]."""
    widths = []
    for table in tables:
        low, high = np.clip(table.interval(0.95), 0, 1)
        widths.append(high - low)
    return float(np.concatenate(widths).mean())


def measured(
    made: Plan,
    crowd: Crowd,
    seed: int,
    run: int,
    coverage: bool = False,
    repair: str | None = None,
) -> Measurement:
    """Simulate, aggregate, estimate and answer, and judge the answers."""
    start = perf_counter()
    estimate = heard(made, crowd, seed, run).estimate()
    middle = perf_counter() - start
    found = judged(estimate.joint, crowd, coverage, repair)
    return Measurement(
        found.sse, found.tvd, middle + found.seconds, found.coverage, found.postprocess
    )


def compare_marginals(
    population: Population,
    k: int,
    people: int,
    epsilons: Sequence[Any],
    methods: Sequence[str],
    queries: int,
    runs: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
    *,
    coverage: bool = False,
    planned_for: int | None = None,
    repair: str | None = None,
) -> Iterator[MarginalsComparison]:
    """One row per epsilon and method. Each run has its own people and its own random tables, the
    same for every row.

    A method that does not fit gives a row with a reason and no figures. ``progress`` is called with
    the number of runs done, of ``len(epsilons) * len(methods) * runs``.

    Args:
        population: Whom people are sampled from, with replacement.
        k: How many attributes the tables have that are asked for.
        people: Sampled in each run.
        epsilons: One row for each, and each method.
        methods: By name, with options as in ``calm:theta=0.01``; or ``auto``.
        queries: Random tables in each run, or all if there are fewer.
        runs: Each with its own people and tables.
        seed: Of people, tables and coins.
        progress: See above.
        coverage: Whether to count how often 95% intervals hold.
        planned_for: How many attributes the tables have that plans are made for; by default k.
        repair: A repair such as ``norm-sub``, through which the tables of unbiased methods go
            before they are judged; rows say so.

    >>> crowd = Population.of({"a": [0, 1, 1, 0], "b": ["x", "z", "y", "x"]})
    >>> row, = compare_marginals(crowd, 2, 500, ["1"], ["uniform"], queries=5, runs=2, seed=1)
    >>> row.method, row.views, row.sse > 0
    ('uniform', 1, True)
    """
    schema, names = _checked(population, k, people, epsilons, methods, queries, runs)
    order = k if planned_for is None else whole("planned_for", planned_for, 1, len(schema))
    repair = None if repair is None else find_repair(repair)[0]
    sizes = {name: attribute.size for name, attribute in schema.items()}
    crowds = []
    for run in range(runs):
        asked = random_queries(schema, k, queries, seed, run)
        crowds.append(sampled(population, people, seed, run).asked(asked, sizes))
    done = 0
    for epsilon in epsilons:
        for name in names:
            row, measurements = _planned(schema, k, order, people, epsilon, name), []
            if isinstance(row, _Ready):
                row.warm_up(crowds[0])
                for run, crowd in enumerate(crowds):
                    try:
                        found = measured(row.plan, crowd, seed, run, coverage, repair)
                    except InvalidInput as wrong:  # a table too large for the method, say
                        row = _refused(name, epsilon, k, order, str(wrong))
                        break
                    measurements.append(found)
                    done += 1
                    if progress:
                        progress(done)
            done += runs - len(measurements)
            if progress:
                progress(done)
            yield row.summary(measurements, k, crowds) if isinstance(row, _Ready) else row


def _checked(
    population: Population,
    k: int,
    people: int,
    epsilons: Sequence[Any],
    methods: Sequence[str],
    queries: int,
    runs: int,
) -> tuple[Schema, list[str]]:
    """Every bad argument is met before the first long run; the coded schema, and methods' names."""
    for parameter, value in (("people", people), ("queries", queries), ("runs", runs)):
        whole(parameter, value, 1, 1 << 40)
    schema = coded(population.schema)
    if not 1 <= k <= len(schema):
        raise InvalidInput(
            f"k ({k}) must lie between 1 and the number of attributes ({len(schema)})"
        )
    for epsilon in epsilons:
        parse_epsilon(epsilon)
    largest = prod(sorted(attribute.size for attribute in schema.values())[-k:])
    if largest > MAX_TABLE_CELLS:
        raise InvalidInput(
            f"k ({k}) makes tables of up to {largest:,} cells, more than {MAX_TABLE_CELLS:,}: "
            "leave attributes out, or merge categories"
        )
    if not methods or not epsilons:
        raise InvalidInput("methods and epsilons must each be at least one")
    return schema, [_checked_choice(text) for text in methods]


def _checked_choice(text: str) -> str:
    """A method as its rows name it, aliases resolved; options that it does not take are refused."""
    choice = MethodChoice.parse(text)
    if choice.method == AUTO:
        if choice.options:
            raise InvalidInput(f"option {next(iter(choice.options))!r} needs a method by name")
        return AUTO
    known = method(choice.method)
    known.check_options(choice.options)
    return text.replace(choice.method, known.name, 1)


@dataclass(frozen=True)
class _Ready:
    """A plan to be measured."""

    method: str
    planned_for: int
    plan: Plan
    seconds: float  # that planning took

    def warm_up(self, crowd: Crowd) -> None:
        few = {name: column[:WARM_UP_PEOPLE] for name, column in crowd.columns.items()}
        Aggregate(self.plan).add(simulate(self.plan, few, 0))

    def summary(
        self, measurements: Sequence[Measurement], k: int, crowds: Sequence[Crowd]
    ) -> MarginalsComparison:
        sse = [each.sse for each in measurements]
        tvd = [each.tvd for each in measurements]
        inside = [each.coverage for each in measurements if each.coverage is not None]
        repairs = {each.postprocess for each in measurements} - {None}
        return MarginalsComparison(
            method=self.method,
            epsilon=float(self.plan.epsilon),
            k=k,
            sse=float(np.mean(sse)),
            sse_std=deviation(sse),
            tvd=float(np.mean(tvd)),
            tvd_std=deviation(tvd),
            seconds=self.seconds + median(each.seconds for each in measurements),
            chosen=self.plan.asked["method"],
            views=len(self.plan.cohorts),
            view_size=view_size(self.plan.cohorts),
            view_cells=max(
                ask.oracle.size for cohort in self.plan.cohorts.kinds for ask in cohort.asks
            ),
            people=crowds[0].people,
            queries=len(crowds[0].queries),
            runs=len(measurements),
            coverage=float(np.mean(inside)) if inside else None,
            planned_for=self.planned_for,
            postprocess=next(iter(repairs), None),
        )


def planned(schema: Schema, k: int, people: int, epsilon: Any, text: str) -> tuple[Plan, float]:
    """The plan for tables of k attributes of a method as it was typed, and the seconds it took."""
    choice = MethodChoice.parse(text)
    start = perf_counter()
    question = asked("marginals", **{**choice.options, "up_to": k, "method": choice.method})
    made = plan(schema, question, epsilon=epsilon, people=people)
    return made, perf_counter() - start


def _planned(
    schema: Schema, k: int, order: int, people: int, epsilon: Any, name: str
) -> _Ready | MarginalsComparison:
    try:
        return _Ready(name, order, *planned(schema, order, people, epsilon, name))
    except InvalidInput as wrong:
        return _refused(name, epsilon, k, order, str(wrong))


def _refused(name: str, epsilon: Any, k: int, order: int, reason: str) -> MarginalsComparison:
    return MarginalsComparison(
        name, float(parse_epsilon(epsilon)), k, planned_for=order, reason=reason
    )


def view_size(cohorts: Family) -> int:
    """How many attributes an ask reads, at most; of a large family some cohorts, ends included."""
    some = np.unique(
        np.linspace(0, len(cohorts) - 1, min(len(cohorts), MOST_LOOKED_AT)).astype(np.int64)
    )
    listed = cohorts if type(cohorts) is Listed else [cohorts[index] for index in some.tolist()]
    return max(len(ask.encoding.attributes) for cohort in listed for ask in cohort.asks)
