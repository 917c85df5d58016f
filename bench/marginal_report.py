"""What a file of results says: error against error, by people, attributes and k; intervals;
seconds; and pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, inf, isfinite, log, log10, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from bench.marginal_sources import SOURCES
from bench.marginals import COARSE_EPSILONS, REPAIR, read_lines
from bench.page import write_section

ALLOWED = 1.05  # a ratio that is not held against a method
MOST_LISTED = 12  # of the worst points
Line = dict[str, Any]
COLOURS = ("#22627f", "#c8374d", "#e0a030", "#6a9f58", "#7b5ea7", "#8c6d5a", "#4aa3a2", "#999999")


@dataclass(frozen=True)
class Point:
    """One source, n, k and epsilon: how the judged method compares with the base over the same
    runs.
    """

    source: str
    n: int
    d: int
    k: int
    epsilon: float
    runs: int
    ours: float  # mean squared error of a table, summed over cells
    base: float
    ratio: float
    spread: float  # standard error of the ratio; infinite for one run
    chosen: str

    @property
    def falls_short(self) -> bool:
        """Above what is allowed, by more than twice the standard error."""
        return self.ratio - 2 * self.spread > ALLOWED

    def __str__(self) -> str:
        doubt = f" ± {self.spread:.2f}" if self.spread < inf else ""
        return (
            f"{self.source}, n = {_power(self.n)}, k = {self.k}, eps {self.epsilon:g}: "
            f"{self.ratio:.2f}{doubt} ({self.ours:.2e} by {self.chosen} against {self.base:.2e}, "
            f"{self.runs} runs)"
        )


def points_of(lines: Iterable[Line], ours: str, base: str, figure: str = "sse") -> list[Point]:
    """The points that both methods have, run by run.

    Args:
        lines: What was measured.
        ours: The method that is judged.
        base: The method it is judged by.
        figure: Of the judged one: ``sse``, or ``sse_repaired`` if its tables are unbiased.
    """
    cells: dict[tuple[Any, ...], dict[str, dict[int, Line]]] = defaultdict(
        lambda: {ours: {}, base: {}}
    )
    for line in lines:
        wanted = figure if line["method"] == ours else "sse"
        if line["method"] in (ours, base) and line.get(wanted) is not None:
            place = line["source"], line["n"], line["d"], line["k"], line["epsilon"]
            cells[place][line["method"]][line["run"]] = line
    points = []
    for place, both in sorted(cells.items()):
        runs = sorted(both[ours].keys() & both[base].keys())
        if runs:
            one = np.array([both[ours][run][figure] for run in runs])
            other = np.array([both[base][run]["sse"] for run in runs])
            chosen = str(both[ours][runs[0]].get("chosen", ours))
            points.append(
                Point(*place, len(runs), one.mean(), other.mean(), *ratio_of(one, other), chosen)
            )
    return points


def ratio_of(one: Any, other: Any) -> tuple[float, float]:
    """(ratio of means, its standard error), of figures that belong together run by run.

    >>> ratio_of(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    (0.5, 0.0)
    """
    ratio = float(one.mean() / other.mean())
    if len(one) < 2:
        return ratio, inf
    # Var[a/b] is about the mean of (a_i - r b_i)^2 over (R - 1) b^2, as usual for a ratio
    left = one - ratio * other
    return ratio, float(sqrt((left @ left) / (len(one) * (len(one) - 1))) / other.mean())


def geometric_mean(points: Sequence[Point]) -> float:
    """Of the ratios."""
    return exp(sum(log(point.ratio) for point in points) / len(points))


def geometric_spread(points: Sequence[Point]) -> float:
    """The standard error of the geometric mean from the runs' own spread; infinite if a point has
    one run.
    """
    return (
        geometric_mean(points)
        * sqrt(sum((point.spread / point.ratio) ** 2 for point in points))
        / len(points)
    )


def _with_doubt(points: Sequence[Point]) -> str:
    spread = geometric_spread(points)
    return f"{geometric_mean(points):.3f}" + (f" ± {spread:.3f}" if spread < inf else "")


# -- the text


def sentences(lines: Sequence[Line], ours: str, base: str) -> list[str]:
    """The report in markdown."""
    points = points_of(lines, ours, base)
    if not points:
        return [f"No point has both `{ours}` and `{base}` yet."]
    short = [point for point in points if point.falls_short]
    judged = [point for point in points if isfinite(point.spread)]
    out = [
        f"Squared error of `{ours}` over that of `{base}`, same people and tables: geometric mean "
        f"**{_with_doubt(points)}** over {len(points)} points.",
        "",
        *_groups(points),
        "",
        *_by_setting(points),
        "",
    ]
    if short:
        out.append(
            f"{len(short)} points lie above {ALLOWED} by more than twice the ratio's standard "
            "error:"
        )
        out += [
            "",
            *(f"- {point}" for point in sorted(short, key=lambda each: -each.ratio)[:MOST_LISTED]),
        ]
        if len(short) > MOST_LISTED:
            out.append(f"- and {len(short) - MOST_LISTED} more")
    else:
        which = (
            f"Of the {len(judged)} points with two runs or more none lies"
            if judged != points
            else "No point lies"
        )
        out.append(f"{which} above {ALLOWED} by more than twice the ratio's standard error.")
        out.append("The highest:")
        out += ["", *(f"- {point}" for point in sorted(points, key=lambda each: -each.ratio)[:5])]
    return [
        *out,
        "",
        *_others(lines, ours, base),
        *_choices(lines, ours),
        *_coverage(lines, ours),
        *_seconds(lines),
    ]


def _others(lines: Sequence[Line], ours: str, base: str) -> list[str]:
    """How the papers' other methods compare with the base, where they were measured."""
    rows = []
    for method in sorted({line["method"] for line in lines} - {ours, base}):
        points = points_of(lines, method, base)
        if points:
            best = min(points, key=lambda each: each.ratio)
            where = (
                f"{best.ratio:.2g} ({best.source}, n = {_power(best.n)}, k = {best.k}, eps "
                f"{best.epsilon:g})"
            )
            after = points_of(lines, method, base, "sse_repaired")
            repaired = f"{geometric_mean(after):.3g} ({len(after)} points)" if after else ""
            mean = f"{geometric_mean(points):.3g}"
            rows.append(f"| `{method}` | {len(points)} | {mean} | {repaired} | {where} |")
    if not rows:
        return []
    head = [
        f"| method | points | squared error over that of `{base}` | after {REPAIR} | least |",
        "| --- | --- | --- | --- | --- |",
    ]
    return [*head, *rows, ""]


def _groups(points: Sequence[Point]) -> list[str]:
    kinds: dict[str, Callable[[Point], bool]] = {
        "yes or no": lambda point: (
            SOURCES[point.source].is_binary and not SOURCES[point.source].held_out
        ),
        "categories": lambda point: (
            not SOURCES[point.source].is_binary and not SOURCES[point.source].held_out
        ),
        "held out": lambda point: SOURCES[point.source].held_out,
    }
    rows = ["| sources | points | geometric mean | worst |", "| --- | --- | --- | --- |"]
    for name, belongs in kinds.items():
        own = [point for point in points if belongs(point)]
        if own:
            worst = max(own, key=lambda each: each.ratio)
            where = f"{worst.ratio:.2f} ({worst.source}, k = {worst.k}, eps {worst.epsilon:g})"
            rows.append(f"| {name} | {len(own)} | {_with_doubt(own)} | {where} |")
    return rows


def _by_setting(points: Sequence[Point]) -> list[str]:
    """A row per n, d, k; the coarse epsilons across: geometric mean over sources [worst]."""
    coarse = [float(each) for each in COARSE_EPSILONS]
    shown = [epsilon for epsilon in coarse if any(point.epsilon == epsilon for point in points)]
    rows = [
        f"| n, d, k | {' | '.join(f'eps {epsilon:g}' for epsilon in shown)} | all eps |",
        f"| --- |{' --- |' * (len(shown) + 1)}",
    ]
    for n, d, k in sorted({(point.n, point.d, point.k) for point in points}):
        own = [point for point in points if (point.n, point.d, point.k) == (n, d, k)]
        cells = [
            _mean_and_worst([point for point in own if point.epsilon == epsilon])
            for epsilon in shown
        ]
        rows.append(f"| {_power(n)}, {d}, {k} | {' | '.join(cells)} | {_with_doubt(own)} |")
    return rows


def _mean_and_worst(points: Sequence[Point]) -> str:
    return (
        f"{geometric_mean(points):.2f} [{max(point.ratio for point in points):.2f}]"
        if points
        else ""
    )


def _choices(lines: Sequence[Line], ours: str) -> list[str]:
    counts: dict[str, int] = defaultdict(int)
    for line in lines:
        if line["method"] == ours and line.get("chosen"):
            counts[line["chosen"]] += 1
    if set(counts) <= {ours}:
        return []
    listed = ", ".join(
        f"`{name}` {count}" for name, count in sorted(counts.items(), key=lambda each: -each[1])
    )
    return [f"What `{ours}` chose, in runs: {listed}.", ""]


def _coverage(lines: Sequence[Line], ours: str) -> list[str]:
    held = [line for line in lines if line["method"] == ours and line.get("coverage") is not None]
    if not held:
        return []
    means = coverage_points(held)
    outside = [each for each in means if not 0.92 <= each["coverage"] <= 0.98]
    figures = [each["coverage"] for each in means]
    out = [
        f"95% intervals of `{ours}` hold {np.mean(figures):.1%} of cells on average, between "
        f"{min(figures):.1%} and {max(figures):.1%} over {len(figures)} points; {len(outside)} "
        "points lie outside 92% to 98%.",
    ]
    for each in sorted(outside, key=lambda point: -abs(point["coverage"] - 0.95))[:5]:
        where = (
            f"{each['source']}, n = {_power(each['n'])}, k = {each['k']}, eps {each['epsilon']:g}"
        )
        out.append(f"- {where}: {each['coverage']:.1%}")
    return [*out, ""]


def coverage_points(held: Iterable[Line]) -> list[Line]:
    """The mean over runs of the share of cells inside, for each source, n, k and epsilon."""
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for line in held:
        groups[line["source"], line["n"], line["k"], line["epsilon"]].append(line["coverage"])
    keys = ("source", "n", "k", "epsilon")
    return [
        dict(zip(keys, place, strict=True)) | {"coverage": float(np.mean(g))}
        for place, g in sorted(groups.items())
    ]


def _seconds(lines: Sequence[Line]) -> list[str]:
    out = []
    for method in sorted({line["method"] for line in lines}):
        own = [
            line for line in lines if line["method"] == method and line.get("seconds") is not None
        ]
        if own:
            middle, most = np.quantile([line["seconds"] for line in own], [0.5, 0.95])
            out.append(f"`{method}`: median {middle:.1f} s, 95% within {most:.1f} s")
    about = (
        "Seconds to plan, simulate, aggregate, estimate and answer, on one core of a machine that "
        "did other work too"
    )
    return [f"{about}.", f"{'; '.join(out)}.", ""]


def _power(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n.bit_count() == 1 else f"{n:,}"


# -- the pictures


def pictures(lines: Sequence[Line]) -> dict[str, Any]:
    """Charts by file name: error against epsilon for each group of sources and n."""
    charts = {}
    kinds = {"binary": (True, False), "categories": (False, False), "held-out": (None, True)}
    for n in sorted({line["n"] for line in lines}):
        for kind, (is_binary, held_out) in kinds.items():
            own = [
                line
                for line in lines
                if line["n"] == n
                and line.get("sse") is not None
                and SOURCES[line["source"]].held_out == held_out
                and (is_binary is None or SOURCES[line["source"]].is_binary == is_binary)
            ]
            if own:
                charts[f"marginals-{kind}-{n}.svg"] = error_chart(own, f"n = {_power(n)}")
    return charts


def error_chart(lines: Sequence[Line], title: str) -> Any:
    """Small multiples: mean squared error over runs against epsilon, on a logarithmic scale, a
    colour per method.
    """
    import altair as alt

    groups: dict[tuple[str, int, float, str], list[float]] = defaultdict(list)
    for line in lines:
        groups[line["source"], line["k"], line["epsilon"], line["method"]].append(line["sse"])
    panels: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for (source, k, epsilon, method), figures in sorted(groups.items()):
        mean = float(np.mean(figures))
        error = float(np.std(figures, ddof=1) / sqrt(len(figures))) if len(figures) > 1 else 0.0
        row = {
            "epsilon": epsilon,
            "method": method,
            "sse": mean,
            "low": max(mean / 10, mean - error),
        }
        panels[source, k].append(row | {"high": mean + error})
    order = {name: place for place, name in enumerate(SOURCES)}
    methods = sorted({line["method"] for line in lines})
    colour = alt.Color(
        "method:N", scale=alt.Scale(domain=methods, range=list(COLOURS[: len(methods)]))
    )
    charts = []
    for source, k in sorted(panels, key=lambda place: (order[place[0]], place[1])):
        base = alt.Chart(alt.Data(values=panels[source, k])).encode(
            x=alt.X(
                "epsilon:Q",
                title="epsilon",
                scale=alt.Scale(domain=[0, 2.1]),
                axis=alt.Axis(tickCount=5),
            ),
            color=colour,
        )
        y = _decades([row[end] for row in panels[source, k] for end in ("low", "high")])
        drawn = base.mark_line(point=True).encode(y=y.field("sse"))
        whisker = base.mark_rule().encode(y=y.field("low"), y2="high:Q")
        charts.append(
            (drawn + whisker).properties(width=190, height=150, title=f"{source}, k = {k}")
        )
    return alt.concat(*charts, columns=4).properties(title=title).resolve_scale(color="shared")


def _decades(figures: Sequence[float]) -> Any:
    """A logarithmic axis over the powers of ten that the figures need."""
    import altair as alt

    low, high = floor(log10(min(figures))), ceil(log10(max(figures)))
    values = [10.0**power for power in range(low, high + 1)]
    scale = alt.Scale(type="log", domain=[values[0], values[-1]], nice=False)
    return alt.Y(
        type="quantitative",
        title="squared error",
        scale=scale,
        axis=alt.Axis(values=values, format=".0e"),
    )


# -- the page


def report(results: Path, docs: Path | None, ours: str, base: str) -> int:
    """Print the report; with a page, write it there between its marks,
    and the pictures beside it.
    """
    lines = read_lines(results)
    text = sentences(lines, ours, base)
    print("\n".join(text))
    if docs is not None and lines:
        charts = {name: (_caption(name), chart) for name, chart in pictures(lines).items()}
        write_section(docs, "bench.marginals", text, charts)
    return 0


def _caption(name: str) -> str:
    what = name.removesuffix(".svg").removeprefix("marginals-").replace("-", " ")
    return f"Squared error against epsilon, {what} people"
