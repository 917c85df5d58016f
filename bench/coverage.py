"""``python -m bench.coverage``: how often intervals of marginals hold the truth, point by point.

The crowds, tables and plans of ``bench.marginals``. A point is one source, number of people, size
of tables and epsilon; its coverage is the share of all cells, of all tables and runs, whose
interval holds what these people truly say. ``--report FILE`` says what a file of results says, and
with ``--docs docs/intervals.md`` writes it there, with pictures.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import add_data_option, data_folder
from bench.marginal_sources import SOURCES
from bench.marginals import COARSE_EPSILONS, PEOPLE, Grid, read_lines, run
from bench.page import write_section
from sottovoce.measure.marginals import LEVELS

TOLERANCE = 0.03  # a point is well covered within so much of the nominal level
TOO_LOW = 0.07  # a point is badly covered from so much below it
MOST_NAMED = 10
METHOD = "auto"
SECONDS = 900.0  # that one point may take
DEFAULT_FILE = "out/coverage.jsonl"

Line = dict[str, Any]
Place = tuple[str, int, int, float]  # source, people, attributes of a table, epsilon


@dataclass(frozen=True)
class CoveredPoint:
    """One point: the share of cells held at each level, over its runs."""

    place: Place
    runs: int
    shares: Mapping[float, float]
    spread: float  # standard deviation of the runs' shares at 95%, or NaN

    @property
    def is_held_out(self) -> bool:
        """Whether no choice was made with this source in view."""
        return SOURCES[self.place[0]].held_out

    def __str__(self) -> str:
        source, people, k, epsilon = self.place
        shares = " / ".join(f"{share:.1%}" for share in self.shares.values())
        return f"{source}, n = {people:,}, k = {k}, eps {epsilon:g}: {shares} ({self.runs} runs)"


def points_of(lines: Iterable[Line]) -> list[CoveredPoint]:
    """The points of a file of results, in order."""
    runs: dict[Place, list[dict[str, float]]] = defaultdict(list)
    for line in lines:
        if line.get("coverages"):
            place = line["source"], line["n"], line["k"], line["epsilon"]
            runs[place].append(line["coverages"])
    points = []
    for place, own in sorted(runs.items()):
        shares = {level: float(np.mean([each[str(level)] for each in own])) for level in LEVELS}
        spread = float(np.std([each["0.95"] for each in own], ddof=1)) if len(own) > 1 else np.nan
        points.append(CoveredPoint(place, len(own), shares, spread))
    return points


def sentences(points: Sequence[CoveredPoint]) -> list[str]:
    """What the points say, as Markdown."""
    out = [
        "| sources | points | nominal | mean | within 3 points | below | above | 7 below or more "
        "| least | most |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups = {
        "looked at": [point for point in points if not point.is_held_out],
        "held out": [point for point in points if point.is_held_out],
        "all": list(points),
    }
    for name, own in groups.items():
        if own:
            out += [_row(name, own, level) for level in LEVELS]
    out += ["", "By size of table, at 95%:", "", *_by_order(points), "", "By source, at 95%:", ""]
    out += [*_by_source(points), ""]
    spreads = [point.spread for point in points if not np.isnan(point.spread)]
    if spreads:
        typical = float(np.sqrt(np.mean(np.square(spreads))))
        least = min(point.runs for point in points)
        out.append(
            f"One run's share of cells varies about its point's by {typical:.3f} (root mean "
            f"square), since the cells of a run share their reports; points have {least} to "
            f"{max(point.runs for point in points)} runs."
        )
        out.append("")
    ordered = sorted(points, key=lambda point: point.shares[0.95])
    out += [f"The {MOST_NAMED} points covered least (80 / 95 / 99%):", ""]
    out += [f"- {point}" for point in ordered[:MOST_NAMED]]
    return [*out, ""]


def _row(name: str, points: Sequence[CoveredPoint], level: float) -> str:
    shares = np.array([point.shares[level] for point in points])
    is_near = np.abs(shares - level) <= TOLERANCE
    cells = [
        name,
        str(len(points)),
        f"{level:.0%}",
        f"{shares.mean():.1%}",
        f"{is_near.mean():.0%}",
        f"{(shares < level - TOLERANCE).mean():.0%}",
        f"{(shares > level + TOLERANCE).mean():.0%}",
        f"{(shares < level - TOO_LOW).mean():.0%}",
        f"{shares.min():.1%}",
        f"{shares.max():.1%}",
    ]
    return f"| {' | '.join(cells)} |"


def _by_order(points: Sequence[CoveredPoint]) -> list[str]:
    """A row for each size of table and epsilon."""
    epsilons = sorted({point.place[3] for point in points})
    titles = [f"eps {epsilon:g}" for epsilon in epsilons]
    rows = [f"| k | {' | '.join(titles)} |", f"| --- |{' --- |' * len(titles)}"]
    for order in sorted({point.place[2] for point in points}):
        cells = []
        for epsilon in epsilons:
            own = [each.shares[0.95] for each in points if each.place[2:] == (order, epsilon)]
            cells.append(f"{np.mean(own):.1%}" if own else "")
        rows.append(f"| {order} | {' | '.join(cells)} |")
    return rows


def _by_source(points: Sequence[CoveredPoint]) -> list[str]:
    """A row for each source."""
    rows = ["| source | points | mean | least | most |", "| --- | --- | --- | --- | --- |"]
    for source in dict.fromkeys(point.place[0] for point in points):
        own = [point.shares[0.95] for point in points if point.place[0] == source]
        figures = [f"{np.mean(own):.1%}", f"{min(own):.1%}", f"{max(own):.1%}"]
        rows.append(f"| {source} | {len(own)} | {' | '.join(figures)} |")
    return rows


def width_sentences(lines: Iterable[Line], before: Iterable[Line]) -> list[str]:
    """How wide 95% intervals are beside those of an older file of results, same runs."""
    older = {_run(line): line for line in before if line.get("width")}
    ratios = [
        line["width"] / older[_run(line)]["width"]
        for line in lines
        if line.get("width") and _run(line) in older
    ]
    if not ratios:
        return []
    mean = float(np.exp(np.mean(np.log(ratios))))
    share = float(np.mean(np.array(ratios) > 1))
    return [
        f"Mean width beside the older file: {mean:.2f} of it (geometric mean of {len(ratios)} "
        f"runs), wider in {share:.0%}.",
        "",
    ]


def _run(line: Line) -> tuple[Any, ...]:
    return line["source"], line["n"], line["k"], line["epsilon"], line["run"]


def reliability(points: Sequence[CoveredPoint]) -> Any:
    """Reliability diagrams: the share held against the nominal one, a dot for each point."""
    import altair as alt

    charts = []
    for is_held_out, title in ((False, "sources looked at"), (True, "held-out sources")):
        own = [point for point in points if point.is_held_out == is_held_out]
        rows = [
            {"nominal": level, "held": share, "k": point.place[2]}
            for point in own
            for level, share in point.shares.items()
        ]
        x = alt.X("nominal:Q", scale=alt.Scale(domain=[0.75, 1]), axis=alt.Axis(format="%"))
        y = alt.Y("held:Q", scale=alt.Scale(domain=[0.55, 1]), axis=alt.Axis(format="%"))
        dots = (
            alt.Chart(alt.Data(values=rows))
            .mark_circle(opacity=0.35, size=22)
            .encode(x=x, y=y, color=alt.Color("k:O", title="attributes"))
        )
        ends = [{"nominal": end, "held": end} for end in (0.75, 1.0)]
        line = alt.Chart(alt.Data(values=ends)).mark_line(color="#555").encode(x=x, y=y)
        charts.append((line + dots).properties(width=300, height=260, title=title))
    return alt.hconcat(*charts)


def report(results: Path, docs: Path | None, older: Path | None) -> int:
    """Print what a file of results says; with a page, write it there."""
    lines = [line for line in read_lines(results) if line["method"] == METHOD]
    points = points_of(lines)
    if not points:
        print(f"{results}: no coverage was measured")
        return 1
    text = sentences(points)
    if older is not None:
        text += width_sentences(lines, read_lines(older))
    print("\n".join(text))
    if docs is not None:
        caption = "Share of cells inside their intervals against the nominal share"
        pictures = {"intervals-reliability.svg": (caption, reliability(points))}
        write_section(docs, "bench.coverage", text, pictures)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Measure and report, or only report."""
    parser = argparse.ArgumentParser(prog="python -m bench.coverage", description=__doc__)
    parser.add_argument("--out", metavar="FILE", default=DEFAULT_FILE, help="results, by line")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sources", metavar="a,b", help="by default all")
    parser.add_argument("--people", metavar="N,N", help="by default 65536,262144")
    parser.add_argument("--k", metavar="k,k", help="by default 3,6,8 where they fit")
    parser.add_argument("--epsilons", metavar="E,E", help="by default 0.2,0.6,1.0,1.4,2.0")
    parser.add_argument("--runs", type=int, default=2)
    add_data_option(parser)
    parser.add_argument("--report", metavar="FILE", help="only say what a file of results says")
    parser.add_argument("--older", metavar="FILE", help="results of before, to compare widths")
    parser.add_argument("--docs", metavar="PAGE", help="write the report there, with pictures")
    asked = parser.parse_args(arguments)
    docs = None if asked.docs is None else Path(asked.docs)
    older = None if asked.older is None else Path(asked.older)
    if asked.report:
        return report(Path(asked.report), docs, older)
    sources = tuple(asked.sources.split(",")) if asked.sources else tuple(SOURCES)
    for name in sources:
        if name not in SOURCES:
            parser.error(f"source ({name}) must be one of {', '.join(SOURCES)}")
    people = tuple(int(each) for each in asked.people.split(",")) if asked.people else PEOPLE
    orders = tuple(int(each) for each in asked.k.split(",")) if asked.k else (3, 6, 8)
    epsilons = tuple(asked.epsilons.split(",")) if asked.epsilons else COARSE_EPSILONS
    out = Path(asked.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    data = str(data_folder(parser, asked.data))
    grid = Grid(sources, (METHOD,), people, orders, epsilons, asked.runs)
    run(grid, out, asked.workers, data, True, SECONDS)
    return report(out, docs, older)


if __name__ == "__main__":
    raise SystemExit(main())
