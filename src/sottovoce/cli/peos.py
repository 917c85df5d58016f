"""The command of the oblivious shuffle: a file of reports through parties that cannot follow it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.commands import Json, PlanFile, PlanId, Quiet, app, print_json
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import require_extra

if TYPE_CHECKING:
    from sottovoce.results.estimate import Table
    from sottovoce.shuffle.peos import PeosResult

LONGEST_SHUFFLE = 7 * 24 * 3600.0  # seconds


@app.command()
def peos(
    plan_file: PlanFile,
    reports: Annotated[
        Path, typer.Argument(metavar="reports.parquet", help="What `sottovoce whisper` wrote.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the shuffled reports go (Parquet).")
    ],
    least: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="People below which no shuffler takes part."),
    ],
    fakes: Annotated[
        int, typer.Option(metavar="N", min=0, help="Uniform reports that the shufflers add.")
    ] = 0,
    parties: Annotated[
        int, typer.Option(metavar="R", help="Shufflers: 3, 5, 7 or another odd number.")
    ] = 3,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, max=LONGEST_SHUFFLE, help="When to give up."),
    ] = 24 * 3600.0,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    as_json: Json = False,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Shuffle reports under encryption: no party reads one, and none knows their order after.

    Every shuffler and the server is a process of its own on this machine, and this command stands
    in for the people. The analyst follows nobody unless more than half of the shufflers tell her
    (see docs/peos.md). It takes some two CPU minutes for 100,000 reports.

    Fakes are taken out of the frequencies that are printed. `sottovoce estimate` takes them for
    people, so give it a shuffle without fakes.

    Example:  sottovoce peos plan.json reports.parquet -o shuffled.parquet --least 1000

    Example:  sottovoce peos plan.json reports.parquet -o shuffled.parquet --least 1000 --fakes 500
              --parties 5
    """
    require_extra("peos", "peos")
    from sottovoce.console.progress import progress
    from sottovoce.console.surveys import read_plan
    from sottovoce.ground.files import replacing
    from sottovoce.protocol.reports import Reports
    from sottovoce.shuffle.peos import peos_run

    if not 0 < level < 1:
        raise InvalidInput(f"level ({level}) must lie between 0 and 1")
    made = read_plan(plan_file, plan_id)
    sent = Reports.read(reports)
    # the file is begun first: a shuffle takes long, and its result must have a place
    with replacing(output) as draft:
        with progress("shuffling", None, quiet):
            found = peos_run(made, sent, fakes=fakes, least=least, parties=parties, timeout=timeout)
        found.reports.write(draft)
    tables = found.tables()
    if as_json:
        print_json(_described(found, tables, level))
        return
    if tables:
        from sottovoce.console.tables import console, estimate_table

        for table in tables:
            console().print(estimate_table(table, level))
    typer.echo(_told(found, output))


def _told(found: PeosResult, output: Path) -> str:
    costs = found.costs
    seconds = sum(sum(each.values()) for each in (*costs.shufflers, costs.server))
    malformed = f" ({found.malformed:,} were malformed)" if found.malformed else ""
    fakes = f" and {found.fakes:,} fakes" if found.fakes else ""
    return (
        f"{found.people:,} reports{fakes} shuffled by {len(costs.shufflers)} parties in "
        f"{seconds:,.1f} CPU seconds{malformed}, written to {output}"
    )


def _described(found: PeosResult, tables: list[Table], level: float) -> dict[str, object]:
    costs = found.costs
    return {
        "plan": found.plan.id,
        "people": found.people,
        "fakes": found.fakes,
        "malformed": found.malformed,
        "level": level,
        "tables": [table.to_json(level) for table in tables],
        "costs": {
            "user_ms": costs.user_ms,
            "user_bytes": costs.user_bytes,
            "shuffler_seconds": [sum(each.values()) for each in costs.shufflers],
            "shuffler_bytes": list(costs.shuffler_bytes),
            "server_seconds": sum(costs.server.values()),
            "server_bytes": costs.server_bytes,
        },
    }
