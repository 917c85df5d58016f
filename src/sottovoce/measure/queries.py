"""Queries, method against method: people sampled, whispers simulated, answers beside the truth."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any, cast

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.api.planning import plan, simulate_rounds
from sottovoce.api.surveys import asked
from sottovoce.device.simulation import simulate
from sottovoce.ground.arguments import share, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.measure.choices import MethodChoice
from sottovoce.measure.marginals import INTERVAL_ROUNDING
from sottovoce.measure.query_crowds import (
    QUERY_DRAWS,
    WHISPER_DRAWS,
    Floats,
    QueryCrowd,
    QueryPopulation,
    random_terms,
)
from sottovoce.measure.runs import WARM_UP_PEOPLE, deviation, seeded
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.questions.method import AUTO
from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.fitted import Joint, Term
from sottovoce.questions.queries.methods import method
from sottovoce.questions.queries.target import RANDOM, Target

LEVEL = 0.95  # of the intervals whose coverage is counted


@dataclass(frozen=True)
class QueriesComparison:
    """What ``runs`` simulated crowds measured of a method; None if it does not fit.

    Errors are of shares: of the people, or of the total of the measure's absolute values. ``mse``
    is the mean squared error over queries, then over runs; ``mnae`` the mean absolute error;
    ``mre`` the mean absolute error over the truth, of queries whose truth is not 0.
    """

    method: str
    epsilon: float
    volume: float | str  # of a query's box, or random
    mse: float | None = None
    mnae: float | None = None
    mre: float | None = None
    coverage: float | None = None  # share of queries inside their 95% interval, if asked for
    # to plan, simulate, aggregate, estimate and answer all volumes; median over runs
    seconds: float | None = None
    mse_std: float | None = None  # over runs; None for one
    chosen: str | None = None  # the method that the plan has, of interest for auto
    people: int | None = None
    queries: int | None = None
    runs: int | None = None
    predicates: int | None = None  # dimensions that a query restricts
    reason: str | None = None  # why there are no figures

    def to_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True, eq=False)
class AskedCrowd:
    """The people of one run, and by volume the selections they are asked for and the truth."""

    crowd: QueryCrowd
    terms: dict[str, list[Term]]
    truth: dict[str, Floats]


@dataclass(frozen=True)
class QueryScore:
    """How good the answers of one run and one volume are."""

    mse: float
    mnae: float
    mre: float | None
    coverage: float | None
    seconds: float  # that all volumes took, with planning


def compare_queries(
    population: QueryPopulation,
    people: int,
    epsilons: Sequence[Any],
    methods: Sequence[str],
    volumes: Sequence[str],
    queries: int,
    runs: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
    *,
    coverage: bool = False,
    predicates: int | None = None,
) -> Iterator[QueriesComparison]:
    """One row per epsilon, method and volume. Each run has its own people and its own random
    queries, the same for every row.

    A method that does not fit gives rows with a reason and no figures. ``progress`` is called with
    the number of runs done, of ``len(epsilons) * len(methods) * runs``.

    Args:
        population: Whom people are sampled from, with replacement.
        people: Sampled in each run.
        epsilons: One row for each, each method and each volume.
        methods: By name, with options as in ``hio:fanout=4``; or ``auto``.
        volumes: The shares of all combinations of codes that queries select, or ``random``.
        queries: Random ones in each run, for each volume.
        runs: Each with its own people and queries.
        seed: Of people, queries and coins; the population's source is mixed into it.
        progress: See above.
        coverage: Whether to count how often 95% intervals hold.
        predicates: How many dimensions a query restricts; by default all.

    >>> from sottovoce.measure.query_crowds import dimension_column
    >>> ages = dimension_column("age", np.arange(1000) % 16, None)
    >>> crowd = QueryPopulation("ages", {"age": ages})
    >>> row, = compare_queries(crowd, 2000, ["1"], ["hio"], ["0.25"], queries=5, runs=1, seed=1)
    >>> row.method, row.volume, row.mse > 0
    ('hio', 0.25, True)
    """
    order = _checked(population, people, epsilons, methods, volumes, queries, runs, predicates)
    target = Target.of(population.schema, population.names, None)
    crowds = [
        asked_crowd(population, target, people, order, volumes, queries, seed, run)
        for run in range(runs)
    ]
    done = 0
    for epsilon in epsilons:
        for name in methods:
            scores: dict[str, list[QueryScore]] = {volume: [] for volume in volumes}
            made, reason = None, None
            try:
                start = perf_counter()
                made = planned(population, people, epsilon, name, volumes, order)
                planning = perf_counter() - start
                _warm_up(made, crowds[0].crowd, population)
                for run, crowd in enumerate(crowds):
                    found = measured(made, crowd, population, seed, run, planning, coverage)
                    for volume, score in found.items():
                        scores[volume].append(score)
                    if progress:
                        progress(done + run + 1)
            except InvalidInput as wrong:  # the method does not fit
                reason = str(wrong)
            done += runs
            if progress:
                progress(done)
            for volume in volumes:
                if reason is not None or made is None:
                    yield _refused(name, epsilon, volume, reason)
                else:
                    row = _summary(name, made, volume, scores[volume])
                    yield replace(row, people=people, queries=queries, predicates=order)


def _checked(
    population: QueryPopulation,
    people: int,
    epsilons: Sequence[Any],
    methods: Sequence[str],
    volumes: Sequence[str],
    queries: int,
    runs: int,
    predicates: int | None,
) -> int:
    """Every bad argument is met before the first long run; how many dimensions are restricted."""
    for parameter, value in (("people", people), ("queries", queries), ("runs", runs)):
        whole(parameter, value, 1, 1 << 40)
    if not methods or not epsilons or not volumes:
        raise InvalidInput("methods, epsilons and volumes must each be at least one")
    for epsilon in epsilons:
        parse_epsilon(epsilon)
    for volume in volumes:
        if volume != RANDOM and not share("volume", volume) > 0:
            raise InvalidInput(f"volume ({volume}) must be greater than 0, or {RANDOM}")
    for text in methods:
        choice = MethodChoice.parse(text)
        if choice.method != AUTO:
            method(choice.method).check_options(choice.options)
        elif choice.options:
            raise InvalidInput(f"option {next(iter(choice.options))!r} needs a method by name")
    dimensions = len(population.columns)
    return whole("predicates", dimensions if predicates is None else predicates, 1, dimensions)


def asked_crowd(
    population: QueryPopulation,
    target: Target,
    people: int,
    order: int,
    volumes: Sequence[str],
    queries: int,
    seed: int,
    run: int,
) -> AskedCrowd:
    """The people of a run with their queries; the source, the run and the volume make the seed."""
    crowd = population.sampled(people, seed, run)
    terms, truth = {}, {}
    for volume in volumes:
        source = f"{population.source}/{volume}"
        draws = seeded(seed, run, QUERY_DRAWS, zlib.crc32(source.encode()))
        terms[volume] = random_terms(target, order, volume, queries, draws)
        truth[volume] = crowd.truth(terms[volume])
    return AskedCrowd(crowd, terms, truth)


def planned(
    population: QueryPopulation,
    people: int,
    epsilon: Any,
    text: str,
    volumes: Sequence[str],
    order: int,
) -> Plan:
    """The plan of a method as it was typed, for a workload of these volumes."""
    choice = MethodChoice.parse(text)
    measures = [] if population.measure is None else [population.measured]
    workload = {"volumes": list(volumes), "dimensions": [order]}
    question = asked(
        "queries",
        dimensions=list(population.names),
        measures=measures,
        method=choice.method,
        workload=workload,
        **choice.options,
    )
    made = plan(population.schema, question, epsilon=epsilon, people=people)
    if measures and len(made.series.shares) > 1:
        raise InvalidInput(f"method ({choice.method}) asks in rounds, which sums do not take")
    return made


def whispers_seed(made: Plan, population: QueryPopulation, seed: int, run: int) -> int:
    """Plans with the same cohorts hear the same crowd; other cohorts, epsilons and sources are
    independent.
    """
    digest = hashlib.sha256(json.dumps(made.cohorts.to_json(), sort_keys=True).encode()).digest()
    source = zlib.crc32(population.source.encode())
    parts = [seed, run, WHISPER_DRAWS, source, int.from_bytes(digest[:8], "little")]
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])


def _warm_up(made: Plan, crowd: QueryCrowd, population: QueryPopulation) -> None:
    table = crowd.table(population.measured)
    few = {name: column[:WARM_UP_PEOPLE] for name, column in table.items()}
    Aggregate(made).add(simulate(made, few, 0))


def measured(
    made: Plan,
    crowd: AskedCrowd,
    population: QueryPopulation,
    seed: int,
    run: int,
    planning: float = 0.0,
    coverage: bool = False,
) -> dict[str, QueryScore]:
    """Simulate, aggregate, estimate and answer, and judge the answers of every volume."""
    start = perf_counter()
    estimate, reports = estimated(made, crowd, population, seed, run)
    answers = answered(estimate, reports, crowd)
    seconds = planning + perf_counter() - start
    return {
        volume: judged(joint, crowd.truth[volume], seconds, coverage)
        for volume, joint in answers.items()
    }


def estimated(
    made: Plan, crowd: AskedCrowd, population: QueryPopulation, seed: int, run: int
) -> tuple[QueryEstimate, Reports | None]:
    """What a crowd's simulated devices say, by all rounds; and their reports if there is one."""
    table = crowd.crowd.table(population.measured)
    own_seed = whispers_seed(made, population, seed, run)
    if len(made.series.shares) > 1:
        return cast(QueryEstimate, simulate_rounds(made, table, own_seed)), None
    reports = simulate(made, table, own_seed)
    return cast(QueryEstimate, Aggregate(made).add(reports).estimate()), reports


def answered(
    estimate: QueryEstimate, reports: Reports | None, crowd: AskedCrowd
) -> dict[str, Joint]:
    """The answers to a crowd's queries, by volume."""
    if crowd.crowd.measure is not None and reports is not None:
        return _sums(estimate, reports, crowd)
    return {volume: estimate.fitted.joint(terms) for volume, terms in crowd.terms.items()}


def _sums(estimate: QueryEstimate, reports: Reports, crowd: AskedCrowd) -> dict[str, Joint]:
    """Shares of the measure's absolute total: what is above 0, less what is below."""
    steps = crowd.crowd.measure
    assert steps is not None
    total = float(np.abs(steps).sum())
    found: dict[str, Joint] = {}
    for sign in (1, -1):
        weights = np.maximum(sign * steps, 0)
        if not weights.any():
            continue
        table = estimate.weighted(reports, weights)
        part = float(weights.sum()) / total
        for volume, terms in crowd.terms.items():
            joint = table.joint(terms)
            own = joint.scaled(sign * part)
            found[volume] = _added(found[volume], own) if volume in found else own
    return found


def _added(one: Joint, other: Joint) -> Joint:
    """The sum of two answers whose people differ."""
    draws = None
    if one.draws is not None and other.draws is not None:
        draws = one.draws + other.draws
    unbiased = None
    if one.unbiased is not None and other.unbiased is not None:
        unbiased = _added(one.unbiased, other.unbiased)
    return Joint(one.values + other.values, one.covariance + other.covariance, draws, unbiased)


def judged(joint: Joint, truth: Floats, seconds: float, coverage: bool) -> QueryScore:
    """Answers beside the truth.

    >>> joint = Joint(np.array([0.3, 0.1]), np.eye(2) * 0.01)
    >>> found = judged(joint, np.array([0.2, 0.0]), 0.0, True)
    >>> round(found.mse, 6), round(found.mnae, 6), round(found.mre, 6), found.coverage
    (0.01, 0.1, 0.5, 1.0)
    """
    errors = joint.values - truth
    is_held = truth != 0
    relative = None
    if is_held.any():
        relative = float(np.mean(np.abs(errors[is_held] / truth[is_held])))
    inside = None
    if coverage:
        low, high = joint.interval(LEVEL)
        is_inside = (low - INTERVAL_ROUNDING <= truth) & (truth <= high + INTERVAL_ROUNDING)
        inside = float(is_inside.mean())
    return QueryScore(
        float(np.mean(errors**2)), float(np.mean(np.abs(errors))), relative, inside, seconds
    )


def _number(volume: str) -> float | str:
    return volume if volume == RANDOM else float(volume)


def _refused(name: str, epsilon: Any, volume: str, reason: str | None) -> QueriesComparison:
    return QueriesComparison(name, float(parse_epsilon(epsilon)), _number(volume), reason=reason)


def _summary(name: str, made: Plan, volume: str, scores: Sequence[QueryScore]) -> QueriesComparison:
    squared = [score.mse for score in scores]
    relative = [score.mre for score in scores if score.mre is not None]
    inside = [score.coverage for score in scores if score.coverage is not None]
    return QueriesComparison(
        method=name,
        epsilon=float(made.epsilon),
        volume=_number(volume),
        mse=float(np.mean(squared)),
        mnae=float(np.mean([score.mnae for score in scores])),
        mre=float(np.mean(relative)) if relative else None,
        coverage=float(np.mean(inside)) if inside else None,
        seconds=median(score.seconds for score in scores),
        mse_std=deviation(squared),
        chosen=made.asked["method"],
        runs=len(scores),
    )
