"""The command that folds reports into a file of their total."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.commands import Json, PlanFile, PlanId, Quiet, app, print_json
from sottovoce.cli.engines import EngineName, Master
from sottovoce.console.reading import LOCAL_ENGINE
from sottovoce.ground.errors import InvalidInput


@app.command()
def fold(
    plan_file: PlanFile,
    reports: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORTS...",
            help="Parquet, folders of it, URLs (s3://, gs://, abfs://), stores, or totals.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the total goes.")
    ],
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    as_json: Json = False,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Add up reports into one small file, which estimates are made from.

    A total holds integers, the same ones whoever adds them up and in whatever order; of plans that
    keep reports (pem, olh-seeded, SQL) it holds these. Totals are sources, too: of days, or of
    collectors.

    Example:  sottovoce fold plan.json reports/ -o total.sva

    Example:  sottovoce fold plan.json s3://bucket/reports -o total.sva --engine spark --master
    spark://host:7077

    Example:  sottovoce fold plan.json monday.sva tuesday.sva -o both.sva
    """
    from sottovoce.aggregation.totals import write_total
    from sottovoce.console.reading import check_sources, heard_all
    from sottovoce.console.surveys import read_plan
    from sottovoce.engine import open_engine

    if not output.absolute().parent.is_dir():  # before the work is done
        raise InvalidInput(f"output ({output}) must lie in a folder that exists")
    if output.is_dir():
        raise InvalidInput(f"output ({output}) must be a file, and is a folder")
    made = read_plan(plan_file, plan_id)
    check_sources(reports, engine)  # before a cluster is asked
    with open_engine(engine, master) as workers:
        total = heard_all(made, reports, quiet, workers)
    size = write_total(output, total)
    if as_json:
        figures = {"people": total.people, "digest": total.digest, "bytes": size}
        print_json({"plan": made.id, "engine": engine, **figures, "output": str(output)})
        return
    typer.echo(f"{total.people:,} reports folded into {output}")
