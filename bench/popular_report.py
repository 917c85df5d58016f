"""What a file of points says: values found beside the genie's and the others', their errors, items,
and pictures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

from bench.marginal_report import COLOURS
from bench.page import write_section
from bench.popular import BEST, OLDER

Line = dict[str, Any]
MAIN = ("words-6", "words-16", "exponential-64")
CHOSEN = ("kosarak_prefix70k", "retail", "online_retail", "lastfm_genres")
NAMES = {
    "words-6": "words, 48 bits",
    "words-16": "words, 128 bits",
    "exponential-64": "exponential, 64 bits",
    "words-6, a to z": "words, letters a to z declared",
    "words-6, a list": "words, a list of 259,000 given afterwards",
}


def report(results: Path, docs: Path | None) -> None:
    """Print the report; with a page, write it there, and the pictures beside it."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    text = [
        *_values(lines),
        *_others(lines),
        *_variants(lines),
        *_sets(lines, "items"),
        *_sets(lines, "sets"),
    ]
    print("\n".join(text))
    if docs is not None:
        charts = {
            "popular-values.svg": ("Values found against epsilon", _found_chart(lines)),
            "popular-methods.svg": ("F1 of every method against epsilon", _method_chart(lines)),
            "popular-sets.svg": ("Items and itemsets found", _set_chart(lines)),
        }
        write_section(docs, "bench.popular", text, charts)


def _points(lines: Sequence[Line], **wanted: Any) -> list[Line]:
    return [line for line in lines if all(line[part] == value for part, value in wanted.items())]


def _figure(lines: Sequence[Line], part: str, digits: str, **wanted: Any) -> str:
    own = _points(lines, **wanted)
    return format(own[0][part], digits) if own and own[0][part] is not None else ""


def _epsilons(lines: Sequence[Line]) -> list[float]:
    return sorted({line["epsilon"] for line in lines})


def _values(lines: Sequence[Line]) -> list[str]:
    """Values found by windows, pem and the genie, and the errors of those that were."""
    own = [
        line
        for line in _points(lines, kind="values")
        if line["source"] in MAIN and line["method"] in BEST
    ]
    epsilons = _epsilons(own)
    out = [*_sums(own), ""]
    header = " | ".join(f"eps {epsilon:g}" for epsilon in epsilons)
    out += [
        "Found of the top 16 / of the top 32; in brackets the mean squared error of the found "
        "counts (top 16).",
        "",
        f"| source | method | {header} |",
        f"| --- | --- | {' | '.join('---' for _ in epsilons)} |",
    ]
    for source in MAIN:
        for method in BEST:
            cells = []
            for epsilon in epsilons:
                told = {"source": source, "method": method, "epsilon": epsilon}
                few, many = (_figure(own, "found", ".1f", top=top, **told) for top in (16, 32))
                error = _figure(own, "variance", ".1e", top=16, **told)
                cells.append(f"{few} / {many} [{error}]")
            out.append(f"| {NAMES[source]} | `{method}` | {' | '.join(cells)} |")
    return [*out, ""]


def _sums(own: Sequence[Line]) -> list[str]:
    """How many values windows found in all, beside the others."""
    told = []
    for source in MAIN:
        sums = {
            method: sum(line["found"] for line in _points(own, source=source, method=method))
            for method in BEST
        }
        ratios = _error_ratios(_points(own, source=source))
        if not sums["genie"] or not sums["pem"]:
            continue
        told.append(
            f"{NAMES[source]}: {sums['windows'] / sums['genie']:.0%} of what the genie finds, "
            f"{sums['windows'] / sums['pem']:.2f} times `pem`'s, the error of the found "
            f"{ratios:.1f} times lower"
        )
    return ["`windows`, summed over epsilon and top.", f"{'; '.join(told)}."]


def _error_ratios(own: Sequence[Line]) -> float:
    """pem's mean squared error over that of windows, as a geometric mean over points at which both
    found values.
    """
    logs = []
    for line in _points(own, method="windows"):
        other = _points(own, method="pem", epsilon=line["epsilon"], top=line["top"])
        if other and other[0]["variance"] and line["variance"]:
            logs.append(log(other[0]["variance"] / line["variance"]))
    return exp(float(np.mean(logs))) if logs else float("nan")


def _others(lines: Sequence[Line]) -> list[str]:
    """F1 of every method at top 16."""
    own = [line for line in _points(lines, kind="values", top=16) if line["source"] in MAIN]
    own = [
        line
        for line in own
        if any(line["method"] in OLDER for line in _points(own, source=line["source"]))
    ]
    if not own:
        return []
    epsilons = [
        epsilon for epsilon in _epsilons(own) if _points(own, method=OLDER[0], epsilon=epsilon)
    ]
    out = [
        "F1 and seconds of every method, top 16 (the older methods: three runs).",
        "",
        f"| source | method | {' | '.join(f'eps {epsilon:g}' for epsilon in epsilons)} |",
        f"| --- | --- | {' | '.join('---' for _ in epsilons)} |",
    ]
    for source in dict.fromkeys(line["source"] for line in own if line["method"] in OLDER):
        for method in ("windows", "pem", *OLDER):
            cells = []
            for epsilon in epsilons:
                told = {"source": source, "method": method, "epsilon": epsilon}
                cells.append(
                    f"{_figure(own, 'f1', '.2f', **told)} "
                    f"({_figure(own, 'seconds', '.1f', **told)} s)"
                )
            out.append(f"| {NAMES[source]} | `{method}` | {' | '.join(cells)} |")
    return [*out, ""]


def _variants(lines: Sequence[Line]) -> list[str]:
    """What more knowledge is worth: an alphabet, a list, or scrambling for pem."""
    epsilons = _epsilons(_points(lines, kind="values", source="words-6"))
    rows = []
    for source, method in (
        ("words-6", "windows"),
        ("words-6, a to z", "windows"),
        ("words-6, a list", "windows"),
        ("words-6", "pem"),
        ("words-6", "pem:scramble=true"),
    ):
        cells = [
            _figure(lines, "found", ".1f", source=source, method=method, top=32, epsilon=each)
            for each in epsilons
        ]
        if any(cells):
            rows.append(f"| {NAMES[source]} | `{method}` | {' | '.join(cells)} |")
    if not rows:
        return []
    return [
        "Found of the top 32 words, with more told beforehand or afterwards.",
        "",
        f"| source | method | {' | '.join(f'eps {epsilon:g}' for epsilon in epsilons)} |",
        f"| --- | --- | {' | '.join('---' for _ in epsilons)} |",
        *rows,
        "",
    ]


def _sets(lines: Sequence[Line], kind: str) -> list[str]:
    own = _points(lines, kind=kind)
    if not own:
        return []
    methods = list(dict.fromkeys(line["method"] for line in own))
    epsilons = _epsilons(own)
    columns = [(method, epsilon) for epsilon in epsilons for method in methods]
    out = [
        f"{'Items' if kind == 'items' else 'Itemsets'}, top 64: found [mean squared error of the "
        "found counts].",
        "",
        f"| source | {' | '.join(f'`{method}`, eps {epsilon:g}' for method, epsilon in columns)} |",
        f"| --- | {' | '.join('---' for _ in columns)} |",
    ]
    for source in dict.fromkeys(line["source"] for line in own):
        cells = []
        for method, epsilon in columns:
            told = {"source": source, "method": method, "epsilon": epsilon}
            cells.append(
                f"{_figure(own, 'found', '.1f', **told)} "
                f"[{_figure(own, 'variance', '.0e', **told)}]"
            )
        mark = "" if source in CHOSEN else " (untouched)"
        out.append(f"| {source}{mark} | {' | '.join(cells)} |")
    return [*out, ""]


# -- the pictures


def _line_chart(rows: Sequence[Line], y: str, title: str, panels: Sequence[str]) -> Any:
    """Small multiples: a line per method with error bars, one panel for each value of ``panel``."""
    import altair as alt

    methods = list(dict.fromkeys(row["method"] for row in rows))
    colour = alt.Color(
        "method:N", scale=alt.Scale(domain=methods, range=list(COLOURS[: len(methods)]))
    )
    charts = []
    for panel in panels:
        own = [row for row in rows if row["panel"] == panel]
        base = alt.Chart(alt.Data(values=own)).encode(
            x=alt.X(
                "epsilon:Q",
                scale=alt.Scale(type="log", domain=[0.45, 4.5]),
                axis=alt.Axis(values=[0.5, 1, 2, 4]),
            ),
            color=colour,
        )
        drawn = base.mark_line(point=True).encode(y=alt.Y(f"{y}:Q", title=title))
        bars = base.mark_rule().encode(y="low:Q", y2="high:Q")
        charts.append((drawn + bars).properties(width=230, height=180, title=panel))
    return alt.concat(*charts, columns=3).resolve_scale(color="shared")


def _with_bars(line: Line, part: str, panel: str) -> Line:
    spread = (line[f"{part}_std"] or 0.0) / np.sqrt(line["runs"] or 1)
    ends = {"low": line[part] - spread, "high": line[part] + spread}
    return {
        "panel": panel,
        "method": line["method"],
        "epsilon": line["epsilon"],
        part: line[part],
    } | ends


def _found_chart(lines: Sequence[Line]) -> Any:
    own = [line for line in _points(lines, kind="values", top=32) if line["source"] in MAIN]
    rows = [
        _with_bars(line, "found", NAMES[line["source"]]) for line in own if line["method"] in BEST
    ]
    return _line_chart(
        rows, "found", "found of the top 32", list(dict.fromkeys(row["panel"] for row in rows))
    )


def _method_chart(lines: Sequence[Line]) -> Any:
    own = [
        line
        for line in _points(lines, kind="values", top=16)
        if line["source"] in MAIN and line["f1"] is not None
    ]
    rows = [
        _with_bars(line, "f1", NAMES[line["source"]]) for line in own if line["method"] != "genie"
    ]
    panels = {row["panel"] for row in rows if row["method"] in OLDER}
    kept = [row for row in rows if row["panel"] in panels]
    return _line_chart(kept, "f1", "F1, top 16", sorted(panels))


def _set_chart(lines: Sequence[Line]) -> Any:
    import altair as alt

    own = [line for line in lines if line["kind"] in ("items", "sets") and line["epsilon"] == 2.0]
    charts = []
    for kind in ("items", "sets"):
        rows = [
            {"source": line["source"], "method": line["method"], "ncr": line["ncr"]}
            for line in own
            if line["kind"] == kind
        ]
        methods = list(dict.fromkeys(row["method"] for row in rows))
        chart = (
            alt.Chart(alt.Data(values=rows))
            .mark_bar()
            .encode(
                x=alt.X("source:N", title=None, axis=alt.Axis(labelAngle=-35)),
                xOffset=alt.XOffset("method:N", sort=methods),
                y=alt.Y("ncr:Q", title="normalised cumulative rank"),
                color=alt.Color(
                    "method:N", sort=methods, scale=alt.Scale(range=list(COLOURS[: len(methods)]))
                ),
            )
        )
        charts.append(chart.properties(width=380, height=200, title=f"top 64 {kind}, epsilon 2"))
    return alt.hconcat(*charts).resolve_scale(color="independent")
