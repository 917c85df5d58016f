"""Tables to take away."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sottovoce.errors import InvalidInput
from sottovoce.service.desk import checked, within
from sottovoce.service.streams import file_stream
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
        snapshot = checked(studio.desk.snapshot(survey), survey.people)
        out = studio.desk.new_file()
        drawing = studio.artist.submit(figures.of_file, snapshot.file, figures.write_download, names, kind, out)
        try:
            within(drawing, LONGEST)
        except Exception:
            drawing.add_done_callback(lambda _: out.unlink(missing_ok=True))
            raise
        name = "-".join(re.sub(r"[^A-Za-z0-9]+", "_", part).strip("_") or "table" for part in names)[:80]
        headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"', "Cache-Control": "no-store"}
        return file_stream(out, TYPES[kind], headers)

    return [Route("/watch/{id:str}/table.{kind:str}", studio.access.page(download), methods=["GET"])]
