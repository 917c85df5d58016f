"""Oracle beside oracle: the thesis's formulas, the realised ones, and a measured error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import exp, sqrt
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.measure.runs import WARM_UP_PEOPLE, deviation
from sottovoce.oracles import (
    ADAPTIVE,
    CohortOracle,
    Oracle,
    every_oracle,
    find,
    oracle,
    oracle_with,
)
from sottovoce.oracles.base import MAX_LISTED_VALUES
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.questions.frequencies import MOST_SOLVED

Floats = NDArray[np.float64]

ZIPF_EXPONENT = 1.1

# What the thesis calls the communication cost of each oracle it compares
#     wang2021thesis, table 3.1
THESIS_COMMUNICATION = {
    "rr": "O(log d)",
    "grr": "O(log d)",
    "she": "O(d)",
    "the": "O(d)",
    "sue": "O(d)",
    "oue": "O(d)",
    "blh": "O(log n)",
    "olh": "O(log n)",
}


def thesis_variance(name: str, size: int, epsilon: float) -> float | None:
    """Var[c(v)]/n of a rare value as the thesis prints it, for real d' = E + 1 and theta = 1; None
    if it has none.

    >>> round(thesis_variance("grr", 32, 1.0), 2), round(thesis_variance("olh", 32, 1.0), 2)
    (11.08, 3.68)
    """
    odds, root = exp(epsilon), exp(epsilon / 2)
    match find(name).names[0]:  # wang2021thesis, table 3.1, from left to right
        case "rr" | "grr":
            return (size - 2 + odds) / (odds - 1) ** 2
        case "she":
            return 8 / epsilon**2
        case "the":
            return (2 * root - 1) / (root - 1) ** 2
        case "sue":
            return root / (root - 1) ** 2
        case "oue" | "olh":
            return 4 * odds / (odds - 1) ** 2
        case "blh":
            return (odds + 1) ** 2 / (odds - 1) ** 2
    return None


@dataclass(frozen=True)
class Figures:
    """One row of ``sottovoce oracles``: the thesis's columns, then the realised ones, or None."""

    oracle: str
    about: str
    thesis_communication: str | None
    thesis_variance: float | None
    bits: int
    variance: float | None
    half_sum_variance: float | None
    epsilon: float
    p: float | None
    q: float | None
    recommended: bool

    def to_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return asdict(self)


def figures(
    size: int, epsilon: Any, progress: Callable[[int], None] | None = None
) -> list[Figures]:
    """Every oracle that takes ``size`` values, at ``epsilon``; variances are those of one report.

    ``progress`` is called with the number of oracles done.

    >>> [row.oracle for row in figures(4, 1.0) if row.recommended]
    ['grr']
    """
    exact = parse_epsilon(epsilon)
    best = oracle(ADAPTIVE, size=size, epsilon=exact).names[0]
    rows = []
    for name in fitting(size):
        try:
            built = oracle(name, size=size, epsilon=exact)
        except InvalidInput:  # this epsilon is not for it: exact noise wants few digits, say
            continue
        variance, half_sum = _variances_where_known(built)
        rows.append(
            Figures(
                oracle=name,
                about=built.about,
                thesis_communication=THESIS_COMMUNICATION.get(name),
                thesis_variance=thesis_variance(name, size, float(exact)),
                bits=built.bits,
                variance=variance,
                half_sum_variance=half_sum,
                epsilon=built.epsilon,
                p=getattr(built, "p", None),
                q=getattr(built, "q", None),
                recommended=name == best,
            )
        )
        if progress:
            progress(len(rows))
    return rows


def _variances_where_known(built: Oracle) -> tuple[float | None, float | None]:
    """Of a cell and of half the cells; an open alphabet's depend on candidates nobody named."""
    if isinstance(built, CohortOracle) and built.size > MOST_SOLVED:
        return None, None
    try:
        return float(built.variance(1)), built.sum_variance(1, built.size // 2)
    except InvalidInput:
        return None, None


def fitting(size: int) -> list[str]:
    """The names of the oracles that take ``size`` values."""
    return [kind.names[0] for kind in every_oracle() if size <= kind.largest]


def zipf_counts(size: int, people: int, exponent: float = ZIPF_EXPONENT) -> NDArray[np.int64]:
    """How many of ``people`` hold each value if value k has weight 1/(k + 1)^exponent.

    >>> zipf_counts(4, 100).tolist()
    [50, 24, 15, 11]
    """
    weights = np.arange(1, size + 1, dtype=float) ** -exponent
    ends = np.rint(people * np.cumsum(weights) / weights.sum()).astype(np.int64)
    counts: NDArray[np.int64] = np.diff(ends, prepend=0)
    return counts


@dataclass(frozen=True)
class Comparison:
    """What ``runs`` simulated crowds measured of one oracle, beside what its formula says.

    ``ratio`` is measured over theory; it should lie within a few ``ratio_spread`` of 1.
    """

    oracle: str
    size: int
    epsilon: float
    people: int
    runs: int
    measured: float  # mean over values and runs of the squared error
    theory: float  # mean over values of the variance
    ratio: float
    ratio_spread: float
    simulate_seconds: float  # median over runs
    estimate_seconds: float  # to aggregate all reports and estimate all values; median over runs
    bytes: int  # of one report's payload
    measured_std: float | None = None  # over runs; None for one

    def to_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return asdict(self)


def compare_oracles(
    methods: Sequence[str] | None,
    size: int,
    epsilons: Sequence[Any],
    people: int,
    runs: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Comparison]:
    """One row per epsilon and oracle (all that can estimate every value), on a Zipf population.

    Every run has its own seed and, where the oracle is salted, its own salt. ``progress`` is called
    with the number of runs done.

    >>> row, = compare_oracles(["grr"], size=4, epsilons=[1.0], people=1000, runs=2, seed=1)
    >>> row.oracle, row.bytes
    ('grr', 1)
    """
    for parameter, value in (("people", people), ("runs", runs)):
        if value < 1:
            raise InvalidInput(f"{parameter} ({value}) must be at least 1")
    if size > MAX_LISTED_VALUES:
        raise InvalidInput(
            f"size ({size}) must be at most {MAX_LISTED_VALUES}, "
            "so that every value can be estimated"
        )
    chosen = (
        [name if name == ADAPTIVE else find(name).names[0] for name in methods] if methods else None
    )
    for epsilon in epsilons:  # every bad argument is met before the first long run
        for name in chosen or [ADAPTIVE]:
            oracle(name, size=size, epsilon=epsilon)
    counts = zipf_counts(size, people)
    done = 0
    for epsilon in epsilons:
        for name in chosen or fitting(size):
            crowd = _Crowd(name, size, epsilon, counts)
            try:
                crowd.run(_subseed(seed, name, 0), WARM_UP_PEOPLE)
            except InvalidInput:
                if chosen:
                    raise
                continue
            measurements = []
            for number in range(1, runs + 1):
                measurements.append(crowd.run(_subseed(seed, name, number)))
                done += 1
                if progress:
                    progress(done)
            yield crowd.summary(measurements)


@dataclass(frozen=True)
class _Measurement:
    error: float  # mean over values of the squared error
    variances: Floats  # what theory says of this run
    simulate_seconds: float
    estimate_seconds: float


@dataclass(frozen=True)
class _Crowd:
    """One oracle and the people who will answer through it."""

    name: str
    size: int
    epsilon: Any
    counts: NDArray[np.int64]

    def run(self, seed: int, most: int | None = None) -> _Measurement:
        """Everybody (or the first ``most``) whispers once."""
        built = oracle_with(self.name, self.size, self.epsilon, self._salt(seed))
        values = np.repeat(np.arange(self.size, dtype=np.uint64), self.counts)[:most]
        truth = np.bincount(values.astype(np.int64), minlength=self.size) / values.size
        start = perf_counter()
        payload = built.simulate(values, seed)
        middle = perf_counter()
        estimated, _ = built.estimate_reports(payload)
        end = perf_counter()
        return _Measurement(
            float(np.mean((estimated - truth) ** 2)),
            built.all_variances(values.size, truth),
            middle - start,
            end - middle,
        )

    def _salt(self, seed: int) -> dict[str, str]:
        plain = oracle(self.name, size=self.size, epsilon=self.epsilon)
        return {"salt": str(seed)} if "salt" in plain.options() else {}

    def summary(self, measurements: Sequence[_Measurement]) -> Comparison:
        built = oracle(self.name, size=self.size, epsilon=self.epsilon)
        variances = np.mean([each.variances for each in measurements], axis=0)
        measured = float(np.mean([each.error for each in measurements]))
        theory = float(variances.mean())
        return Comparison(
            oracle=self.name,
            size=self.size,
            epsilon=float(built.requested),
            people=int(self.counts.sum()),
            runs=len(measurements),
            measured=measured,
            theory=theory,
            ratio=measured / theory,
            ratio_spread=ratio_spread(variances, len(measurements)),
            simulate_seconds=median(each.simulate_seconds for each in measurements),
            estimate_seconds=median(each.estimate_seconds for each in measurements),
            bytes=built.layout.bytes,
            measured_std=deviation([each.error for each in measurements]),
        )


def ratio_spread(variances: Floats, runs: int) -> float:
    """The standard deviation of measured/theory over ``runs``, for normal errors that sum to zero.

    A mean of squares of independent normal errors has variance 2 sum(s^4)/d^2; errors that sum to
    zero leave d - 1 of d free.
    """
    size = variances.size
    unevenness = size * float((variances**2).sum()) / float(variances.sum()) ** 2
    return sqrt(2 * unevenness / (runs * (size - 1)))


def _subseed(seed: int, name: str, number: int) -> int:
    mixed = np.random.SeedSequence([seed, number, *name.encode()])
    return int(mixed.generate_state(1, np.uint64)[0])
