"""The command that writes the report of a survey."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.commands import Json, PlanFile, PlanId, Quiet, Rake, app, print_json
from sottovoce.ground.errors import InvalidInput

HTML_ENDINGS = (".html", ".htm")


@app.command()
def report(
    plan_file: PlanFile,
    reports: Annotated[
        str,
        typer.Argument(
            metavar="reports.parquet",
            help="What the devices sent: Parquet, a folder, a store, or a total (.sva).",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the page goes (.html).")
    ],
    pdf: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Print it to this PDF too, by a Chromium that is here."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="The heading; by default the survey's title.")
    ] = None,
    rake: Rake = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    as_json: Json = False,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Write the report of a survey: one page to read, print and keep.

    It says what was promised, how many answered, what they said with intervals, and what goes with
    what, in words and pictures. The page loads nothing, by day and by night, on a phone and on
    paper.

    Example:  sottovoce report plan.json reports.parquet -o report.html --title "Habits in our town"

    Example:  sottovoce report plan.json sqlite:///survey.db -o report.html --pdf report.pdf
    """
    from sottovoce.cli.answers import listened
    from sottovoce.console.reading import stored_texts
    from sottovoce.console.surveys import read_plan, read_texts
    from sottovoce.pages.pdf import find_browser, write_pdf
    from sottovoce.pages.survey_page import report as survey_report

    if output.suffix.lower() not in HTML_ENDINGS:
        raise InvalidInput(f"output ({output}) must end in .html")
    if pdf is not None:
        find_browser()  # before anything takes long
    made = read_plan(plan_file, plan_id)
    texts = read_texts(plan_file, made) or stored_texts(made, reports)
    total = listened(made, reports, rake, quiet)
    page = survey_report(made, total, title=title, texts=texts, level=level)
    page.write(output)
    if pdf is not None:
        write_pdf(page.html, pdf)
    if as_json:
        written = {"output": str(output), "pdf": None if pdf is None else str(pdf)}
        print_json({"plan": made.id, "title": page.title, **written})
        return
    typer.echo(f"Report written to {output}")
    if pdf is not None:
        typer.echo(f"Printed: {pdf}")
