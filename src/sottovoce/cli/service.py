"""The commands around a collector: serve, send, studio, and what a store holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.commands import Json, PlanFile, PlanId, Quiet, SeriesFile, app, print_json
from sottovoce.errors import InvalidInput
from sottovoce.extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sottovoce.service.settings import Settings

LOCAL = ("127.0.0.1", "localhost", "::1")
StoreUrl = Annotated[
    str, typer.Argument(metavar="STORE", help="Where reports rest: sqlite:///file.db or postgresql://...")
]
StoreOption = Annotated[str, typer.Option("--store", metavar="URL", help="sqlite:///file.db or postgresql://...")]
Host = Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for all.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")]
RateLimit = Annotated[
    float | None, typer.Option(metavar="N", help="At most so many requests a second from one address.")
]
Origins = Annotated[
    list[str] | None, typer.Option("--origin", metavar="URL", help="A site whose pages may send; may be given again.")
]
Proxies = Annotated[
    str | None, typer.Option("--proxy", metavar="ADDRESS", help="A proxy that is believed about addresses.")
]
Plans = Annotated[list[Path] | None, typer.Argument(metavar="[plan.json ...]", help="Surveys to take in.")]
DEFAULT_STORE = "sqlite:///sottovoce.db"


@app.command()
def serve(
    plans: Plans = None,
    store: StoreOption = DEFAULT_STORE,
    host: Host = "127.0.0.1",
    port: Port = 8700,
    rate_limit: RateLimit = None,
    origin: Origins = None,
    proxy: Proxies = None,
) -> None:
    """Collect reports over HTTP.

    A report is acknowledged when it is durable. SIGINT or SIGTERM stops the collector after it has finished what it
    has begun. Analysts need a token (see `sottovoce token`).

    Example:  sottovoce serve plan.json --store sqlite:///survey.db --port 8700
    """
    from sottovoce.service.settings import Settings

    _run(plans or [], store, host, port, Settings(rate_limit=rate_limit, origins=tuple(origin or ())), proxy, None)


@app.command()
def studio(
    plans: Plans = None,
    store: StoreOption = DEFAULT_STORE,
    host: Host = "127.0.0.1",
    port: Port = 8700,
    rate_limit: RateLimit = None,
    origin: Origins = None,
    proxy: Proxies = None,
    token: Annotated[
        bool | None, typer.Option("--token/--no-token", help="Ask analysts for a token; by default unless local.")
    ] = None,
) -> None:
    """Make surveys, take part and watch, in a browser.

    The same collector as `sottovoce serve`, with pages. Everything they need is on this machine.

    Example:  sottovoce studio --store sqlite:///survey.db
    """
    from sottovoce.service.settings import Settings

    settings = Settings(rate_limit=rate_limit, origins=tuple(origin or ()))
    is_local = host in LOCAL and proxy is None
    if token is False and not is_local:
        raise InvalidInput("token: a studio that others can reach must ask analysts for one")
    _run(plans or [], store, host, port, settings, proxy, not is_local if token is None else token)


def _run(
    plans: Sequence[Path], url: str, host: str, port: int, settings: Settings, proxy: str | None, token: bool | None
) -> None:
    """A collector; with the studio's pages unless ``token`` is None."""
    from sottovoce.cli.survey import read_plan
    from sottovoce.service.app import make_app
    from sottovoce.service.desk import Desk
    from sottovoce.service.server import run
    from sottovoce.store import open_store

    if token is not None:
        from sottovoce.studio.app import add_studio

        require_extra("analysis", "studio")
    made = [read_plan(path) for path in plans]
    store = open_store(url)
    try:
        for path, each in zip(plans, made, strict=True):
            store.add_plan(each, path.stem)
        desk = Desk(store, settings.refresh_seconds)
        served = make_app(desk, settings)
        start = ""
        if token is not None:
            add_studio(served, desk, token_required=token)
            start = "/studio"
        run(served, host, port, proxy, lambda bound: typer.echo(f"Listening at http://{host}:{bound}{start}"))
    finally:
        store.close()


@app.command()
def send(
    plan_file: PlanFile,
    people: Annotated[Path, typer.Argument(metavar="people.csv", help="One row per person; CSV or Parquet.")],
    to: Annotated[str, typer.Option("--to", metavar="URL", help="The collector.")],
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Reports in one request.")] = 1,
    connections: Annotated[int, typer.Option(min=1, max=64, help="Requests under way at once.")] = 4,
    log: Annotated[Path | None, typer.Option(help="A file for the id of every acknowledged report.")] = None,
    series: SeriesFile = None,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Let everybody in a file whisper to a collector.

    Each row is a device of its own: it randomises here, sends its report, and sends it again with the same id until
    it is acknowledged, for up to five minutes.

    In a plan of several rounds a row is drawn into one of them and answers only there. --series FILE keeps who that
    is: give the same file, and the same people in the same order, in every round. Whoever has begun to answer never
    answers again.

    Example:  sottovoce send plan.json people.csv --to http://127.0.0.1:8700 --log acknowledged.txt
    """
    from sottovoce.cli.people import row_count
    from sottovoce.cli.progress import progress
    from sottovoce.cli.rounds import needed
    from sottovoce.cli.sending import send_people
    from sottovoce.cli.survey import read_plan

    made = read_plan(plan_file, plan_id)
    members = needed(made, series)
    with progress("sending", row_count(people), quiet) as advance:
        count = send_people(made, people, to, batch, connections, log, advance, members)
    typer.echo(f"{count:,} reports acknowledged")


@app.command()
def info(store: StoreUrl, as_json: Json = False) -> None:
    """Say what a store holds.

    Example:  sottovoce info sqlite:///survey.db
    """
    from sottovoce.service.desk import Survey
    from sottovoce.store import open_store

    opened = open_store(store, create=False)
    try:
        rows = [Survey(entry, opened.count(entry.plan)).to_json() for entry in opened.entries()]
    finally:
        opened.close()
    if as_json:
        print_json({"plans": [row | {"reports": row["people"]} for row in rows]})
        return
    from sottovoce.cli.tables import console, store_table

    console().print(store_table(rows))


@app.command()
def export(
    store: StoreUrl,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the Parquet files.")],
    plan_id: Annotated[str | None, typer.Option("--plan", metavar="HEX", help="One survey; by default all.")] = None,
    quiet: Quiet = False,
) -> None:
    """Write a store's reports to Parquet files.

    Example:  sottovoce export sqlite:///survey.db -o reports/
    """
    from sottovoce.cli.progress import progress
    from sottovoce.store import export as write_out
    from sottovoce.store import open_store

    opened = open_store(store, create=False)
    try:
        chosen = [each for each in opened.entries() if plan_id is None or each.plan.id.startswith(plan_id)]
        if not chosen:
            raise InvalidInput("plan: the store has no plan whose id starts so" if plan_id else "store: it has no plan")
        for entry in chosen:
            with progress(f"exporting {entry.plan.id[:8]}", opened.count(entry.plan), quiet) as advance:
                count = write_out(opened, entry.plan, output, advance)
            typer.echo(f"{count:,} reports of {entry.plan.id[:16]} written to {output}")
    finally:
        opened.close()


@app.command()
def rebuild(store: StoreUrl, quiet: Quiet = False) -> None:
    """Add up a store's reports anew.

    Aggregates are kept as reports come; this makes them again from the reports alone.

    Example:  sottovoce rebuild sqlite:///survey.db
    """
    from sottovoce.cli.progress import progress
    from sottovoce.store import open_store

    opened = open_store(store, create=False)
    try:
        for entry in opened.entries():
            with progress(f"adding up {entry.plan.id[:8]}", opened.count(entry.plan), quiet) as advance:
                people = opened.rebuild(entry.plan, advance).people
            typer.echo(f"{people:,} reports of {entry.plan.id[:16]} added up")
    finally:
        opened.close()


@app.command()
def token(
    store: StoreUrl,
    name: Annotated[str, typer.Option(help="Whose it is.")] = "analyst",
    names: Annotated[bool, typer.Option("--list", help="Say who has tokens, and make none.")] = False,
    revoke: Annotated[str | None, typer.Option(metavar="NAME", help="Forget somebody's tokens, and make none.")] = None,
) -> None:
    """Make a token for an analyst; it is shown once, and the store keeps only its hash.

    Example:  sottovoce token sqlite:///survey.db --name alice

    Example:  sottovoce token sqlite:///survey.db --revoke alice
    """
    from sottovoce.service.tokens import new_token
    from sottovoce.store import open_store

    if not 1 <= len(name) <= 100:
        raise InvalidInput("name must have 1 to 100 characters")
    with open_store(store) as opened:
        if revoke is not None:
            count = opened.remove_tokens(revoke)
            if not count:
                raise InvalidInput("revoke: nobody of this name has a token")
            typer.echo(f"{count} tokens revoked" if count > 1 else "1 token revoked")
        elif names:
            for owner in opened.token_names():
                typer.echo(owner)
        else:
            typer.echo(new_token(opened, name))
