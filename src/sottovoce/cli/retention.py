"""The commands that look after a store: backup, restore, rebuild, delete."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.collector_options import StoreUrl
from sottovoce.cli.commands import Quiet, app
from sottovoce.ground.errors import InvalidInput, MissingLibrary
from sottovoce.ground.labels import visible

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan
    from sottovoce.store import Entry, Manifest, Store

SUMS = "sums"
_WHY_BYTES_STAY = (
    "because others use it or the disk is full: they go with the next delete, or with the "
    "database's own VACUUM"
)


@app.command()
def backup(
    store: StoreUrl,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file.")],
    keys: Annotated[
        bool,
        typer.Option(
            "--keys/--without-keys", help="With the analysts' tokens and the keys for assignments."
        ),
    ] = True,
) -> None:
    """Write all that a store holds into one file, while collectors go on.

    Whatever was acknowledged before it began is in it. Every report is read once more and checked
    on the way. Never copy the file of a running store instead: reports that are still in its log
    would be missing.

    Only its owner can read the file. It can be looked at like a store, and restored into a store of
    either kind.

    Example:  sottovoce backup sqlite:///survey.db -o backup.db
    """
    from sottovoce.store import backup as write
    from sottovoce.store import open_store

    with open_store(store, create=False) as opened:
        made = write(opened, output, with_keys=keys)
    typer.echo(f"{_told(made)} written to {output}")
    if made.damaged:
        typer.echo(
            f"{made.damaged:,} damaged reports are in it as they are; see `sottovoce rebuild`"
        )
    if made.set_aside:
        typer.echo(f"{made.set_aside:,} damaged reports were set aside; estimates leave them out")


@app.command()
def restore(
    file: Annotated[
        Path, typer.Argument(metavar="backup.db", help="What `sottovoce backup` wrote.")
    ],
    store: StoreUrl,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete what the store holds, if it is not empty.")
    ] = False,
    with_keys: Annotated[
        bool,
        typer.Option(
            "--with-keys",
            help="Take over the backup's tokens and signing keys, in place of its own.",
        ),
    ] = False,
) -> None:
    """Fill a store from a backup, which may come from a store of another kind.

    The backup is checked first. It is taken over whole or not at all. Stop the collectors of that
    store meanwhile.

    The store keeps its own tokens and signing keys: those of the backup may have been revoked
    since. With --with-keys the backup's take their place; look through `sottovoce token STORE
    --list` then.

    Example:  sottovoce restore backup.db sqlite:///survey.db
    """
    from sottovoce.store import open_store
    from sottovoce.store import restore as fill

    if not file.is_file():
        raise InvalidInput(f"backup ({file}) must be a file that exists")
    with open_store(store) as opened:
        done = fill(file, opened, replace=replace, with_keys=with_keys)
    made = done.manifest
    typer.echo(f"{_told(made)} restored")
    if done.left_out:
        typer.echo(f"{done.left_out:,} damaged reports were left out; the backup still has them")
    if made.damaged > done.left_out:
        typer.echo(
            f"{made.damaged - done.left_out:,} damaged reports came along; see `sottovoce rebuild`"
        )
    if made.set_aside:
        typer.echo(f"{made.set_aside:,} damaged reports were set aside; estimates leave them out")
    if replace and not done.is_erased:
        typer.echo(
            f"The bytes of what it replaced are still in the store's files, {_WHY_BYTES_STAY}"
        )


def _told(made: Manifest) -> str:
    count = len(made.surveys)
    return f"{made.reports:,} reports of {count} survey{'' if count == 1 else 's'}"


@app.command()
def rebuild(
    store: StoreUrl,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="Move damaged reports to a table of their own.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Add up a store's reports anew, and check each of them.

    Aggregates are kept as reports come; this makes them again from the reports alone. If some
    reports are damaged it says how many and changes nothing; with --set-aside they are moved away,
    and their ids are free again. Without the analysis libraries they are checked, and the next
    estimate adds them up.

    Example:  sottovoce rebuild sqlite:///survey.db --set-aside
    """
    from sottovoce.console.progress import progress
    from sottovoce.store import open_store

    with open_store(store, create=False) as opened:
        for entry in opened.entries():
            name = entry.plan.id[:16]
            if opened.kept(entry.plan).only_sums:
                typer.echo(f"Only the sums of {name} are kept")
                continue
            moved = opened.set_aside(entry.plan) if set_aside else 0
            with progress(f"adding up {name[:8]}", opened.count(entry.plan), quiet) as advance:
                people, what = _rebuilt(opened, entry.plan, advance)
            aside = f"; {moved:,} damaged ones set aside" if moved else ""
            typer.echo(f"{people:,} reports of {name} {what}{aside}")


def _rebuilt(opened: Store, plan: Plan, advance: Callable[[int], None]) -> tuple[int, str]:
    """How many reports there are, and what was done: without the analysis extra only checked."""
    try:
        return opened.rebuild(plan, advance).people, "added up"
    except MissingLibrary:
        return opened.check(plan, advance), "checked; the next estimate adds them up"


@app.command()
def delete(
    store: StoreUrl,
    plan_id: Annotated[
        str,
        typer.Option("--plan", metavar="HEX", help="The survey, by the first digits of its id."),
    ],
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="sums", help="Keep what the reports add up to, and no report."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a survey with its reports, or only the reports.

    With --keep sums the survey is closed for good and its estimates stay the same. That is refused
    where the sums of a question are the reports themselves. What was deleted is overwritten in the
    store's own files; backups, logs of a database server and copies elsewhere are yours to delete.

    Example:  sottovoce delete sqlite:///survey.db --plan 3f2a --keep sums
    """
    from sottovoce.store import open_store

    if keep not in (None, SUMS):
        raise InvalidInput(f"keep ({keep}) must be {SUMS}")
    with open_store(store, create=False) as opened:
        entry = _chosen(opened, plan_id)
        people = opened.count(entry.plan)
        _agree(entry, people, keep, yes)
        is_erased = opened.keep_sums(entry.plan) if keep else opened.delete(entry.plan)
    what = "reports deleted, their sums kept" if keep else "reports and their survey deleted"
    typer.echo(f"{people:,} {what}")
    if not is_erased:
        typer.echo(f"Their bytes are still in the store's files, {_WHY_BYTES_STAY}")


def _chosen(opened: Store, start: str) -> Entry:
    """The only survey whose id starts so."""
    found = [entry for entry in opened.entries() if start and entry.plan.id.startswith(start)]
    if len(found) != 1:
        raise InvalidInput(
            f"plan: {len(found)} surveys of the store have an id that starts so; it must be one"
        )
    return found[0]


def _agree(entry: Entry, people: int, keep: str | None, yes: bool) -> None:
    """Go on only if whoever asked means it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput("delete: give --yes where nobody can be asked")
    what = "all reports" if keep else "the survey with all reports"
    title = visible(entry.title) or "without a title"
    question = f"Delete {what} of {entry.plan.id[:16]} ({title}, {people:,} people)?"
    try:
        is_meant = typer.confirm(question)
    except typer.Abort:  # as a terminal's Ctrl-C arrives here
        raise KeyboardInterrupt from None
    if not is_meant:
        raise InvalidInput("delete: nothing was deleted")
