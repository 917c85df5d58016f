"""Pictures of comparisons: measured errors beside theory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.measure.oracles import Comparison

THEORY = "#d1495b"


def oracle_errors(rows: Sequence[Comparison]) -> Any:
    """The errors of oracles: bars for one epsilon, lines over several; both scales are
    logarithmic there.

    >>> from sottovoce.measure import compare_oracles
    >>> rows = list(compare_oracles(["grr"], size=4, epsilons=[1], people=1000, runs=2, seed=1))
    >>> oracle_errors(rows).to_dict()["title"]["text"]
    'Mean squared error of a frequency'
    """
    if not rows:
        raise InvalidInput("plot: there is nothing to draw, no oracle was compared")
    alt = imported("altair")
    data = [
        {
            "oracle": row.oracle,
            "epsilon": row.epsilon,
            "measured": row.measured,
            "theory": row.theory,
        }
        for row in rows
    ]
    base = alt.Chart(alt.Data(values=data))
    first = rows[0]
    if len({row.epsilon for row in rows}) == 1:
        across = alt.X("oracle:N", sort=None, title="oracle")
        measured = base.mark_bar(color="#7aa6c2").encode(
            x=across, y=alt.Y("measured:Q", title="squared error")
        )
        theory = base.mark_tick(color=THEORY, thickness=2, size=14).encode(x=across, y="theory:Q")
        note = f"epsilon {first.epsilon:g}; bars: measured, red: theory"
        width = max(240, min(900, 30 * len(rows)))
    else:
        up = alt.Scale(type="log", nice=False, padding=20)  # no further than what is drawn
        across = alt.X("epsilon:Q", scale=up, title="epsilon")
        colour = alt.Color("oracle:N", sort=None, legend=alt.Legend(symbolLimit=0))
        measured = base.mark_point(filled=True, size=50).encode(
            x=across, y=alt.Y("measured:Q", scale=up, title="squared error"), color=colour
        )
        theory = base.mark_line().encode(x=across, y=alt.Y("theory:Q", scale=up), color=colour)
        note = "points: measured, lines: theory"
        width = 420
    runs = f"{first.runs} run{'s' if first.runs > 1 else ''}"
    about = f"size {first.size:,}, {first.people:,} people (Zipf), {runs}"
    return (measured + theory).properties(
        width=width,
        height=280,
        title={"text": "Mean squared error of a frequency", "subtitle": [about, note]},
    )
