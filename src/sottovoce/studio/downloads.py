"""Tables to take away."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sottovoce.errors import InvalidInput
from sottovoce.service.problems import Problem
from sottovoce.studio import figures
from sottovoce.studio.frame import Studio
from sottovoce.studio.watching import names_of

TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet", "png": "image/png"}
LONGEST = 60.0  # seconds that a download may take to be made


def routes(studio: Studio) -> list[Route]:
    """Any table in any of the formats."""

    def download(request: Request) -> Response:
        survey = studio.desk.survey(request.path_params["id"])
        kind, names = request.path_params["kind"], names_of(request)
        if kind not in TYPES or not names:
            raise InvalidInput(f"table: ask for attributes, and for one of {', '.join(TYPES)}")
        snapshot = studio.desk.snapshot(survey.plan.id)
        if snapshot.estimate is None:
            raise InvalidInput(snapshot.problem or "estimate: there are no reports yet, or it is still being made")
        key = (survey.plan.id, kind, tuple(names), snapshot.made)
        try:
            data = studio.artist.ask(key, figures.download, snapshot.estimate, names, kind).result(LONGEST)
        except TimeoutError:
            raise Problem(
                "busy", "the table takes long to draw; ask again in a minute", {"Retry-After": "60"}
            ) from None
        name = "-".join(re.sub(r"[^A-Za-z0-9]+", "_", part).strip("_") or "table" for part in names)[:80]
        return Response(
            data,
            media_type=TYPES[kind],
            headers={"Content-Disposition": f'attachment; filename="{name}.{kind}"', "Cache-Control": "no-store"},
        )

    return [Route("/watch/{id:str}/table.{kind:str}", studio.access.page(download), methods=["GET"])]
