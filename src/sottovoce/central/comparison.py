"""Ways to release a table, one against another: simulated, and beside the truth.

Noise comes from a seed here, so nothing of what is drawn may be published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from time import perf_counter
from typing import Any

import numpy as np

from sottovoce.accounting import Ledger, Neighbours
from sottovoce.central.choice import MAY_BE_EMPTY, ReleaseChoice, choose
from sottovoce.central.method import (
    CentralTable,
    MemoryTable,
    ReleasedCounts,
    ReleaseMethod,
    ReleaseTerms,
    TupleCounts,
)
from sottovoce.central.methods import METHODS
from sottovoce.central.release import check_together, list_options, parse_terms
from sottovoce.central.truth import SetTruth, TrueTable, Truth, truth_of
from sottovoce.ground.arguments import share, whole
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput, SottovoceError
from sottovoce.measure.choices import MethodChoice
from sottovoce.measure.runs import WARM_UP_PEOPLE, deviation, seeded
from sottovoce.questions.method import AUTO


@dataclass(frozen=True)
class ReleasesComparison:
    """What simulated releases by a method at one epsilon tell of k values together; means over
    runs. ``k`` is None if the method does not fit.

    ``sse`` is the mean, over sets of k attributes, of the summed squared errors of a table of
    shares, in which what was not released counts as 0; of sets it is that of all k-sets. It and
    ``recall`` are None where not all tuples can be counted.
    """

    method: str
    epsilon: float
    k: int | None = None
    found: float | None = None  # tuples released
    spurious: float | None = None  # of them, those that nobody holds
    recall: float | None = None  # share released of the tuples that at least ``above`` users hold
    sse: float | None = None
    seconds: float | None = None  # of the whole release, median over runs
    count_mse: float | None = None  # mean squared error of a released count
    above: int | None = None
    chosen: str | None = None  # the method that ran, of interest for auto
    runs: int | None = None
    sse_std: float | None = None  # over runs; None for one
    count_mse_std: float | None = None
    reason: str | None = None  # why there are no figures

    def to_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return dict(self.__dict__)


@dataclass
class _SimulatedRelease:
    """One simulated release."""

    counts: ReleasedCounts
    seconds: float


@dataclass
class _Contest:
    """A method at one epsilon, and its runs."""

    text: str
    epsilon: float
    choice: ReleaseChoice | None = None
    reason: str | None = None
    runs: list[_SimulatedRelease] = field(default_factory=list)


@dataclass
class _Figures:
    """What is summed, table after table, of one run and one k."""

    found: int = 0
    spurious: int = 0
    frequent: int = 0
    frequent_found: int = 0
    squared_shares: float = 0.0
    squared_counts: float = 0.0
    tables: int = 0


def compare_releases(
    table: CentralTable,
    methods: Sequence[str],
    epsilons: Sequence[Any],
    delta: Any,
    up_to: int,
    *,
    neighbours: Neighbours = "add-remove",
    may_be_empty: Sequence[str] = (),
    above: Any = "0.01",
    runs: int = 1,
    seed: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[ReleasesComparison]:
    """Simulate releases and measure them.

    Args:
        table: as codes; it must fit into memory here.
        methods: names, with options as in ``set-union:form=weighted``; or ``auto``.
        epsilons: of the guarantees.
        delta: of all of them.
        up_to: how many values together, at most.
        neighbours: what the guarantee hides of a user.
        may_be_empty: attributes with public values that may also say nothing.
        above: the share of the users that must hold a tuple for recall to count it.
        runs: with noise of their own each.
        seed: of all noise.
        progress: told how many releases were made.
    """
    whole("runs", runs, 1, 10_000)
    least = max(1, int(np.ceil(float(share("above", above)) * table.people)))
    asked = [MethodChoice.parse(text) for text in methods]
    for each in asked:
        if each.method not in (AUTO, *(method.name for method in METHODS)):
            choose(each.method, METHODS, table, parse_terms(1, 0, 1, neighbours, {}))
    contests = []
    for epsilon in epsilons:
        for number, each in enumerate(asked):
            options = list_options(each.options)
            if may_be_empty:
                options[MAY_BE_EMPTY] = list(may_be_empty)
            terms = parse_terms(epsilon, delta, up_to, neighbours, options)
            check_together(table, terms)
            contest = _Contest(each.text, float(terms.epsilon))
            _simulate(contest, each.method, table, terms, runs, (seed, number), progress)
            contests.append(contest)
            progress(runs * len(contests))
    yield from _judged(contests, truth_of(table), table.people, up_to, least)


def _simulate(
    contest: _Contest,
    method: str,
    table: CentralTable,
    terms: ReleaseTerms,
    runs: int,
    seeds: tuple[int, int],
    advance: Callable[[int], None],
) -> None:
    """Run a method, or note why it does not fit."""
    try:
        contest.choice = choose(method, METHODS, table, terms)
    except InvalidInput as wrong:
        contest.reason = str(wrong)
        return
    own = contest.choice.terms(terms)
    _warm_up(contest.choice.method, table, own)
    for run in range(runs):
        draws = seeded(*seeds, run).integers(0, 1 << 62)
        ledger = Ledger(terms.neighbours, epsilon=terms.epsilon, delta=terms.delta)
        start = perf_counter()
        try:
            counts = contest.choice.method.release(table, own, ledger, Seeded(int(draws)))
        except InvalidInput as wrong:
            contest.reason = str(wrong)
            return
        contest.runs.append(_SimulatedRelease(counts, perf_counter() - start))


def _warm_up(method: ReleaseMethod, table: CentralTable, terms: ReleaseTerms) -> None:
    """Release a few users' first columns, thrown away, so that no clock measures a compiler."""
    batch = next(iter(table.batches()))
    rows = batch.users < batch.users[0] + WARM_UP_PEOPLE
    width = 1 if table.is_sets else terms.up_to
    options = {name: value for name, value in terms.options.items() if name != MAY_BE_EMPTY}
    if MAY_BE_EMPTY in terms.options:
        options[MAY_BE_EMPTY] = list(table.columns[:width])
    few = MemoryTable(
        table.columns[:width],
        table.values[:width],
        table.is_known[:width],
        batch.codes[rows][:, :width],
        batch.users[rows],
        WARM_UP_PEOPLE,
        table.is_sets,
    )
    ledger = Ledger(terms.neighbours, epsilon=terms.epsilon, delta=terms.delta)
    with suppress(SottovoceError):  # of what is too small to be released
        method.release(few, replace(terms, options=options), ledger, Seeded(0))


def _judged(
    contests: Sequence[_Contest], truth: Truth, people: int, up_to: int, above: int
) -> Iterator[ReleasesComparison]:
    """A row for each contest and k, each true table being counted once."""
    by_k = {k: _figures(contests, truth, k, people, above) for k in range(1, up_to + 1)}
    for number, contest in enumerate(contests):
        if contest.reason is not None or contest.choice is None:
            yield ReleasesComparison(contest.text, contest.epsilon, reason=contest.reason)
            continue
        for k, figures in by_k.items():
            if figures[number]:
                yield _row(contest, k, figures[number], truth.is_countable(k), above)


def _row(
    contest: _Contest, k: int, figures: Sequence[_Figures], is_countable: bool, above: int
) -> ReleasesComparison:
    recalls = [each.frequent_found / each.frequent for each in figures if each.frequent]
    errors = [each.squared_counts / each.found for each in figures if each.found]
    shares = [each.squared_shares / each.tables for each in figures if each.tables]
    return ReleasesComparison(
        method=contest.text,
        epsilon=contest.epsilon,
        k=k,
        found=fmean(each.found for each in figures),
        spurious=fmean(each.spurious for each in figures),
        recall=fmean(recalls) if recalls and is_countable else None,
        sse=fmean(shares) if shares and is_countable else None,
        seconds=median(run.seconds for run in contest.runs),
        count_mse=fmean(errors) if errors else None,
        above=above,
        chosen=None if contest.choice is None else contest.choice.method.name,
        runs=len(contest.runs),
        sse_std=deviation(shares) if shares and is_countable else None,
        count_mse_std=deviation(errors) if errors else None,
    )


def _figures(
    contests: Sequence[_Contest], truth: Truth, k: int, people: int, above: int
) -> list[list[_Figures]]:
    """Of each contest and run what k values together tell; nothing if none were released."""
    found: list[list[_Figures]] = []
    open_: list[tuple[_Figures, _Placed]] = []
    for contest in contests:
        figures = []
        for run in contest.runs if contest.reason is None else []:
            if k in run.counts.tuples:
                own = _Figures()
                figures.append(own)
                open_.append((own, _Placed(run.counts.tuples[k], truth, k)))
        found.append(figures)
    if truth.is_countable(k):
        for number, true in truth.tables(k):
            for own, placed in open_:
                _add_table(own, true, *placed.of_table(number), people, above)
    elif isinstance(truth, SetTruth):
        for own, placed in open_:
            _add_each(own, placed.counts, truth)
    return found


class _Placed:
    """The released tuples of one run, by their tables and cells."""

    def __init__(self, counts: TupleCounts, truth: Truth, k: int) -> None:
        self.counts = counts
        tables, cells = truth.placed(counts, k)
        order = np.lexsort((cells, tables))
        self._tables, self._cells = tables[order], cells[order]
        self._counts = counts.counts[order]

    def of_table(self, number: int) -> tuple[Any, Any]:
        """(cells, counts) of the tuples of one table, cells ascending."""
        start, end = np.searchsorted(self._tables, [number, number + 1])
        return self._cells[start:end], self._counts[start:end]


def _add_table(
    figures: _Figures, true: TrueTable, cells: Any, counts: Any, people: int, above: int
) -> None:
    """Add what one table's released tuples tell, beside those that truly are there."""
    places = np.searchsorted(true.cells, cells)
    places = np.minimum(places, max(0, len(true.cells) - 1))
    is_true = true.cells[places] == cells if len(true.cells) else np.zeros(len(cells), bool)
    exact = np.where(is_true, true.counts[places] if len(true.counts) else 0, 0)
    errors = counts - exact
    was_found = np.zeros(len(true.cells), bool)
    was_found[places[is_true]] = True
    missed = true.counts[~was_found].astype(np.float64)
    is_frequent = true.counts >= above
    figures.found += len(cells)
    figures.spurious += int((~is_true).sum())
    figures.frequent += int(is_frequent.sum())
    figures.frequent_found += int((is_frequent & was_found).sum())
    figures.squared_counts += float((errors**2).sum())
    figures.squared_shares += float((errors**2).sum() + (missed**2).sum()) / people**2
    figures.tables += 1


def _add_each(figures: _Figures, counts: TupleCounts, truth: SetTruth) -> None:
    """Add what released sets tell where not all sets can be counted."""
    exact = truth.count_each(counts.codes)
    figures.found += len(exact)
    figures.spurious += int((exact == 0).sum())
    figures.squared_counts += float(((counts.counts - exact) ** 2).sum())
