"""What analysts ask over HTTP, with a bearer token: surveys, estimates, tables, exports."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Header, Query
from fastapi import Path as InPath
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.background import BackgroundTask

from sottovoce.errors import InvalidInput
from sottovoce.estimate import Table
from sottovoce.findings import Findings
from sottovoce.service.desk import Desk
from sottovoce.service.problems import Problem
from sottovoce.service.tokens import holder
from sottovoce.store import export_file
from sottovoce.surveys import LONGEST_TITLE
from sottovoce.surveys import Survey as Description

SurveyId = Annotated[str, InPath(description="A plan's id, or enough of its first digits.", max_length=64)]
Level = Annotated[float, Query(gt=0, lt=1, description="Of the intervals.")]


class NewSurvey(BaseModel):
    """A survey to be made: as a survey file, in JSON."""

    model_config = ConfigDict(strict=True, extra="forbid", populate_by_name=True)

    title: str = Field("", max_length=LONGEST_TITLE)
    epsilon: str | float | int = Field(examples=["1.0"])
    people: int = Field(examples=[10_000])
    attributes: dict[str, dict[str, Any]] = Field(alias="schema", examples=[{"smoker": {"kind": "boolean"}}])
    question: dict[str, Any] = Field(examples=[{"kind": "frequencies", "attributes": ["smoker"]}])
    coin: Literal["device", "assigned"] = "device"


def analyst_routes(desk: Desk) -> APIRouter:
    """The routes that need a token."""

    def check(authorization: Annotated[str | None, Header()] = None) -> str:
        name = holder(desk.store, authorization)
        if name is None:
            raise Problem("unauthorized", "give a token that `sottovoce token` made", {"WWW-Authenticate": "Bearer"})
        return name

    router = APIRouter(prefix="/v1/surveys", dependencies=[Depends(check)], tags=["analyst"])

    @router.get("")
    def surveys() -> list[dict[str, Any]]:
        """All surveys, the newest first."""
        return [survey.to_json() for survey in desk.surveys()]

    @router.post("", status_code=201)
    def create(asked: Annotated[NewSurvey, Body()]) -> dict[str, Any]:
        """Make a survey of a schema and a question."""
        made = Description.parse(asked.model_dump(by_alias=True))
        plan = made.plan()
        if desk.has(plan.id):
            raise Problem("survey-exists", "a survey of exactly this plan is there; change a word, or use that one")
        return desk.create(plan, made.title).to_json()

    @router.get("/{id}")
    def survey(id: SurveyId) -> dict[str, Any]:
        """One survey."""
        return desk.survey(id).to_json()

    @router.post("/{id}/close")
    def close(id: SurveyId) -> dict[str, Any]:
        """Take no more reports."""
        return desk.close(id).to_json()

    @router.get("/{id}/estimates")
    def estimates(id: SurveyId, level: Level = 0.95) -> dict[str, Any]:
        """Every table the survey asked for, or every attribute by itself."""
        snapshot = desk.fresh(id)
        if snapshot.estimate is None:
            return {"people": snapshot.people, "made": None, "tables": [], "problem": snapshot.problem}
        told = {"people": snapshot.people, "made": snapshot.made, "problem": None}
        if isinstance(snapshot.estimate, Findings):  # popular values, with their marks
            return told | snapshot.estimate.to_json(level)
        return told | {"tables": [table.to_json(level) for table in snapshot.estimate.tables.values()]}

    @router.get("/{id}/marginals", response_model=None)
    def marginals(
        id: SurveyId,
        attributes: Annotated[list[str], Query(description="Names, with commas between or one by one.", max_length=64)],
        level: Level = 0.95,
        format: Literal["json", "csv"] = "json",
    ) -> dict[str, Any] | Response:
        """The table of these attributes together."""
        names = attributes if len(attributes) > 1 else [name.strip() for name in attributes[0].split(",")]
        table = desk.marginal(id, names)
        if format == "csv":
            return Response(table_csv(table, level), media_type="text/csv")
        return table.to_json(level)

    @router.get("/{id}/export", response_class=FileResponse)
    def export(id: SurveyId) -> FileResponse:
        """All reports so far, as one Parquet file."""
        found = desk.survey(id)
        folder = tempfile.TemporaryDirectory(prefix="sottovoce-")
        path = Path(folder.name) / f"{found.plan.id[:16]}.parquet"
        try:
            export_file(desk.store, found.plan, path)
        except BaseException:
            folder.cleanup()
            raise
        return FileResponse(
            path,
            media_type="application/vnd.apache.parquet",
            filename=path.name,
            background=BackgroundTask(folder.cleanup),
        )

    return router


def cells_of(table: Table, label: Any) -> tuple[Any, ...]:
    """A label as one cell for each attribute; a set of items, of one attribute, with ; between them."""
    if len(table.attributes) == 1 and isinstance(label, tuple):
        return (";".join(map(str, label)),)
    return label if isinstance(label, tuple) else (label,)


def table_csv(table: Table, level: float) -> str:
    """A table for a spreadsheet: a column per attribute, then the figures."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*table.attributes, "frequency", "std_error", "low", "high"])
    for row in table.rows(level):
        cells = cells_of(table, row["value"])
        if len(cells) != len(table.attributes):
            raise InvalidInput("table: its labels do not fit its attributes")
        writer.writerow([*cells, row["frequency"], row["std_error"], row["low"], row["high"]])
    return out.getvalue()
