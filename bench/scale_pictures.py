"""``python -m bench.scale_pictures FIGURES.json FOLDER``: what folding costs, drawn from figures.

They are those that ``python -m bench folding minutes --json FIGURES.json`` printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sottovoce.results.plots import save

READ = ": read and fold"
MINUTES = ": each id once, folded by the minute"
CROWDS = [10.0**power for power in range(7, 13)]
NAMES = {"latent": "latent", "joint": "joint", "olh": "olh, 2^20", "HeavyHitters": "windows"}


def figures(rows: Sequence[Mapping[str, Any]], ending: str) -> dict[str, float]:
    """Nanoseconds of CPU a report, by plan."""
    found = {}
    for row in rows:
        if row["what"].endswith(ending):
            names = [short for word, short in NAMES.items() if word in row["what"]]
            found[names[0]] = float(row["best"])
    return found


def costs(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A bar for each plan, and what it was done with."""
    import altair as alt

    kinds = {"read and folded": READ, "each id once, by the minute": MINUTES}
    points = [
        {"plan": plan, "done": done, "ns": figure}
        for done, ending in kinds.items()
        for plan, figure in figures(rows, ending).items()
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_bar()
        .encode(
            x=alt.X("ns:Q", title="nanoseconds of CPU a report"),
            y=alt.Y("plan:N", title=None, sort=list(NAMES.values())),
            yOffset=alt.YOffset("done:N", sort=list(kinds)),
            color=alt.Color("done:N", title=None, sort=list(kinds)),
        )
        .properties(width=420, height=220)
    )


def model(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The cost model: core-hours over reports, in proportion; computed, not run."""
    import altair as alt

    points = [
        {"plan": plan, "reports": crowd, "hours": crowd * figure / 3600e9}
        for plan, figure in figures(rows, READ).items()
        for crowd in CROWDS
    ]
    log = alt.Scale(type="log")
    power = alt.Axis(format=".0e")
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X("reports:Q", title="reports", scale=log, axis=power),
            y=alt.Y("hours:Q", title="core-hours to read and fold", scale=log, axis=power),
            color=alt.Color("plan:N", title=None, sort=list(NAMES.values())),
        )
        .properties(width=420, height=260)
    )


def main(source: str, folder: str) -> None:
    """Draw both."""
    rows = json.loads(Path(source).read_text(encoding="utf-8"))["rows"]
    save(costs(rows), str(Path(folder) / "scale-costs.svg"))
    save(model(rows), str(Path(folder) / "scale-model.svg"))


if __name__ == "__main__":
    main(*sys.argv[1:])
