"""The commands around shufflers: keys, a shuffler, and whether one's reports came through."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.collector_options import Host, Origins, Port, Proxies, RateLimit
from sottovoce.cli.commands import Json, PlanFile, PlanId, app, print_json
from sottovoce.cli.service import key_app
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import require_extra

if TYPE_CHECKING:
    from sottovoce.store.hops import HopStore

LONGEST_SECONDS = 1_000_000_000  # that a batch may be open: thirty years
NOT_THROUGH = 1  # exit code: some reports are not in the batch
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", envvar="SOTTOVOCE_KEY", help="This hop's private key."),
]


@key_app.command("new")
def new(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file for the private key.")],
) -> None:
    """Draw a key for a shuffler or a collector, and print the public one, for plans.

    The file is for its owner alone, and must not exist yet. Whoever has it opens a layer of every
    report that was sealed for it.

    Example:  sottovoce key new -o hop.key
    """
    require_extra("shuffle", "key new")
    from sottovoce.ground.entropy import System
    from sottovoce.shuffle.keys import new_key

    typer.echo(new_key(output, System()).public)


@key_app.command("show")
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `key new` wrote.")],
) -> None:
    """Print the public key of a private one, as a plan names it.

    Example:  sottovoce key show hop.key
    """
    require_extra("shuffle", "key show")
    from sottovoce.shuffle.keys import read_key

    typer.echo(read_key(file).public)


@app.command()
def shuffler(
    plans: Annotated[
        list[Path] | None, typer.Argument(metavar="plan.json", help="Plans that name its key.")
    ] = None,
    key: KeyFile = None,
    next_url: Annotated[
        str | None,
        typer.Option(
            "--next",
            metavar="URL",
            envvar="SOTTOVOCE_NEXT",
            help="The next shuffler, or the collector.",
        ),
    ] = None,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="URL",
            envvar="SOTTOVOCE_STORE",
            help="Where batches wait: sqlite:///hop.db",
        ),
    ] = "sqlite:///hop.db",
    min_batch: Annotated[
        int,
        typer.Option(
            "--min-batch",
            metavar="N",
            min=0,
            envvar="SOTTOVOCE_MIN_BATCH",
            help="Open no batch of fewer onions; at least the plan's own number.",
        ),
    ] = 0,
    close_after: Annotated[
        float | None,
        typer.Option(
            "--close-after",
            metavar="SECONDS",
            min=0,
            max=LONGEST_SECONDS,
            help="Of the first shuffler: close no batch earlier than so long after its start.",
        ),
    ] = None,
    close_at: Annotated[
        str | None,
        typer.Option(
            "--close-at",
            metavar="TIME",
            help="The same as a time, such as 2026-12-24T18:00+00:00.",
        ),
    ] = None,
    collector: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="SOTTOVOCE_COLLECTOR",
            help="The collector, for plans with fakes, unless it is the next hop.",
        ),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 8701,
    rate_limit: RateLimit = None,
    origin: Origins = None,
    proxy: Proxies = None,
    status: Annotated[
        bool, typer.Option("--status", help="Say how far the store's batches are, and serve none.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Mix the sealed reports of shuffled plans, and pass them on.

    Which hop this is, its key says. The first one takes onions from devices, until so many came
    *and* the time is over; others take batches. A batch is kept until the next hop has it, through
    any crash, and then deleted. SIGINT or SIGTERM stops it; the same command goes on.

    Example:  sottovoce shuffler plan.json --key hop.key --next http://127.0.0.1:8702 --store
    sqlite:///hop.db --close-after 3600

    Example:  sottovoce shuffler --status --store sqlite:///hop.db
    """
    require_extra("shuffle", "shuffler")
    from sottovoce.store.hops import HopStore

    if status:
        with HopStore(store, create=False) as opened:
            _print_status(opened, as_json)
        return
    if not plans or key is None or next_url is None:
        raise InvalidInput("plans, --key and --next are required, or --status")
    from sottovoce.console.surveys import read_plan
    from sottovoce.service.server import run
    from sottovoce.service.settings import Settings
    from sottovoce.service.shuffler import Shuffler, ShufflerTerms, shuffler_app
    from sottovoce.shuffle.keys import read_key

    closes = _closes(close_after, close_at)
    terms = ShufflerTerms(next_url, closes, close_at is not None, min_batch, collector)
    made, own = [read_plan(path) for path in plans], read_key(key)
    settings = Settings(
        rate_limit=rate_limit, origins=tuple(origin or ()), proxies=tuple(proxy or ())
    )
    with HopStore(store) as opened:

        def listening(bound: int) -> None:
            name = f"[{host}]" if ":" in host else host
            typer.echo(f"Listening at http://{name}:{bound}")

        app = shuffler_app(Shuffler(made, own, opened, terms), settings)
        run(app, host, port, listening, to_the_minute=True)


def _closes(after: float | None, at: str | None) -> int | None:
    """When batches close, as unix time in whole seconds."""
    if at is None:
        return None if after is None else int(time.time() + after)
    if after is not None:
        raise InvalidInput("close-after and close-at cannot both be given")
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise InvalidInput(f"close-at ({at}) must be a time with its zone: 2026-12-24T18:00+00:00")
    return int(when.timestamp())


def _print_status(opened: HopStore, as_json: bool) -> None:
    rows = [opened.status(plan_id).to_json() for plan_id in opened.plan_ids()]
    if as_json:
        print_json({"batches": rows})
        return
    for row in rows:
        plan_id, state = row.pop("plan"), row.pop("state")
        reason, closes = row.pop("reason", None), row.pop("closes")
        told = [f"{name} {count:,}" for name, count in row.items()]
        if closes is not None:
            told.insert(0, f"closes {datetime.fromtimestamp(closes, UTC):%Y-%m-%d %H:%M:%S} UTC")
        typer.echo(
            f"{plan_id[:16]}  {state}  {', '.join(told)}" + (f"; {reason}" if reason else "")
        )


@app.command()
def spotcheck(
    plan_file: PlanFile,
    people: Annotated[
        Path, typer.Argument(metavar="people.csv", help="Whose reports were sent from here.")
    ],
    at: Annotated[str, typer.Option("--at", metavar="URL", help="The collector.")],
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The journal; by default beside the people's file."),
    ] = None,
    plan_id: PlanId = None,
    as_json: Json = False,
) -> None:
    """Say whether the reports that were sent from here came through the shufflers.

    The collector publishes a hash of every nonce of a finished batch; the nonces that were sent
    stand in the journal of `sottovoce send`. Whoever changed or dropped a share of the batch
    changed as large a share of these on average, and could not know which they are, unless the
    first shuffler knows from where checks are sent. The exit code is 1 if one is missing.

    Example:  sottovoce spotcheck plan.json people.csv --at http://127.0.0.1:8700
    """
    from sottovoce.console.surveys import read_plan
    from sottovoce.sending.spot_checks import spot_check

    found = spot_check(read_plan(plan_file, plan_id), people, at, journal)
    if as_json:
        print_json(found.to_json())
    else:
        typer.echo(str(found))
    if found.missing:
        raise typer.Exit(NOT_THROUGH)
