"""A whole private survey among made-up people: the truth can stand beside the estimates."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.ground.files import replacing, write_csv

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

    from sottovoce.analysis import Tree
    from sottovoce.demo.curator import Curated
    from sottovoce.demo.mixed import Mixed
    from sottovoce.demo.popularity import Liking
    from sottovoce.demo.posting import Posted
    from sottovoce.measure import MarginalsComparison, Population
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.reports import Report
    from sottovoce.questions.prediction import Rank
    from sottovoce.results.estimate import Floats, Table
    from sottovoce.results.joint import JointEstimate

SURVEY_PEOPLE = 60_000
POSTING = 20_000  # of them post over HTTP as well
POPULATION_SEED = 2718
HOMES = ("city", "suburb", "country")
HABITS = ("never", "weekly", "daily")
ORDER = 3  # attributes of a table
TWO = ("age", "drinks")  # the tables that are shown
THREE = ("smoker", "drinks", "sleepless")
PAIRS_SHOWN = 6
COMPARED = ("auto", "calm", "inp-ht")
COMPARED_TABLES = 20
COMPARISON_SEED = 1  # if the coins are real

SURVEY = f"""\
# {SURVEY_PEOPLE:,} made-up people. Any {ORDER} of the 8 attributes can be asked for together.
epsilon = 1.0
people = {SURVEY_PEOPLE}

[schema.age]
kind = "ordinal"
low = 18
high = 97
bins = 4

[schema.home]
kind = "categorical"
values = [{", ".join(f'"{home}"' for home in HOMES)}]

[schema.car]
kind = "boolean"

[schema.smoker]
kind = "boolean"

[schema.drinks]
kind = "categorical"
values = [{", ".join(f'"{habit}"' for habit in HABITS)}]

[schema.medicine]
kind = "boolean"

[schema.sleepless]
kind = "boolean"

[schema.depressed]
kind = "boolean"

[question]
kind = "marginals"
up_to = {ORDER}
method = "auto"
"""


@dataclass(frozen=True)
class Finding:
    """One table as the crowd whispered it, and as it is."""

    table: Table
    truth: Floats

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Which 95% intervals hold the truth."""
        low, high = self.table.interval()
        return np.asarray((low <= self.truth) & (self.truth <= high))


@dataclass(frozen=True)
class Pair:
    """How strongly two attributes go together, from 0 to 1, as whispered and as it is."""

    attributes: tuple[str, str]
    strength: float
    truth: float


@dataclass(frozen=True)
class Story:
    """All that one survey told, and the truth about it."""

    plan: Plan
    ranks: Sequence[Rank]
    singles: Sequence[Finding]
    two: Finding
    three: Finding
    tree: Tree
    told: Mapping[tuple[str, str], float]  # the true information of the tree's edges
    pairs: Sequence[Pair]
    popular: Sequence[Liking]
    compared: Sequence[MarginalsComparison]
    posted: Posted
    heard: Sequence[Finding]  # single attributes, from what was posted
    mixed: Mixed  # the same people, their reports shuffled
    curated: Curated  # the same people with a trusted curator
    record: Mapping[str, Any]
    report: Report

    @property
    def coverage(self) -> str:
        """How many of the intervals shown hold the truth, and what that can show."""
        holds = np.concatenate([finding.holds for finding in (*self.singles, self.two, self.three)])
        return (
            f"{holds.sum()} of the {holds.size} intervals shown hold the truth. Over many surveys "
            "about 95% should; within one they rest on the same reports and miss together, so "
            "this count is no test of them."
        )


def population() -> dict[str, list[Any]]:
    """The made-up people, the same ones every time.

    The old live in the country and take medicine, the young live in town and smoke; smokers drink,
    who drinks daily sleeps badly, and who sleeps badly is sad.
    """
    draws = np.random.Generator(np.random.PCG64(POPULATION_SEED))
    age = (18 + 80 * draws.beta(1.5, 1.9, SURVEY_PEOPLE)).astype(np.int64)
    old = np.interp(age, [25, 75], [0, 1])[:, None]
    home = _chosen(draws, (1 - old) * [0.70, 0.20, 0.10] + old * [0.20, 0.40, 0.40])
    car = draws.random(SURVEY_PEOPLE) < np.array([0.20, 0.80, 0.92])[home]
    smoker = draws.random(SURVEY_PEOPLE) < np.interp(age, [20, 80], [0.52, 0.06])
    sober = (1 - old) * [0.40, 0.52, 0.08] + old * [0.56, 0.22, 0.22]
    drinks = _chosen(draws, np.where(smoker[:, None], [0.10, 0.30, 0.60], sober))
    medicine = draws.random(SURVEY_PEOPLE) < np.interp(age, [30, 70], [0.08, 0.85])
    sleepless = draws.random(SURVEY_PEOPLE) < np.where(
        drinks == HABITS.index("daily"), 0.66, np.where(medicine, 0.34, 0.14)
    )
    depressed = draws.random(SURVEY_PEOPLE) < np.where(sleepless, 0.48, 0.12)
    return {
        "age": age.tolist(),
        "home": [HOMES[place] for place in home],
        "car": car.tolist(),
        "smoker": smoker.tolist(),
        "drinks": [HABITS[place] for place in drinks],
        "medicine": medicine.tolist(),
        "sleepless": sleepless.tolist(),
        "depressed": depressed.tolist(),
    }


def _chosen(draws: np.random.Generator, chances: Floats) -> NDArray[np.int64]:
    """One choice for each row of chances."""
    beyond = draws.random(len(chances))[:, None] > np.cumsum(chances, axis=1)[:, :-1]
    return np.asarray(beyond.sum(axis=1), dtype=np.int64)


def run_demo(output: Path, seed: int | None, quiet: bool) -> None:
    """Survey, plan, people, whispers, tables, tree, comparison, collector, page, in ``output``."""
    from sottovoce.console.reading import heard
    from sottovoce.console.surveys import planner_ranking, read_parts
    from sottovoce.console.tables import console
    from sottovoce.console.writing import write_plan, write_whispers
    from sottovoce.demo import pictures
    from sottovoce.demo.page import write_page
    from sottovoce.demo.posting import collector, wait_for_interrupt
    from sottovoce.measure import Population
    from sottovoce.results.plots import save

    start = perf_counter()
    screen = console()
    output.mkdir(parents=True, exist_ok=True)
    people = population()
    with replacing(output / "survey.toml") as draft:
        draft.write_text(SURVEY, encoding="utf-8")
    _write_csv(people, output / "people.csv")
    plan = read_parts(output / "survey.toml").plan()
    write_plan(plan, output / "plan.json")
    ranks = planner_ranking(plan)
    _print_plan(screen, plan, ranks)
    write_whispers(plan, output / "people.csv", output / "reports.parquet", seed, quiet)
    estimate: Any = heard(plan, str(output / "reports.parquet"), quiet).estimate()
    with collector(output) as (url, link):
        posted, own = _posted(plan, people, output, url, quiet)
        story = _told(
            plan,
            ranks,
            people,
            Population.of(people, plan.schema),
            estimate,
            posted,
            own,
            output,
            seed,
            quiet,
        )
        picture = pictures.titled(pictures.marginal(story.two), story.two, float(plan.epsilon))
        save(picture, str(output / "marginal.png"))
        write_page(output / "report.html", story)
        _print_story(screen, story)
        screen.print(f"The demo took {perf_counter() - start:.1f} s.")
        screen.print(str(output / "report.html"), style="bold", markup=False, soft_wrap=True)
        if sys.stdin.isatty() and sys.stdout.isatty() and not quiet:
            screen.print("The studio is there until you press Ctrl-C. To log in, open this once:")
            screen.print(link, markup=False, soft_wrap=True)
            wait_for_interrupt()


def _posted(
    plan: Plan, people: Mapping[str, Sequence[Any]], output: Path, url: str, quiet: bool
) -> tuple[Posted, list[Finding]]:
    """The first people post to the collector; what its store says of them, beside the truth."""
    from sottovoce.console.progress import progress
    from sottovoce.console.reading import heard
    from sottovoce.demo.posting import STORE, post
    from sottovoce.measure import Population

    some = {name: column[:POSTING] for name, column in people.items()}
    _write_csv(some, output / "posting.csv")
    with progress("posting", POSTING, quiet) as advance:
        posted = post(plan, output / "posting.csv", url, advance)
    estimate: Any = heard(plan, f"sqlite:///{output / STORE}", quiet).estimate()
    crowd = Population.of(some, plan.schema)
    return posted, [_finding(crowd, estimate, name) for name in plan.schema]


def _told(
    plan: Plan,
    ranks: Sequence[Rank],
    people: Mapping[str, Sequence[Any]],
    crowd: Population,
    estimate: JointEstimate,
    posted: Posted,
    own: Sequence[Finding],
    output: Path,
    seed: int | None,
    quiet: bool,
) -> Story:
    """What the survey found, beside the truth."""
    from sottovoce.analysis import dependency_tree
    from sottovoce.analysis.pairs import mutual_information
    from sottovoce.demo.curator import curated
    from sottovoce.demo.mixed import mixed
    from sottovoce.demo.popularity import learnt
    from sottovoce.device.client import Client
    from sottovoce.ground.entropy import Seeded

    tree = dependency_tree(estimate)
    edges = [(edge.parent, edge.child) for edge in tree.edges]
    record = {name: column[0] for name, column in people.items()}
    two = _finding(crowd, estimate, *TWO)
    return Story(
        plan=plan,
        ranks=ranks,
        singles=[_finding(crowd, estimate, name) for name in plan.schema],
        two=two,
        three=_finding(crowd, estimate, *THREE),
        tree=tree,
        told={edge: float(mutual_information(_true_pair(crowd, *edge))) for edge in edges},
        pairs=_strongest(crowd, estimate),
        popular=learnt(seed),
        compared=_compared(plan, crowd, seed, quiet),
        posted=posted,
        heard=own,
        mixed=mixed(plan, people, two, ORDER, seed),
        curated=curated(people, plan.schema, plan.epsilon, ORDER, two, output, seed),
        record=record,
        report=Client(plan, entropy=None if seed is None else Seeded(seed)).report(record),
    )


def _truth(crowd: Population, names: tuple[str, ...]) -> Floats:
    from sottovoce.measure.marginals import true_table

    codes = {name: crowd.columns[name].codes for name in names}
    return true_table(codes, names, {name: crowd.columns[name].attribute.size for name in names})


def _finding(crowd: Population, estimate: JointEstimate, *names: str) -> Finding:
    return Finding(estimate.marginal(*names), _truth(crowd, names))


def _true_pair(crowd: Population, one: str, two: str) -> Floats:
    return _truth(crowd, (one, two)).reshape(crowd.columns[one].attribute.size, -1)


def _strongest(crowd: Population, estimate: JointEstimate) -> list[Pair]:
    """The pairs that go together most, by Cramer's V with the noise's share taken off."""
    from sottovoce.analysis import associate
    from sottovoce.analysis.pairs import contingency

    tested = [
        each
        for each in associate(estimate, null="asymptotic")
        if each.is_asked and not isnan(each.cramers_v)
    ]
    found = sorted(tested, key=lambda each: -each.cramers_v)[:PAIRS_SHOWN]
    pairs = []
    for each in found:
        table = _true_pair(crowd, *each.attributes)
        truth = np.sqrt(float(contingency(table)) / (min(table.shape) - 1))
        pairs.append(Pair(each.attributes, each.cramers_v, float(truth)))
    return pairs


def _compared(
    plan: Plan, crowd: Population, seed: int | None, quiet: bool
) -> list[MarginalsComparison]:
    """Methods measured on these people, in a simulation of their own."""
    from sottovoce.console.progress import progress
    from sottovoce.measure import compare_marginals

    drawn = COMPARISON_SEED if seed is None else seed
    with progress("comparing", len(COMPARED), quiet) as advance:
        return list(
            compare_marginals(
                crowd,
                ORDER,
                plan.people,
                [plan.epsilon],
                COMPARED,
                COMPARED_TABLES,
                1,
                drawn,
                advance,
            )
        )


def _write_csv(people: Mapping[str, Sequence[Any]], path: Path) -> None:
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, [people, *zip(*people.values(), strict=True)])


def _print_plan(screen: Console, plan: Plan, ranks: Sequence[Rank]) -> None:
    from sottovoce.console.tables import ranking_table

    screen.print()
    screen.print(str(plan), markup=False)
    screen.print(ranking_table(ranks, plan.question.ranked))


def _print_story(screen: Console, story: Story) -> None:
    from sottovoce.console.tables import marginals_table
    from sottovoce.demo.mixed import trust_models
    from sottovoce.demo.popularity import likings_table
    from sottovoce.demo.tables import pairs_table, trust_table, truth_table

    people = story.two.table.people
    screen.print(
        truth_table(
            f"Single attributes: {people:,} whispers heard", ["attribute", "value"], story.singles
        )
    )
    for finding in (story.two, story.three):
        names = finding.table.attributes
        screen.print(truth_table(", ".join(names), names, [finding]))
    screen.print(story.coverage)
    screen.print("\nWhat tells about what, in nats ± standard error:")
    screen.print(str(story.tree), markup=False)
    screen.print(pairs_table(story.pairs))
    for liking in story.popular:
        screen.print(likings_table(liking))
    screen.print(marginals_table(story.compared))
    posted = story.posted
    title = (
        f"{posted.people:,} people posted over HTTP in {posted.seconds:.1f} s: {posted.rate:,.0f} "
        "reports a second"
    )
    screen.print(truth_table(title, ["attribute", "value"], story.heard))
    screen.print(truth_table("The same, shuffled", TWO, [story.mixed.finding]))
    screen.print(story.mixed.sentence)
    screen.print(
        truth_table("The same, released by a trusted curator", TWO, [story.curated.central])
    )
    screen.print(story.curated.sentence)
    screen.print(trust_table(trust_models(story.two, story.mixed, story.curated), TWO))
