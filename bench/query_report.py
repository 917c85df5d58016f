"""What a file of results says: errors of methods over each other's, intervals, seconds; and
pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.page import write_section
from bench.queries import GROUPS, read_lines
from bench.query_sources import SOURCES

Line = dict[str, Any]
Where = tuple[str, int, int, str, int, str]  # source, size, n, epsilon, predicates, volume

ALLOWED = 1.5  # times the best of all others in hindsight that is not held against a method
MOST_LISTED = 5  # of the worst points
FIGURE_EPSILON, FIGURE_VOLUME = "2", "0.25"  # the thesis's defaults
BY_ROUNDS = ("ahead",)  # methods that ask again, other people each time, after hearing the first
COVERED, LEAST_COVERED = (0.92, 0.98), 0.88  # of 95% intervals, at a point
TITLES = {
    "one": "One dimension",
    "two": "Two dimensions",
    "three": "Three dimensions",
    "mixed": "Eight dimensions, four in order and four without",
    "thesis": "As the thesis measures",
    "sums": "Sums of a public number over one dimension",
}
# what a group is judged by first
BASES = {"one": "hio", "two": "hdg", "three": "hdg", "mixed": "hio", "thesis": "hio", "sums": "hio"}


@dataclass(frozen=True)
class Errors:
    """Mean squared errors of a group: by point, then by method, over all runs."""

    group: str
    points: Mapping[Where, Mapping[str, float]]
    runs: int
    each: Mapping[Where, Mapping[str, Mapping[int, float]]]  # by run

    @property
    def methods(self) -> list[str]:
        """All that were measured, in the group's order."""
        seen = {name for each in self.points.values() for name in each}
        known = [name for name in GROUPS[self.group].methods if name in seen]
        return known + sorted(seen - set(known))

    def ratios(self, ours: str, base: str) -> dict[Where, float]:
        """One method's error over another's, at points that have both."""
        return {
            where: found[ours] / found[base]
            for where, found in self.points.items()
            if ours in found and base in found and found[base] > 0
        }

    def hindsight(self, ours: str, without: Sequence[str] = ()) -> dict[Where, float]:
        """One method's error over the best of all others, point by point."""
        ratios = {}
        for where, found in self.points.items():
            left_out = (ours, *without)
            others = [error for name, error in found.items() if name not in left_out]
            if ours in found and others and min(others) > 0:
                ratios[where] = found[ours] / min(others)
        return ratios

    def foresight(self, ours: str) -> dict[Where, float]:
        """One method's error over that of the other which was best in all other runs, point by
        point: whoever was lucky in a run is not chosen by it. Points of one run are left out.
        """
        ratios = {}
        for where, found in self.each.items():
            others = {name: own for name, own in found.items() if name != ours}
            runs = set(found.get(ours, {})).intersection(*others.values()) if others else set()
            if len(runs) < 2:
                continue
            chosen = 0.0
            for run in runs:
                best = min(others, key=lambda name: sum(others[name][k] for k in runs if k != run))
                chosen += others[best][run]
            if chosen > 0:
                ratios[where] = sum(found[ours][run] for run in runs) / chosen
        return ratios


def errors_of(lines: Iterable[Line], group: str, held_out: bool = False) -> Errors:
    """The errors of a group's lines; of sources that no choice was made on, if so asked."""
    each: dict[Where, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    runs = 0
    for line in lines:
        if line["group"] != group or line["mse"] is None:
            continue
        if held_out and not SOURCES[group][line["source"]].is_held_out:
            continue
        runs = max(runs, line["run"] + 1)
        place = (line["source"], line["size"], line["n"], line["epsilon"], line["predicates"])
        for volume, error in line["mse"].items():
            each[(*place, volume)][line["method"]][line["run"]] = error
    points = {
        where: {name: float(np.mean(list(own.values()))) for name, own in found.items()}
        for where, found in each.items()
    }
    return Errors(group, points, runs, each)


def geometric(ratios: Iterable[float]) -> float:
    """The geometric mean.

    >>> geometric([0.5, 2.0])
    1.0
    """
    listed = list(ratios)
    return exp(sum(log(each) for each in listed) / len(listed))


def by_source(ratios: Mapping[Where, float]) -> dict[str, float]:
    """The geometric mean of each source's ratios."""
    own: dict[str, list[float]] = defaultdict(list)
    for where, ratio in ratios.items():
        own[where[0]].append(ratio)
    return {source: geometric(each) for source, each in own.items()}


def sentences(lines: Sequence[Line], ours: str) -> list[str]:
    """The report: a part for each group that was measured."""
    text: list[str] = []
    for group, title in TITLES.items():
        errors = errors_of(lines, group)
        if errors.points:
            own = _figures(lines, errors) if group == "thesis" else _part(lines, errors, ours)
            text += [f"### {title}", "", *own]
    return text or ["Nothing was measured yet.", ""]


def _part(lines: Sequence[Line], errors: Errors, ours: str) -> list[str]:
    sources = {where[0] for where in errors.points}
    held_out = errors_of(lines, errors.group, held_out=True)
    is_large = any(line["mse"] is not None and "reason" in line for line in lines)
    is_large = is_large and errors.group == "mixed"
    text = [
        f"{len(errors.points):,} points of {len(sources)} source{'s' if len(sources) > 1 else ''}, "
        f"up to {errors.runs} run{'s' if errors.runs > 1 else ''} each.",
        "A ratio is of mean squared errors, and the mean over points is geometric.",
        *(["Methods with too many cells to be run stand by their variance."] if is_large else []),
        "",
        *_method_table(errors, held_out),
    ]
    base = BASES[errors.group]
    if ours != base and errors.ratios(ours, base):
        text += _size_table(errors, ours, base)
        text += _hindsight(errors, ours)
    text += _coverage(lines, errors.group, ours) + _moments(lines, errors.group)
    return text + _seconds(lines, errors.group)


def _figures(lines: Sequence[Line], errors: Errors) -> list[str]:
    """Mean absolute errors by volume, and by epsilon, as figures 7.3 to 7.6 of the thesis."""
    text = [
        "Mean normalised absolute errors (MNAE), as in figures 7.3 to 7.6 of wang2021thesis.",
        "Its census is not among our tables; another stands in, so that the order of methods can "
        "be compared, and no number.",
        "",
    ]
    own = [line for line in lines if line["group"] == "thesis" and line.get("mnae")]
    for source in dict.fromkeys(line["source"] for line in own):
        for n in sorted({line["n"] for line in own}):
            some = [line for line in own if (line["source"], line["n"]) == (source, n)]
            cells: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(
                lambda: defaultdict(list)
            )
            for line in some:
                for volume, error in line["mnae"].items():
                    if line["epsilon"] == FIGURE_EPSILON or volume == FIGURE_VOLUME:
                        cells[line["epsilon"], volume][line["method"]].append(error)
            methods = [
                name for name in errors.methods if any(name in each for each in cells.values())
            ]
            rows = [
                f"{source}, {n:,} people:",
                "",
                f"| epsilon, volume | {' | '.join(f'`{name}`' for name in methods)} |",
                f"| --- |{' --- |' * len(methods)}",
            ]
            for (epsilon, volume), found in sorted(cells.items()):
                shown = [f"{np.mean(found[name]):.3g}" if name in found else "" for name in methods]
                rows.append(f"| {epsilon}, {volume} | {' | '.join(shown)} |")
            text += [*rows, ""]
    return text


def _method_table(errors: Errors, held_out: Errors) -> list[str]:
    """Every method's error over the base's: all sources, and those no choice was made on."""
    base = BASES[errors.group]
    if not any(base in found for found in errors.points.values()):
        return []
    rows = [
        f"| method | over `{base}` | sources | no choice looked at | by volume |",
        "| --- | --- | --- | --- | --- |",
    ]
    volumes = GROUPS[errors.group].volumes
    for name in errors.methods:
        ratios = errors.ratios(name, base)
        if name == base or not ratios:
            continue
        each = by_source(ratios)
        unseen = held_out.ratios(name, base)
        parts = []
        for volume in volumes:
            own = [ratio for where, ratio in ratios.items() if where[-1] == volume]
            if own:
                parts.append(f"{volume}: {geometric(own):.3g}")
        rows.append(
            f"| `{name}` | **{geometric(ratios.values()):.3g}** | "
            f"{min(each.values()):.3g} to {max(each.values()):.3g} | "
            f"{f'{geometric(unseen.values()):.3g}' if unseen else ''} | {', '.join(parts)} |"
        )
    return [*rows, ""]


def _size_table(errors: Errors, ours: str, base: str) -> list[str]:
    """By size and people down, by epsilon across."""
    ratios = errors.ratios(ours, base)
    epsilons = sorted({where[3] for where in ratios}, key=float)
    shapes = sorted({(where[1], where[2], where[4]) for where in ratios})
    rows = [
        f"`{ours}` over `{base}`, in brackets the worst source:",
        "",
        f"| values, people | {' | '.join(f'epsilon {each}' for each in epsilons)} |",
        f"| --- |{' --- |' * len(epsilons)}",
    ]
    for size, people, predicates in shapes:
        cells = []
        for epsilon in epsilons:
            own = {
                where: ratio
                for where, ratio in ratios.items()
                if where[1:5] == (size, people, epsilon, predicates)
            }
            if not own:
                cells.append("")
                continue
            worst = max(by_source(own).values())
            cells.append(f"{geometric(own.values()):.3g} [{worst:.2g}]")
        label = f"{size}, {people:,}" + (f", of {predicates}" if predicates else "")
        rows.append(f"| {label} | {' | '.join(cells)} |")
    return [*rows, ""]


def _hindsight(errors: Errors, ours: str) -> list[str]:
    """Against whatever other method turned out best at each point."""
    text = []
    for without, what in ((BY_ROUNDS, "all others of one round"), ((), "all others")):
        ratios = errors.hindsight(ours, without)
        if not ratios or (not without and not set(BY_ROUNDS) & set(errors.methods)):
            continue
        each = by_source(ratios)
        worst = max(each, key=lambda source: each[source])
        above = sum(ratio > ALLOWED for ratio in ratios.values()) / len(ratios)
        text.append(
            f"Against the best of {what} in hindsight, point by point: "
            f"{geometric(ratios.values()):.3g}; the worst source {worst} {each[worst]:.3g}; "
            f"{above:.1%} of points above {ALLOWED:g}."
        )
        if above:
            hard = sorted(ratios.items(), key=lambda item: -item[1])[:MOST_LISTED]
            listed = "; ".join(
                f"{source} {size}, n {people:,}, epsilon {epsilon}, volume {volume}: {ratio:.2g}"
                for (source, size, people, epsilon, _, volume), ratio in hard
            )
            text.append(f"The largest: {listed}.")
    ratios = errors.foresight(ours) if len(errors.methods) > 2 else {}
    if ratios:
        above = sum(ratio > ALLOWED for ratio in ratios.values()) / len(ratios)
        text.append(
            "Against the other method that was best in the other runs, which is not lucky in "
            f"hindsight: {geometric(ratios.values()):.3g}; {above:.1%} of points above "
            f"{ALLOWED:g}."
        )
    return [*text, ""] if text else []


def _coverage(lines: Sequence[Line], group: str, ours: str) -> list[str]:
    """How often 95% intervals held: a point is a source, size, n, epsilon and volume."""
    found: dict[Where, list[float]] = defaultdict(list)
    for line in lines:
        if line["group"] != group or line["method"] != ours or not line.get("coverage"):
            continue
        place = (line["source"], line["size"], line["n"], line["epsilon"], line["predicates"])
        for volume, share in line["coverage"].items():
            if share is not None:
                found[(*place, volume)].append(share)
    if not found:
        return []
    shares = np.array([np.mean(each) for each in found.values()])
    low, high = COVERED
    inside = float(((shares >= low) & (shares <= high)).mean())
    return [
        f"95% intervals of `{ours}` hold {shares.mean():.1%} on average over {len(shares):,} "
        f"points, {low:.0%} to {high:.0%} at {inside:.0%} of them, at least {LEAST_COVERED:.0%} at "
        f"{(shares >= LEAST_COVERED).mean():.0%}, and {shares.min():.0%} at the worst.",
        *_chance(list(found.values())),
        "",
    ]


def _chance(points: Sequence[Sequence[float]]) -> list[str]:
    """How much of the spread of points is that of their runs: queries of one crowd go together."""
    several = [each for each in points if len(each) > 1]
    if not several:
        return []
    means = np.array([np.mean(each) for each in several])
    squares = np.array([np.var(each, ddof=1) / len(each) for each in several])
    beyond = sqrt(max(0.0, float(means.var(ddof=1) - squares.mean()))) if len(several) > 1 else 0.0
    low, high = COVERED
    # where all runs agree, by chance, the others tell how far runs stray
    reach = 2 * np.sqrt((squares + squares.mean()) / 2)
    outside = ((means + reach < low) | (means - reach > high)).mean()
    return [
        f"A point strays by {sqrt(squares.mean()):.1%} because its runs are few, and by "
        f"{beyond:.1%} beyond that; {outside:.0%} of points lie outside of {low:.0%} to "
        f"{high:.0%} by more than two standard errors."
    ]


def _moments(lines: Sequence[Line], group: str) -> list[str]:
    """Deciles and the mean of the dimension itself, from the same reports."""
    own = [line for line in lines if line["group"] == group and line.get("mean") is not None]
    if not own:
        return []
    epsilons = sorted({line["epsilon"] for line in own}, key=float)
    rows = [
        "Deciles of the dimension, mean absolute error as a share of its length; in brackets the "
        "squared error of the mean, over the variance of a hybrid mechanism that asks for nothing "
        "else (wang2019multidimensional):",
        "",
        f"| method | {' | '.join(f'epsilon {each}' for each in epsilons)} |",
        f"| --- |{' --- |' * len(epsilons)}",
    ]
    for name in dict.fromkeys(line["method"] for line in own):
        cells = []
        for epsilon in epsilons:
            some = [line for line in own if (line["method"], line["epsilon"]) == (name, epsilon)]
            deciles = float(np.mean([line["deciles"] for line in some])) if some else None
            means = float(np.mean([line["mean"] for line in some])) if some else None
            cells.append("" if deciles is None else f"{deciles:.2%} [{means:.2g}]")
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return [*rows, ""]


def _seconds(lines: Sequence[Line], group: str) -> list[str]:
    """Medians by method, of the largest points."""
    own = [line for line in lines if line["group"] == group and line.get("seconds")]
    if not own:
        return []
    largest = max((line["n"], line["size"]) for line in own)
    times: dict[str, list[float]] = defaultdict(list)
    for line in own:
        if (line["n"], line["size"]) == largest:
            times[line["method"]].append(line["seconds"])
    listed = ", ".join(f"`{name}` {median(each):.2g}" for name, each in sorted(times.items()))
    people, size = largest
    return [
        f"Seconds to plan, simulate, aggregate, fit and answer at {people:,} people and {size} "
        f"values: {listed}.",
        "",
    ]


# -- pictures


def pictures(lines: Sequence[Line]) -> dict[str, tuple[str, Any]]:
    """Charts by file name with captions: error by volume and by epsilon for each group."""
    charts = {}
    for group, title in TITLES.items():
        errors = errors_of(lines, group)
        if errors.points:
            charts[f"queries-{group}.svg"] = (
                f"{title}: squared error by volume and epsilon",
                error_chart(errors),
            )
    return charts


def error_chart(errors: Errors) -> Any:
    """The geometric mean over sources and sizes of the squared error, a panel for each n."""
    import altair as alt

    rows = []
    people = sorted({where[2] for where in errors.points})
    volumes = GROUPS[errors.group].volumes
    for n in people:
        for axis, place in (("epsilon", 3), ("volume", 5)):
            for name in errors.methods:
                own: dict[str, list[float]] = defaultdict(list)
                for where, found in errors.points.items():
                    if where[2] == n and name in found and found[name] > 0:
                        own[str(where[place])].append(found[name])
                for value, each in own.items():
                    rows.append(
                        {
                            "panel": f"{n:,} people, by {axis}",
                            "x": value,
                            "method": name,
                            "error": geometric(each),
                        }
                    )
    order = [*sorted({where[3] for where in errors.points}, key=float), *volumes]
    panels = []
    for title in dict.fromkeys(row["panel"] for row in rows):
        own_rows = [row for row in rows if row["panel"] == title]
        chart = (
            alt.Chart(alt.Data(values=own_rows), title=title, width=260, height=200)
            .mark_line(point=True)
            .encode(
                x=alt.X("x:N", sort=order, title=None),
                y=alt.Y("error:Q", scale=alt.Scale(type="log"), title="squared error of a share"),
                color=alt.Color("method:N", sort=errors.methods),
            )
        )
        panels.append(chart)
    return alt.concat(*panels, columns=2)


def report(results: Path, docs: Path | None, ours: str) -> int:
    """Print the report; with a page, write it there between its marks, and pictures beside it."""
    lines = read_lines(results)
    text = sentences(lines, ours)
    print("\n".join(text))
    if docs is not None and lines:
        write_section(docs, "bench.queries", text, pictures(lines))
    return 0
