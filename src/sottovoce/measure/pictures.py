"""Pictures of comparisons: measured errors with their spread over runs, beside theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.labels import written

if TYPE_CHECKING:
    from sottovoce.central.comparison import ReleasesComparison
    from sottovoce.measure.marginals import MarginalsComparison
    from sottovoce.measure.oracles import Comparison
    from sottovoce.measure.popular import PopularComparison
    from sottovoce.measure.queries import QueriesComparison
    from sottovoce.measure.shuffled import ShuffledComparison

MEASURED_COLOUR, SPREAD_COLOUR, THEORY_COLOUR = "#7aa6c2", "#1f3b4d", "#d1495b"
WIDEST_PANEL = 900  # pixels
MOST_IN_A_ROW = 2  # panels
MOST_COLOURS = 10  # that the usual colours tell apart
WIDEST_BARS = 20.0  # the largest of a panel's figures over the least, so that bars show both


@dataclass(frozen=True)
class Point:
    """What was measured of one method at one epsilon."""

    method: str
    epsilon: float
    value: float
    spread: float | None = None  # the standard deviation over runs
    theory: float | None = None


@dataclass(frozen=True)
class Panel:
    """One figure of all methods: an error, or something good that is at most 1."""

    axis: str
    points: Sequence[Point]
    title: str | None = None

    @property
    def are_bars(self) -> bool:
        """Whether figures of one epsilon can be told from 0 upwards."""
        values = [point.value for point in self.points]
        return not self.is_positive or max(values) < WIDEST_BARS * min(values)

    @property
    def is_positive(self) -> bool:
        """Whether a logarithmic scale can hold it."""
        figures = [figure for each in self.points for figure in (each.value, each.theory)]
        return all(figure is None or figure > 0 for figure in figures)


def oracle_errors(rows: Sequence[Comparison]) -> Any:
    """The errors of oracles: bars for one epsilon, lines over several; both scales are
    logarithmic there.

    >>> from sottovoce.measure import compare_oracles
    >>> rows = list(compare_oracles(["grr"], size=4, epsilons=[1], people=1000, runs=2, seed=1))
    >>> oracle_errors(rows).to_dict()["title"]["text"]
    'Mean squared error of a frequency'
    """
    points = [
        Point(row.oracle, row.epsilon, row.measured, row.measured_std, row.theory) for row in rows
    ]
    about = ""
    if rows:
        first = rows[0]
        about = f"size {first.size:,}, {first.people:,} people (Zipf), {_times(first.runs)}"
    panel = Panel("squared error", points)
    return drawn([panel], "Mean squared error of a frequency", about)


def marginal_errors(rows: Sequence[MarginalsComparison]) -> Any:
    """The errors of methods for marginals: squared, and total variation distances."""
    known = [row for row in rows if row.sse is not None]
    squared, distances = [], []
    for row in known:
        squared.append(_point(row.method, row.epsilon, row.sse, row.sse_std))
        distances.append(_point(row.method, row.epsilon, row.tvd, row.tvd_std))
    about = ""
    if known:
        first = known[0]
        about = f"{first.people:,} people, {_times(first.runs)} of {first.queries} tables"
    panels = [Panel("squared error", squared), Panel("variation distance", distances)]
    return drawn(panels, f"Tables of {_value(rows, 'k')} attributes", about, _left_out(rows, known))


def query_errors(rows: Sequence[QueriesComparison]) -> Any:
    """The mean squared errors of methods for queries, a panel for each volume."""
    known = [row for row in rows if row.mse is not None]
    panels = []
    for volume in dict.fromkeys(row.volume for row in known):
        own = [row for row in known if row.volume == volume]
        points = [_point(row.method, row.epsilon, row.mse, row.mse_std) for row in own]
        panels.append(Panel("squared error", points, f"volume {volume}"))
    about = ""
    if known:
        first = known[0]
        about = f"{first.people:,} people, {_times(first.runs)} of {first.queries} queries"
    return drawn(panels, "Shares that queries select", about, _left_out(rows, known))


def popular_scores(rows: Sequence[PopularComparison], what: str = "values") -> Any:
    """How much of the top methods find, by rank, and the squared errors of its counts."""
    known = [row for row in rows if row.ncr is not None]
    ranks = [_point(row.method, row.epsilon, row.ncr, row.ncr_std) for row in known]
    errors = [
        _point(row.method, row.epsilon, row.variance, row.variance_std)
        for row in known
        if row.variance is not None
    ]
    panels = [Panel("cumulative rank (1: all found)", ranks)]
    if errors:
        panels.append(Panel("squared error of a count", errors))
    about = f"{known[0].people:,} people, {_times(known[0].runs)}" if known else ""
    title = f"The {_value(rows, 'top')} most frequent {what}"
    return drawn(panels, title, about, _left_out(rows, known))


def release_errors(rows: Sequence[ReleasesComparison]) -> Any:
    """The squared errors of released tables, a panel for each number of values together; of
    counts where tables cannot be told.
    """
    known = [row for row in rows if row.sse is not None or row.count_mse is not None]
    panels = []
    for k in dict.fromkeys(row.k for row in known):
        own = [row for row in known if row.k == k]
        points = [
            _point(row.method, row.epsilon, row.sse, row.sse_std)
            for row in own
            if row.sse is not None
        ]
        axis = "squared error of a table"
        if not points:
            axis = "squared error of a count"
            points = [
                _point(row.method, row.epsilon, row.count_mse, row.count_mse_std)
                for row in own
                if row.count_mse is not None
            ]
        panels.append(Panel(axis, points, f"{k} together"))
    about = _times(known[0].runs) if known else ""
    return drawn(panels, "Releases of a table", about, _left_out(rows, known))


def shuffled_errors(rows: Sequence[ShuffledComparison], attribute: str) -> Any:
    """The squared errors of shuffled plans: of all values, and of the largest."""
    known = [row for row in rows if row.mse is not None]
    every = [_point(row.method, row.epsilon, row.mse, row.mse_std) for row in known]
    largest = [_point(row.method, row.epsilon, row.head_mse, row.head_mse_std) for row in known]
    about = ""
    if known:
        about = f"{known[0].people:,} people, {_times(known[0].runs)}"
    panels = [Panel("squared error", every), Panel("squared error of the ten largest", largest)]
    title = f"Frequencies of {written(attribute)}, shuffled"
    return drawn(panels, title, about, _left_out(rows, known))


def _point(method: str, epsilon: float, value: float | None, spread: float | None) -> Point:
    assert value is not None  # of rows with figures
    return Point(method, epsilon, value, spread)


def _value(rows: Sequence[Any], name: str) -> Any:
    return getattr(rows[0], name) if rows else ""


def _times(runs: int | None) -> str:
    return f"{runs} run{'' if runs == 1 else 's'}"


def _left_out(rows: Sequence[Any], known: Sequence[Any]) -> str:
    """The methods that have no figures."""
    missing = {id(row) for row in rows} - {id(row) for row in known}
    names = dict.fromkeys(
        f"{row.method} at epsilon {row.epsilon:g}" for row in rows if id(row) in missing
    )
    return f"without figures: {written(', '.join(names))}" if names else ""


def drawn(panels: Sequence[Panel], title: str, about: str, left_out: str = "") -> Any:
    """Panels beside one another, with methods in the same colours.

    >>> panel = Panel("squared error", [Point("grr", 1.0, 0.2, 0.1), Point("oue", 1.0, 0.1, 0.1)])
    >>> drawn([panel], "Errors", "2 runs").to_dict()["title"]["subtitle"]
    ['2 runs', 'epsilon 1; blue: measured, lines: ± the standard deviation over runs']
    """
    alt = imported("altair")
    panels = [panel for panel in panels if panel.points]
    if not panels:
        raise InvalidInput("plot: there is nothing to draw, nothing was measured")
    points = [point for panel in panels for point in panel.points]
    epsilons = {point.epsilon for point in points}
    is_over_epsilons = len(epsilons) > 1
    chart = _lines if is_over_epsilons else _bars
    charts = [chart(panel) for panel in panels]
    note = "points: measured" if is_over_epsilons else f"epsilon {min(epsilons):g}; blue: measured"
    if any(point.spread is not None for point in points):
        note += ", lines: ± the standard deviation over runs"
    if any(point.theory is not None for point in points):
        note += ", curves: theory" if is_over_epsilons else ", red: theory"
    heading = {"text": title, "subtitle": [line for line in (about, note, left_out) if line]}
    if len(charts) == 1:
        return charts[0].properties(title=heading)
    joined = alt.concat(*charts, columns=MOST_IN_A_ROW)
    return joined.properties(title=heading).resolve_scale(y="independent")


def _rows_of(panel: Panel) -> list[dict[str, Any]]:
    """The points for a chart. Where a scale has no 0, a line that would reach it ends at half of
    the least value.
    """
    least = min(point.value for point in panel.points) / 2
    rows = []
    for point in panel.points:
        row = {"method": written(point.method), "epsilon": point.epsilon, "value": point.value}
        if point.spread is not None:
            floor = least if panel.is_positive else 0.0
            row["low"] = max(floor, point.value - point.spread)
            row["high"] = point.value + point.spread
        if point.theory is not None:
            row["theory"] = point.theory
        rows.append(row)
    return rows


def _bars(panel: Panel) -> Any:
    """A bar for each method; points on a logarithmic scale where bars would hide the least."""
    alt = imported("altair")
    rows = _rows_of(panel)
    across = alt.X("method:N", sort=None, title="method")
    base = alt.Chart(alt.Data(values=rows)).encode(x=across)
    if panel.are_bars:
        up = alt.Y("value:Q", title=panel.axis)
        chart = base.mark_bar(color=MEASURED_COLOUR).encode(y=up)
    else:
        up = alt.Y("value:Q", title=panel.axis, scale=alt.Scale(type="log", padding=20))
        chart = base.mark_point(filled=True, size=70, color=MEASURED_COLOUR, opacity=1).encode(y=up)
    if any("low" in row for row in rows):
        chart += base.mark_rule(color=SPREAD_COLOUR, strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    if any("theory" in row for row in rows):
        chart += base.mark_tick(color=THEORY_COLOUR, thickness=2, size=14).encode(y="theory:Q")
    width = max(240, min(WIDEST_PANEL, 30 * len(rows)))
    return _sized(chart, panel, width)


def _lines(panel: Panel) -> Any:
    """Points over epsilon; curves are theory, or lead from one point to the next."""
    alt = imported("altair")
    rows = _rows_of(panel)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    kind = "log" if panel.is_positive else "linear"
    along = alt.Scale(type="log", nice=False, padding=20)  # no further than what is drawn
    up = alt.Scale(type=kind, nice=False, padding=20)
    colours = {"scheme": "tableau10" if len(methods) <= MOST_COLOURS else "category20"}
    legend = alt.Legend(symbolLimit=0, labelLimit=0)
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("epsilon:Q", scale=along, title="epsilon"),
        color=alt.Color(
            "method:N", sort=methods, scale=alt.Scale(**colours), legend=legend, title="method"
        ),
    )
    chart = base.mark_point(filled=True, size=50).encode(
        y=alt.Y("value:Q", scale=up, title=panel.axis)
    )
    if any("low" in row for row in rows):
        chart += base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", scale=up), y2="high:Q")
    curve = "theory" if any("theory" in row for row in rows) else "value"
    chart += base.mark_line().encode(y=alt.Y(f"{curve}:Q", scale=up))
    return _sized(chart, panel, 420)


def _sized(chart: Any, panel: Panel, width: int) -> Any:
    title = {} if panel.title is None else {"title": panel.title}
    return chart.properties(width=width, height=280, **title)
