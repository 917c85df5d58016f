"""``python -m bench.marginal_repairs results.jsonl``: unbiased methods as they come, and repaired.

A method whose tables are unbiased has negative cells, and another that has repaired its own has
none. So the lines of ``bench.marginals`` hold the error of unbiased tables twice, and this says
both. With ``--docs docs/marginals.md`` it writes them there.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.marginals import REPAIR, read_lines
from bench.page import write_section

SECTION = "bench.marginal_repairs"


def both_columns(lines: Sequence[dict[str, Any]], base: str) -> list[str]:
    """A table in markdown: mean squared errors over runs, before and after, and over the base's."""
    found: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for line in lines:
        if line.get("sse") is not None:
            place = line["source"], line["n"], line["k"], line["epsilon"]
            found[place][line["method"]].append(line)
    methods = sorted({line["method"] for line in lines if line.get("sse_repaired") is not None})
    if not methods:
        return ["No line has tables that were repaired."]
    heads = [f"`{name}` | after {REPAIR}" for name in methods]
    out = [
        f"| source, n, k, epsilon | `{base}` | {' | '.join(heads)} |",
        f"| --- |{' --- |' * (1 + 2 * len(methods))}",
    ]
    ratios: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for place, by_method in sorted(found.items()):
        if base not in by_method:
            continue
        whole = _mean(by_method[base], "sse")
        cells = [
            f"{_over(by_method[name], 'sse', whole)} | "
            f"{_over(by_method[name], 'sse_repaired', whole)}"
            for name in methods
        ]
        source, n, k, epsilon = place
        where = f"{source}, {n:,}, {k}, {epsilon:g}"
        out.append(f"| {where} | {_short(whole)} | {' | '.join(cells)} |")
        for name in methods:
            own = by_method[name]
            if own and all(line.get("sse_repaired") is not None for line in own):
                ratios[name].append((_mean(own, "sse") / whole, _mean(own, "sse_repaired") / whole))
    means = []
    for name, pairs in ratios.items():
        before, after = np.exp(np.log(pairs).mean(axis=0))
        means.append(f"`{name}` {_short(before)} and {_short(after)}")
    said = f"Times the error of `{base}`, geometric means, as they come and after {REPAIR}"
    return [*out, "", f"{said}: {'; '.join(means)}."]


def _mean(lines: Sequence[dict[str, Any]], figure: str) -> float:
    return float(np.mean([line[figure] for line in lines]))


def _over(lines: Sequence[dict[str, Any]], figure: str, base: float) -> str:
    """The mean of a figure, and how many times the base's it is."""
    if not lines or any(line.get(figure) is None for line in lines):
        return ""
    mean = _mean(lines, figure)
    return f"{_short(mean)} ({_short(mean / base)})"


def _short(figure: float) -> str:
    """Two digits, without an exponent.

    >>> _short(2243.0), _short(0.00267)
    ('2,200', '0.0027')
    """
    return f"{float(f'{figure:.2g}'):,g}"


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(prog="python -m bench.marginal_repairs", description=__doc__)
    parser.add_argument("results", metavar="FILE", help="what bench.marginals --out wrote")
    parser.add_argument("--base", default="calm", help="the method that others are judged by")
    parser.add_argument("--docs", metavar="FILE", help="write the table into this page")
    asked = parser.parse_args(arguments)
    text = both_columns(read_lines(Path(asked.results)), asked.base)
    print("\n".join(text))
    if asked.docs is not None:
        write_section(Path(asked.docs), SECTION, [*text, ""], {})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
