"""Ways to learn one attribute's frequencies from shuffled reports, measured on a real table beside
mechanisms that no plan has and a trusted curator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from sottovoce.accounting.gaussian import Floats
from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.api.planning import plan
from sottovoce.api.shuffled import DEFAULT_LOCAL_CAP
from sottovoce.api.surveys import asked
from sottovoce.device.simulation import simulate
from sottovoce.ground.arguments import share, whole
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.noise import discrete_laplace
from sottovoce.measure.marginals import coded
from sottovoce.measure.populations import Population
from sottovoce.measure.runs import deviation, seeded
from sottovoce.measure.simulated_shuffles import SIMULATED, SimulatedShuffle
from sottovoce.oracles import ADAPTIVE, ORACLES
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.protocol.plan import Plan

CENTRAL = "central"
HEAD = 10  # the largest values, whose error is told apart
# names that stand for more than an oracle; every other one is an oracle's
PLANNED: Mapping[str, Mapping[str, Any]] = {
    "auto": {},
    "auto-head": {"focus": "head"},
    "solh-thesis": {"oracle": "solh", "thesis": True},
}
SHUFFLED_METHODS = ("auto", "auto-head", "solh", "solh-thesis", "sh", "rap", *SIMULATED, CENTRAL)


@dataclass(frozen=True)
class ShuffledComparison:
    """What ``runs`` simulated crowds measured of a method at one epsilon; None if it does not fit.

    ``epsilon`` is against the analyst, ``local`` what a report costs by itself (None without a
    bound). ``mse`` is the mean squared error of a value's frequency, ``head_mse`` that of the
    largest ten, ``seconds`` those of a run, with its share of planning. ``about`` says what is
    reported, and what a mechanism of simulations alone does not promise.
    """

    method: str
    epsilon: float
    local: float | None = None
    mse: float | None = None
    head_mse: float | None = None
    seconds: float | None = None
    about: str | None = None
    reason: str | None = None
    mse_std: float | None = None  # over runs; None for one
    head_mse_std: float | None = None
    people: int | None = None
    runs: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class _Terms:
    """What all methods are compared at."""

    epsilon: Decimal
    delta: float
    people: int
    cap: Any


def compare_shuffled(
    population: Population,
    attribute: str,
    epsilons: Sequence[Any],
    people: int,
    methods: Sequence[str],
    runs: int,
    seed: int,
    delta: Any = "1e-9",
    cap: Any = DEFAULT_LOCAL_CAP,
    progress: Callable[[int], None] | None = None,
) -> Iterator[ShuffledComparison]:
    """One row per epsilon and method; every run has its own people, the same for every row.

    Args:
        population: whom people are sampled from, with replacement.
        attribute: whose frequencies are asked for.
        epsilons: against the analyst.
        people: in each run, all of whom report.
        methods: of ``SHUFFLED_METHODS``, or names of oracles.
        runs: how many crowds are measured.
        seed: of people and coins.
        delta: of the promises against the analyst; ``central`` needs none.
        cap: the most that a report may cost by itself.
        progress: called with the number of runs done.

    >>> crowd = Population.of({"x": ["a", "b", "b", "c"] * 10})
    >>> rows = compare_shuffled(crowd, "x", ["0.5"], 10_000, ["sh", "aue"], 1, 1, "1e-7")
    >>> [(row.method, row.local is None) for row in rows]
    [('sh', False), ('aue', True)]
    """
    whole("people", people, 2, 100_000_000)
    whole("runs", runs, 1, 10_000)
    if attribute not in population.columns:
        raise InvalidInput(
            f"attribute {attribute!r} is not in the table (it has: {', '.join(population.columns)})"
        )
    if not epsilons or not methods:
        raise InvalidInput("methods and epsilons must each be at least one")
    known = {*SHUFFLED_METHODS, ADAPTIVE, *(name for kind in ORACLES for name in kind.names)}
    for method in methods:
        if method not in known:
            raise InvalidInput(
                f"method ({method}) must be one of {', '.join(SHUFFLED_METHODS)}, or an oracle"
            )
    chance = share("delta", delta)
    if not 0 < chance < 1:
        raise InvalidInput(f"delta ({delta}) must lie between 0 and 1")
    done = 0
    for exact in [parse_epsilon(epsilon) for epsilon in epsilons]:
        terms = _Terms(exact, float(chance), people, cap)
        for method in methods:
            yield _row(population, attribute, method, terms, runs, seed)
            done += runs
            if progress:
                progress(done)


def _row(
    population: Population, attribute: str, method: str, terms: _Terms, runs: int, seed: int
) -> ShuffledComparison:
    only = Population({attribute: population.columns[attribute]})
    start = perf_counter()
    squares = []  # of each run, a row of all values and the mean of the largest
    try:
        built = _built(only, method, terms)
        for run in range(runs):
            codes = only.columns[attribute].codes
            drawn = codes[seeded(seed, run, 0).integers(0, only.people, terms.people)]
            counts = np.bincount(drawn, minlength=only.columns[attribute].attribute.size)
            told = _estimated(built, attribute, drawn, counts, terms, (seed, run))
            errors = (told - counts / terms.people) ** 2
            largest = np.argsort(-counts, kind="stable")[:HEAD]
            squares.append((float(errors.mean()), float(errors[largest].mean())))
    except InvalidInput as wrong:
        return ShuffledComparison(method, float(terms.epsilon), reason=str(wrong))
    local, about = _told(built)
    every, head = zip(*squares, strict=True)
    seconds = (perf_counter() - start) / runs
    return ShuffledComparison(
        method=method,
        epsilon=float(terms.epsilon),
        local=local,
        mse=float(np.mean(every)),
        head_mse=float(np.mean(head)),
        seconds=seconds,
        about=about,
        mse_std=deviation(every),
        head_mse_std=deviation(head),
        people=terms.people,
        runs=runs,
    )


def _built(only: Population, method: str, terms: _Terms) -> Plan | SimulatedShuffle | None:
    """A plan, a mechanism of simulations, or None for a curator's noise."""
    if method == CENTRAL:
        return None
    if method in SIMULATED:
        return SIMULATED[method].build(terms.epsilon, terms.delta, terms.people)
    (attribute,) = only.columns
    options = PLANNED.get(method, {"oracle": method})
    return plan(
        coded(only.schema),
        asked("frequencies", attributes=[attribute], **options),
        epsilon=terms.epsilon,
        delta=terms.delta,
        people=terms.people,
        least=terms.people,
        cap=terms.cap,
        trust="shuffled",
    )


def _estimated(
    built: Plan | SimulatedShuffle | None,
    attribute: str,
    drawn: Any,
    counts: Any,
    terms: _Terms,
    seeds: tuple[int, int],
) -> Floats:
    """The frequencies that one run learns."""
    coins = int(seeded(*seeds, 1).integers(1 << 62))
    if isinstance(built, Plan):
        heard = Aggregate(built).add(simulate(built, {attribute: drawn}, coins))
        return np.asarray(heard.estimate().marginal(attribute).values)
    if built is not None:
        return built.simulate(counts, np.random.Generator(np.random.PCG64(coins)))
    # who replaces a value moves two counts by one: exp(-|z| epsilon/2)
    noise = discrete_laplace(2 / Fraction(terms.epsilon), len(counts), Seeded(coins))
    return np.asarray((counts + noise) / terms.people)


def _told(built: Plan | SimulatedShuffle | None) -> tuple[float | None, str]:
    """What a report costs by itself, and what it is."""
    if isinstance(built, Plan):
        source = built.cohorts[0].asks[0].oracle
        options = ", ".join(
            f"{name} {value}" for name, value in source.options().items() if name != "salt"
        )
        told = f"{source.names[0]} ({options})" if options else source.names[0]
        return float(built.epsilon), told
    if built is not None:
        return built.local, built.about
    return None, "counts with Laplace noise of a trusted curator, who holds every value"
