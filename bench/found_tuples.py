"""``python -m bench.found_tuples --data FOLDER``: what a release of unknown values finds.

Recall: of all tuples that at least so many people hold, the share that one release tells.
Spurious tuples: over many releases, how many are told that nobody holds, beside what eta allows.
``--docs docs/central.md`` writes both into the page, with a picture.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import add_data_option, data_folder
from bench.known_releases import adult
from bench.releases import CENSUS, census, released, sets
from sottovoce.central.method import CentralTable, Integers, MemoryTable, TupleCounts
from sottovoce.central.truth import TrueTable, Truth, truth_of
from sottovoce.central.tuple_settings import DEFAULT_ETA
from sottovoce.central.tuples import DpMarginals

SECTION = "found tuples"
PICTURE = "central-recall.svg"
EPSILON = "1"
RUNS = 100
POINTS = 25  # of a line of the picture
SHOWN = (100, 300, 1000, 3000)  # counts of the table

Line = dict[str, Any]
Source = tuple[Callable[[Path], MemoryTable], int]  # and up to how many values together

RECALLED: Mapping[str, Source] = {
    CENSUS: (census, 3),
    "retail": (lambda data: sets(data, "retail"), 2),
    "kosarak_prefix70k": (lambda data: sets(data, "kosarak_prefix70k"), 2),
}
REPEATED: Mapping[str, Source] = {
    "adult_discrete": (lambda data: adult(data).table(), 3),
    "retail": (lambda data: sets(data, "retail"), 2),
}


def true_counts(
    truth: Truth, tables: Iterable[tuple[int, TrueTable]], told: TupleCounts, k: int
) -> tuple[Integers, Integers]:
    """How many people hold each tuple that anybody holds, and each that was told.

    Args:
        truth: of the table that was released.
        tables: its tables of k attributes.
        told: the released tuples of k values.
        k: how many.
    """
    numbers, cells = truth.placed(told, k)
    order = np.argsort(numbers, kind="stable")
    numbers, cells = numbers[order], cells[order]
    held, found = [], []
    for number, true in tables:
        start, end = np.searchsorted(numbers, [number, number + 1])
        held.append(true.counts)
        if len(true.cells):
            own = cells[start:end]
            places = np.minimum(np.searchsorted(true.cells, own), len(true.cells) - 1)
            found.append(np.where(true.cells[places] == own, true.counts[places], 0))
        else:
            found.append(np.zeros(end - start, np.int64))
    return np.concatenate(held), np.concatenate(found)


def recall_lines(name: str, table: CentralTable, up_to: int) -> list[Line]:
    """Of one release, the share found of the tuples with at least each of some counts."""
    release = released(DpMarginals(), table, {}, EPSILON, up_to, 1)
    truth = truth_of(table)
    lines = []
    for k, told in release.tuples.items():
        held, found = true_counts(truth, truth.tables(k), told, k)
        grid = np.geomspace(10, held.max(), POINTS)
        for least in sorted({*SHOWN, *np.rint(grid).astype(int).tolist()}):
            there = int((held >= least).sum())
            if there:
                recall = float((found >= least).sum() / there)
                lines.append({"data": name, "k": k, "least": least, "of": there, "recall": recall})
    return lines


def spurious_lines(name: str, table: CentralTable, up_to: int, runs: int) -> list[Line]:
    """Over many releases, tuples of each k that were told, that nobody holds, and that may be."""
    truth = truth_of(table)
    tables = {k: list(truth.tables(k)) for k in range(1, up_to + 1)}
    sums = {k: np.zeros(3) for k in range(1, up_to + 1)}
    for run in range(runs):
        release = released(DpMarginals(), table, {}, EPSILON, up_to, 1000 + run)
        before = 0
        for k, told in release.tuples.items():
            _, found = true_counts(truth, tables[k], told, k)
            sums[k] += (len(found), (found == 0).sum(), float(DEFAULT_ETA) * before)
            before = len(found)
    lines = []
    for k, each in sums.items():
        told_all, spurious, allowed = each.tolist()
        line = {"data": name, "k": k, "runs": runs, "told": told_all, "spurious": spurious}
        lines.append({**line, "allowed": allowed})
    return lines


def report(recalls: Sequence[Line], false: Sequence[Line]) -> list[str]:
    """Both in Markdown."""
    heads = " | ".join(f"{least:,}" for least in SHOWN)
    text = [
        "Share found of the tuples that at least so many people hold, by one release of "
        f"`dp-marginals` at ({EPSILON}, 1e-6); in brackets how many such tuples there are.",
        "`python -m bench.found_tuples --data FOLDER` prints it.",
        "",
        f"| data | values together | {heads} |",
        "| --- " * (2 + len(SHOWN)) + "|",
    ]
    by_place = {(line["data"], line["k"], line["least"]): line for line in recalls}
    for name, k in dict.fromkeys((line["data"], line["k"]) for line in recalls):
        told = []
        for least in SHOWN:
            line = by_place.get((name, k, least))
            told.append(f"{line['recall']:.3f} ({line['of']:,})" if line else "")
        text.append(f"| `{name}` | {k} | {' | '.join(told)} |")
    text += [
        "",
        f"Tuples that nobody holds, over {false[0]['runs']} releases of each table together "
        f"(eta {float(DEFAULT_ETA):g}, so that at most this share of the tuples found with one "
        "value less may be such, in expectation):",
        "",
        "| data | values together | told | held by nobody | eta allows |",
        "| --- | --- | --- | --- | --- |",
    ]
    for line in false:
        figures = f"{line['told']:,.0f} | {line['spurious']:,.0f} | {line['allowed']:,.0f}"
        text.append(f"| `{line['data']}` | {line['k']} | {figures} |")
    return [*text, ""]


def picture(lines: Sequence[Line]) -> Any:
    """Recall over the count, a panel for each table and a line for each k."""
    import altair as alt

    from bench.marginal_report import COLOURS

    charts = []
    for name in dict.fromkeys(line["data"] for line in lines):
        rows = [{**line, "k": str(line["k"])} for line in lines if line["data"] == name]
        chart = alt.Chart(alt.Data(values=rows)).mark_line(point=True)
        scale = alt.Scale(type="log", domain=[10, max(line["least"] for line in rows)])
        axis = alt.Axis(values=[10**power for power in range(1, 7)], format=",d")
        colour = alt.Scale(domain=["1", "2", "3"], range=list(COLOURS[:3]))
        drawn = chart.encode(
            x=alt.X("least:Q", title="held by at least", scale=scale, axis=axis),
            y=alt.Y("recall:Q", title="share found", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("k:N", title="values together", scale=colour),
        )
        charts.append(drawn.properties(width=240, height=180, title=name))
    return alt.concat(*charts, columns=3).resolve_scale(color="shared")


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.found_tuples", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"releases of a table ({RUNS})")
    parser.add_argument("--docs", metavar="PAGE", help="write the report into this page")
    given = parser.parse_args()
    data = data_folder(parser, given.data)
    recalls: list[Line] = []
    for name, (read, up_to) in RECALLED.items():
        recalls += recall_lines(name, read(data), up_to)
    false: list[Line] = []
    for name, (read, up_to) in REPEATED.items():
        false += spurious_lines(name, read(data), up_to, given.runs)
    text = report(recalls, false)
    print("\n".join(text))
    if given.docs:
        from bench.page import write_section

        caption = "Share found of the tuples that at least so many people hold"
        write_section(Path(given.docs), SECTION, text, {PICTURE: (caption, picture(recalls))})


if __name__ == "__main__":
    main()
