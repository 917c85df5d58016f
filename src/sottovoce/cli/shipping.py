"""The commands that bring the reports of many collectors together: ship, fold-minutes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.collector_options import StoreUrl
from sottovoce.cli.commands import Json, PlanFile, PlanId, Quiet, app, print_json
from sottovoce.ground.errors import InvalidInput, StoreError
from sottovoce.ground.labels import visible

if TYPE_CHECKING:
    from sottovoce.shipping.minutes import Folded
    from sottovoce.shipping.totals import Collected

Every = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", min=1, help="Again and again, so many seconds apart, until Ctrl-C."
    ),
]


@app.command()
def ship(
    store: StoreUrl,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="URL", help="A folder, or a URL: s3://..., gs://..., abfs://..., ..."
        ),
    ],
    plan_id: Annotated[
        str | None, typer.Option("--plan", metavar="HEX", help="One survey; by default all.")
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="All of it once more, as when files there were lost."),
    ] = False,
    every: Every = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ship the reports of a store to where those of other collectors are.

    What came since the last time is written into files that are never changed, by survey and by the
    minute that the reports' ids tell. A pass that was killed is repeated by the next one. What two
    collectors took, or what is shipped twice, is counted once by `sottovoce fold-minutes`.

    A survey that is closed in one of the stores that share a place is closed in all of them, each
    at its next pass.

    Example:  sottovoce ship sqlite:///survey.db --to /srv/collected --every 60

    Example:  sottovoce ship sqlite:///survey.db --to s3://bucket/collected
    """
    from sottovoce.console.progress import progress
    from sottovoce.shipping.places import Place
    from sottovoce.shipping.ship import ship as ship_now
    from sottovoce.store import open_store

    if again and every is not None:
        raise InvalidInput("again and every exclude each other")
    place = Place.at(to)
    with open_store(store, create=False) as opened:

        def once() -> None:
            chosen = [entry.plan for entry in opened.entries()]
            if plan_id is not None:
                chosen = [plan for plan in chosen if plan.id.startswith(plan_id)]
                if not chosen:
                    raise InvalidInput("plan: the store has no plan whose id starts so")
            with progress("shipping", None, quiet) as advance:
                done = ship_now(opened, place, chosen, advance, again=again)
            if as_json:
                print_json(
                    {
                        "reports": done.reports,
                        "files": done.files,
                        "damaged": done.damaged,
                        "closed": done.closed,
                    }
                )
                return
            typer.echo(
                f"{counted(done.reports, 'report')} shipped to {place.shown} in "
                f"{counted(done.files, 'file')}"
            )
            if done.damaged:
                typer.echo(f"{done.damaged:,} damaged reports stay behind; see `sottovoce rebuild`")
            if done.closed:
                typer.echo(f"{counted(done.closed, 'survey')} closed here, as there")

        _repeat(once, every)


@app.command("fold-minutes")
def fold_minutes(
    plan_file: PlanFile,
    place: Annotated[
        str,
        typer.Argument(metavar="FOLDER", help="Where `sottovoce ship` wrote to; also a URL."),
    ],
    wait: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Fold a minute when it has been over for so long."
        ),
    ] = 120,
    is_open: Annotated[
        bool, typer.Option("--open", help="Fold the minutes that are not over too.")
    ] = False,
    forget_days: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Delete the reports of a day, with their ids, so many days after it.",
        ),
    ] = 32,
    keep: Annotated[bool, typer.Option("--keep", help="Delete no reports.")] = False,
    every: Every = None,
    plan_id: PlanId = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add up what collectors shipped, each id once.

    Reports of one minute are folded together: of each id one report counts, of different ones that
    whose bytes are the smallest. A minute that gets a late file is folded again. Totals of minutes
    make those of days, which `sottovoce estimate plan.json FOLDER` adds up.

    A segment that was damaged is set aside and named. After --forget-days a day is over: its
    reports and ids are deleted, its total stays, and what comes later is set aside. Twice as many
    days after it the reports of what was set aside are deleted, too; it is still counted.

    Example:  sottovoce fold-minutes plan.json /srv/collected --every 60

    Example:  sottovoce fold-minutes plan.json s3://bucket/collected --keep --json
    """
    from sottovoce.console.progress import progress
    from sottovoce.console.surveys import read_plan
    from sottovoce.shipping.minutes import fold_minutes as fold_now
    from sottovoce.shipping.places import Place
    from sottovoce.shipping.totals import collected, plan_ids

    made = read_plan(plan_file, plan_id)
    there = Place.at(place)

    def once() -> None:
        if made.id not in plan_ids(there):
            raise StoreError(
                f"place ({there.shown}) must be where `sottovoce ship` wrote to, and holds nothing "
                "of the plan"
            )
        with progress("folding minutes", None, quiet) as advance:
            done = fold_now(
                made,
                there,
                time.time(),
                wait=None if is_open else wait,
                forget_days=None if keep else forget_days,
                advance=advance,
            )
        total = collected(made, there, empty=True)
        if as_json:
            print_json(_folded_json(done, total))
        else:
            _say_folded(done, total)

    _repeat(once, every)


def _folded_json(done: Folded, total: Collected) -> dict[str, object]:
    return {
        "minutes": done.minutes,
        "waiting": done.waiting,
        "finished_days": done.finished,
        "set_aside": [*done.damaged, *done.late],
        "people": total.people,
        "days": total.days,
        "duplicates": total.duplicates,
        "conflicts": total.conflicts,
        "damaged_segments": total.damaged,
        "late_segments": total.late,
    }


def _say_folded(done: Folded, total: Collected) -> None:
    typer.echo(
        f"{counted(done.minutes, 'minute')} folded; {total.people:,} people on "
        f"{counted(total.days, 'day')}, {counted(total.duplicates, 'duplicate')} left out"
    )
    if total.conflicts:
        ids = counted(total.conflicts, "id")
        typer.echo(f"{ids} came with different contents, of which the smallest counts")
    for name in done.damaged:
        typer.echo(f"Damaged, and set aside: {visible(name)}")
    for name in done.late:
        typer.echo(f"Too late, and set aside: {visible(name)}")
    if total.damaged or total.late:
        damaged = counted(total.damaged, "damaged segment")
        typer.echo(f"Set aside so far: {damaged}, {total.late:,} that came too late")
    for day in done.finished:
        typer.echo(f"{day} is over: its reports and ids are deleted, its total stays")
    if done.waiting:
        typer.echo(f"Not over yet: {counted(done.waiting, 'minute')}")


def counted(number: int, noun: str) -> str:
    """How many there are, in words."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _repeat(once: Callable[[], None], every: float | None) -> None:
    """Do it once; or again and again, whatever a store or a place says meanwhile."""
    if every is None:
        once()
        return
    while True:
        start = time.monotonic()
        try:
            once()
        except StoreError as wrong:  # out of reach for now; nothing is lost by trying again
            typer.echo(f"error: {visible(str(wrong))}; next attempt in {every:g} seconds", err=True)
        time.sleep(max(0.0, start + every - time.monotonic()))
