"""Work on a kept estimate, as a background process of the studio does it: drawing, downloads."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sottovoce.analysis.raking import Margins, rake
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.labels import visible
from sottovoce.pages.charts import inline
from sottovoce.pages.comparisons import (
    PeopleCompared,
    groups_compared,
    waves_compared,
    weights_compared,
)
from sottovoce.pages.figures import INTERVAL_LEVEL, MOST_RELATED
from sottovoce.pages.survey_page import report
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.protocol.texts import Texts
from sottovoce.results.estimate import Estimate, Table
from sottovoce.results.group_answers import Group
from sottovoce.results.spreadsheets import FIGURES, cells_of, table_csv
from sottovoce.results.workbook import write_workbook
from sottovoce.service.serialized import kept_in
from sottovoce.store import open_store


def warm() -> None:
    """Load what draws, which takes a second or two the first time."""
    inline(
        {
            "data": {"values": [{"x": 1}]},
            "mark": "bar",
            "encoding": {"x": {"field": "x", "type": "quantitative"}},
        }
    )


def of_file(file: Path, work: Callable[..., Any], *args: Any) -> Any:
    """What one of the functions below makes of the estimate in a file."""
    return work(kept_in(file).estimate, *args)


def compared_groups(
    estimate: Estimate, attribute: str, groups: Sequence[Group]
) -> PeopleCompared | str:
    """Groups beside each other, or why they cannot be."""
    return _or_why(lambda: groups_compared(estimate, attribute, groups, INTERVAL_LEVEL))


def compared_waves(estimate: Estimate, earlier: Path, names: Sequence[str]) -> PeopleCompared | str:
    """What changed since the estimate in another file."""
    before = kept_in(earlier).estimate
    return _or_why(lambda: waves_compared(estimate, before, names, INTERVAL_LEVEL))


def compared_weights(
    estimate: Estimate, address: str, plan_text: str, margins: Margins
) -> PeopleCompared | str:
    """Answers with weights and without; they are read from the store, each report by itself."""
    plan = Plan.from_json(plan_text)
    with open_store(address, create=False) as store:
        parts = [reports for _, _, reports in store.read(plan)]
    reports = Reports.concat(parts or [Reports.empty(plan)])
    return _or_why(lambda: weights_compared(estimate, rake(plan, reports, margins), INTERVAL_LEVEL))


def _or_why(answer: Callable[[], PeopleCompared]) -> PeopleCompared | str:
    try:
        return answer()
    except InvalidInput as wrong:
        return visible(str(wrong))


def write_report(estimate: Estimate, plan_text: str, texts: Texts, out: Path) -> None:
    """The report of a survey, on one page."""
    plan = Plan.from_json(plan_text)
    out.write_text(report(plan, estimate, texts=texts).html, encoding="utf-8")


def write_tables(estimate: Estimate, plan_text: str, out: Path) -> None:
    """All tables as an Excel file: each attribute, and every pair that was asked for together."""
    plan = Plan.from_json(plan_text)
    tables = dict(estimate.tables)
    if plan.question.is_joint and len(estimate.tables) <= MOST_RELATED:
        tables |= estimate.marginals(2) if len(estimate.tables) > 1 else {}
    about = [("plan", plan.id), ("guarantee", str(plan.guarantee))]
    draft = out.with_name(f"{out.name}.xlsx")
    write_workbook(list(tables.values()), draft, INTERVAL_LEVEL, about, estimate.marks)
    draft.replace(out)


def write_download(estimate: Estimate, names: Sequence[str], kind: str, out: Path) -> None:
    """The same into a file."""
    out.write_bytes(download(estimate, names, kind))


def download(estimate: Estimate, names: Sequence[str], kind: str) -> bytes:
    """A table to take away, whole: as ``csv``, ``parquet`` or ``png``."""
    table = estimate.marginal(*names)
    if kind == "csv":
        return table_csv(table, INTERVAL_LEVEL).encode()
    if kind == "parquet":
        return _parquet(table)
    vl_convert = imported("vl_convert")

    data: bytes = vl_convert.vegalite_to_png(table.plot(level=INTERVAL_LEVEL).to_json(), scale=2)
    return data


def _parquet(table: Table) -> bytes:
    """A column per attribute, then the figures."""
    pa = imported("pyarrow")
    pq = imported("pyarrow.parquet")

    figures = (table.values, table.std_error, *table.interval(INTERVAL_LEVEL))
    columns = {
        name: pa.array(values, pa.float64()) for name, values in zip(FIGURES, figures, strict=True)
    }
    cells = [cells_of(table, label) for label in table.labels]
    for place, name in reversed(list(enumerate(table.attributes))):
        labels: list[Any] = [cell[place] for cell in cells]
        if len({type(label) for label in labels}) > 1:
            labels = list(map(str, labels))
        columns = {f"{name} (value)" if name in FIGURES else name: pa.array(labels), **columns}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="zstd")
    return out.getvalue()
