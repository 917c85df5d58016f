"""What is popular, method against method: simulated crowds with known truth, as in the thesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.api.planning import plan, simulate_rounds
from sottovoce.device.simulation import simulate
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.measure.populations import read_arrow
from sottovoce.measure.runs import deviation
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.questions.base import Question
from sottovoce.results.estimate import Estimate
from sottovoce.schema import Schema

MAX_SIMULATED_PEOPLE = 100_000_000  # that one run simulates
MOST_RUNS = 10_000
WARM_UP_ANSWERS = (
    2_000  # people whose answers are thrown away, so that no clock measures a compiler
)


@dataclass(frozen=True)
class PopularComparison:
    """What ``runs`` simulated crowds measured of a method at one epsilon; None if it does not fit.

    Means over runs, and ``_std`` their standard deviations (None for one run). ``variance`` is the
    mean squared error of the counts of those values that are truly in the top and were found, over
    the runs that found any.
    """

    method: str
    epsilon: float
    top: int
    f1: float | None = None
    ncr: float | None = None
    variance: float | None = None
    seconds: float | None = None  # to plan, simulate, aggregate and estimate, all rounds
    f1_std: float | None = None
    ncr_std: float | None = None
    variance_std: float | None = None
    found: float | None = None  # values of the true top
    found_std: float | None = None
    people: int | None = None
    runs: int | None = None
    reason: str | None = None  # why there are no figures

    def to_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Score:
    """How good one answer is."""

    hits: int
    f1: float
    ncr: float
    variance: float | None  # None if nothing was found


def score(truth: Mapping[Any, int], found: Mapping[Any, float]) -> Score:
    """Judge what was found (a count for each) by the true top (most frequent first, with counts).

    >>> score({"a": 9, "b": 5, "c": 4}, {"a": 8.0, "c": 6.0, "x": 5.0})
    Score(hits=2, f1=0.6666666666666666, ncr=0.6666666666666666, variance=2.5)
    """
    hits = [value for value in truth if value in found]
    f1 = 2 * len(hits) / (len(truth) + len(found)) if truth or found else 0.0
    # q(x_1) = k, ..., q(x_k) = 1; NCR = sum of q over the found / (k (k + 1) / 2)
    #     wang2021thesis, section 4.4.1
    k = len(truth)
    ranks = {value: k - place for place, value in enumerate(truth)}
    ncr = sum(ranks[value] for value in hits) / (k * (k + 1) / 2) if k else 0.0
    # Var = mean over C_T and C_g of (n_v - f^(v))^2   wang2021thesis, section 4.4.2
    errors = [(truth[value] - found[value]) ** 2 for value in hits]
    return Score(len(hits), f1, ncr, float(np.mean(errors)) if hits else None)


class PopularCrowd(Protocol):
    """The people of one run."""

    @property
    def people(self) -> int: ...

    @property
    def truth(self) -> Mapping[Any, int]:
        """The values in the true top, the most frequent first, with counts."""

    def table(self) -> Mapping[str, Any]:
        """What they hold, as a simulation reads it."""

    def few(self, people: int) -> PopularCrowd:
        """Some of them."""


# (crowd, epsilon, seed) -> the values found, with counts
Judge = Callable[[PopularCrowd, Any, int], Mapping[Any, float]]


def answered(
    question: Question,
    schema: Schema,
    crowd: PopularCrowd,
    epsilon: Any,
    seed: int,
    given: Mapping[str, Any] | None = None,
) -> Mapping[Any, float]:
    """Plan, simulate all rounds, give the values found with counts; the estimate gets ``given``."""
    table, people = crowd.table(), crowd.people
    made = plan(schema, question, epsilon=epsilon, people=people)
    if given:  # candidates, which only methods of one round take
        estimate: Estimate = Aggregate(made).add(simulate(made, table, seed)).estimate(**given)
    else:
        estimate = simulate_rounds(made, table, seed)
    found = estimate.table
    return dict(zip(found.labels, (found.values * people).tolist(), strict=True))


def compare_popular(
    crowds: Sequence[PopularCrowd],
    judges: Sequence[tuple[str, Judge]],
    top: int,
    epsilons: Sequence[Any],
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Iterator[PopularComparison]:
    """One row per epsilon and method; each crowd is one run, the same for every row.

    ``progress`` is called with the number of runs done, of ``len(epsilons) * len(judges) *
    len(crowds)``.
    """
    exact = [parse_epsilon(epsilon) for epsilon in epsilons]
    if not judges or not exact:
        raise InvalidInput("methods and epsilons must each be at least one")
    done = 0
    warm: set[str] = set()
    for epsilon in exact:
        for name, judge in judges:
            scores: list[Score] = []
            seconds: list[float] = []
            reason = None
            try:
                if name not in warm:
                    with suppress(InvalidInput):  # too few people for its rounds, say
                        judge(crowds[0].few(WARM_UP_ANSWERS), epsilon, 0)
                    warm.add(name)
                for run, crowd in enumerate(crowds):
                    start = perf_counter()
                    found = judge(crowd, epsilon, whispers_seed(seed, run))
                    seconds.append(perf_counter() - start)
                    scores.append(score(crowd.truth, found))
                    if progress:
                        progress(done + len(scores))
            except InvalidInput as wrong:
                reason = str(wrong)
            done += len(crowds)
            if progress:
                progress(done)
            if reason is not None:
                yield PopularComparison(name, float(epsilon), top, reason=reason)
            else:
                yield _summary(name, float(epsilon), top, crowds[0].people, scores, seconds)


def _summary(
    name: str,
    epsilon: float,
    top: int,
    people: int,
    scores: Sequence[Score],
    seconds: Sequence[float],
) -> PopularComparison:
    variances = [each.variance for each in scores if each.variance is not None]
    return PopularComparison(
        method=name,
        epsilon=epsilon,
        top=top,
        f1=float(np.mean([each.f1 for each in scores])),
        ncr=float(np.mean([each.ncr for each in scores])),
        variance=float(np.mean(variances)) if variances else None,
        seconds=float(np.mean(seconds)),
        f1_std=deviation([each.f1 for each in scores]),
        ncr_std=deviation([each.ncr for each in scores]),
        variance_std=deviation(variances),
        found=float(np.mean([each.hits for each in scores])),
        found_std=deviation([each.hits for each in scores]),
        people=people,
        runs=len(scores),
    )


def whispers_seed(seed: int, run: int) -> int:
    """The seed of one run's devices: independent of the one that sampled the people."""
    return int(np.random.SeedSequence([seed, run, 2]).generate_state(1, np.uint64)[0])


def checked(runs: int, people: int | None, available: int) -> tuple[int, int]:
    """(runs, people in each): everybody once if nobody says how many are sampled."""
    whole("runs", runs, 1, MOST_RUNS)
    if people is not None:
        return runs, whole("people", people, 1, MAX_SIMULATED_PEOPLE)
    if available > MAX_SIMULATED_PEOPLE:
        raise InvalidInput(
            f"table: it counts {available:,} people, more than the {MAX_SIMULATED_PEOPLE:,} "
            "that a run simulates; sample some with --people"
        )
    return runs, available


def read_columns(path: Path, names: Sequence[str]) -> Any:
    """Columns of a CSV (as text) or Parquet file, in Arrow, without gaps; categories as values."""
    pa = imported("pyarrow")

    table = read_arrow(path, as_text=True)
    for name in names:
        if name not in table.column_names:
            raise InvalidInput(
                f"table ({path}): column {name!r} is missing (it has: "
                f"{', '.join(table.column_names)})"
            )
        if table[name].null_count:
            raise InvalidInput(f"table ({path}): column {name!r} must have no missing values")
    if not table.num_rows:
        raise InvalidInput(f"table ({path}): there must be at least one row")
    columns = {}
    for name in names:
        column = table[name].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        columns[name] = (
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        )
    return columns
