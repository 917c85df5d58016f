"""Pictures of tables, drawn without a network. Altair is loaded when the first one is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.files import replacing

if TYPE_CHECKING:
    from sottovoce.estimate import Table

FORMATS = (".svg", ".png", ".html", ".json")


def bars(
    table: Table,
    path: str | None = None,
    *,
    truth: NDArray[np.float64] | None = None,
    level: float = 0.95,
    population: bool = False,
    most: int = 64,
) -> Any:
    """Bars with intervals, the ``most`` largest if there are more; the truth as ticks where it is known."""
    import altair as alt

    order = list(range(len(table.values)))
    if len(order) > most:
        order = sorted(np.argsort(-table.values, kind="stable")[:most].tolist())
    rows = table.rows(level, population=population)
    data = [{**rows[place], "value": str(rows[place]["value"]), "place": place} for place in order]
    if truth is not None:
        for row in data:
            row["truth"] = float(truth[row["place"]])
    name = ", ".join(table.attributes)
    across = alt.X("value:N", sort=alt.SortField("place"), title=name)
    base = alt.Chart(alt.Data(values=data)).encode(x=across)
    bar = base.mark_bar(color="#7aa6c2").encode(y=alt.Y("frequency:Q", title="frequency"))
    whisker = base.mark_rule(color="#1f3b4d", strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    chart = bar + whisker
    if truth is not None:
        chart = chart + base.mark_tick(color="#d1495b", thickness=2, size=14).encode(y="truth:Q")
    note = f"bars: estimate, lines: {level:.0%} interval" + (", red: truth" if truth is not None else "")
    size = max(240, min(900, 22 * len(data)))
    chart = chart.properties(
        width=size, height=240, title={"text": f"{name} ({table.people:,} people)", "subtitle": note}
    )
    if path is not None:
        save(chart, path)
    return chart


def svg(chart: Any) -> str:
    """A chart as SVG text."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(chart.to_json())
    return text


def save(chart: Any, path: str) -> None:
    """Write a chart as SVG, PNG, self-contained HTML or Vega-Lite JSON, by the file's ending."""
    import vl_convert

    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        raise InvalidInput(f"plot ({path}) must end in one of {', '.join(FORMATS)}")
    with replacing(path) as draft:
        if kind == ".png":
            draft.write_bytes(vl_convert.vegalite_to_png(chart.to_json(), scale=2))
        elif kind == ".svg":
            draft.write_text(svg(chart))
        elif kind == ".html":
            draft.write_text(vl_convert.vegalite_to_html(chart.to_json(), bundle=True))
        else:
            draft.write_text(chart.to_json())
