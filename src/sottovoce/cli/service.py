"""The commands around a collector: serve, send, studio, and what a store holds."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.collector_options import (
    Address,
    BatchesOption,
    CertificateFile,
    CertificateKey,
    CollectorKey,
    Host,
    Language,
    Metrics,
    OldestDays,
    Origins,
    Plans,
    Port,
    Proxies,
    RateLimit,
    Shuffler,
    StoreOption,
    StoreUrl,
    Totals,
    Verbose,
)
from sottovoce.cli.commands import Json, PlanFile, PlanId, Quiet, SeriesFile, app, print_json
from sottovoce.cli.people import Ignored, Separator, read_ignored, read_separator
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import require_extra
from sottovoce.ground.labels import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sottovoce.service.batches import Batches
    from sottovoce.service.settings import Settings
    from sottovoce.store import Token

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
REPORTS_LOST = 1  # exit code
DEFAULT_STORE = "sqlite:///sottovoce.db"
key_app = typer.Typer(
    help="""The keys of shufflers and collectors, and the key that signs assignments.

    Example:  sottovoce key new -o hop.key

    Example:  sottovoce key rotate sqlite:///survey.db
    """,
    rich_markup_mode=None,
)
app.add_typer(key_app, name="key")


@app.command()
def serve(
    plans: Plans = None,
    store: StoreOption = DEFAULT_STORE,
    host: Host = "127.0.0.1",
    port: Port = 8700,
    rate_limit: RateLimit = None,
    origin: Origins = None,
    proxy: Proxies = None,
    metrics: Metrics = "token",
    key: CollectorKey = None,
    batches: BatchesOption = None,
    oldest_days: OldestDays = 30.0,
    certificate: CertificateFile = None,
    certificate_key: CertificateKey = None,
) -> None:
    """Collect reports over HTTP.

    A report is acknowledged when it is durable. SIGINT or SIGTERM stops the collector after it has
    finished what it has begun. Analysts need a token (see `sottovoce token`).

    Reports of shuffled plans come in batches from their last shuffler, under the collector's --key.

    Example:  sottovoce serve plan.json --store sqlite:///survey.db --port 8700

    Example:  sottovoce serve plan.json --store sqlite:///survey.db --key collector.key
    """
    _run(
        plans or [],
        store,
        host,
        port,
        _settings(rate_limit, origin, proxy, metrics, oldest_days),
        has_pages=False,
        last_hop=None if key is None else (key, batches),
        certificates=(certificate, certificate_key),
    )


@app.command()
def studio(
    plans: Plans = None,
    store: StoreOption = DEFAULT_STORE,
    host: Host = "127.0.0.1",
    port: Port = 8700,
    rate_limit: RateLimit = None,
    origin: Origins = None,
    proxy: Proxies = None,
    address: Address = None,
    shuffler: Shuffler = None,
    metrics: Metrics = "token",
    key: CollectorKey = None,
    batches: BatchesOption = None,
    oldest_days: OldestDays = 30.0,
    totals: Totals = None,
    certificate: CertificateFile = None,
    certificate_key: CertificateKey = None,
    verbose: Verbose = False,
    language: Language = None,
) -> None:
    """Make surveys, take part and watch, in a browser.

    The same collector as `sottovoce serve`, with pages. Everything they need is on this machine.
    Analysts' pages need a token (see `sottovoce token`). A studio that listens on this machine
    alone, with no proxy, also prints a link that logs in one browser, once.

    A browser keeps what it drew for one address alone. If yours has several (with and without www,
    http and https), --address names the one at which people take part.

    Reports of a shuffled survey go to its first shuffler, sealed: --shuffler says where that is,
    and the shuffler must take this site's pages (its --origin). Its batch comes from the last one,
    under the collector's --key.

    With --totals it shows what many collectors shipped and `sottovoce fold-minutes` folded, as
    surveys that take no answers here; they stay in the store.

    Example:  sottovoce studio --store sqlite:///survey.db

    Example:  sottovoce studio --host 0.0.0.0 --certificate room.pem --certificate-key room.key

    Example:  sottovoce studio --store sqlite:///totals.db --totals /srv/collected
    """
    _run(
        plans or [],
        store,
        host,
        port,
        _settings(rate_limit, origin, proxy, metrics, oldest_days, address, shuffler, language),
        has_pages=True,
        last_hop=None if key is None else (key, batches),
        totals=totals,
        certificates=(certificate, certificate_key),
        is_quiet=not verbose,
    )


def _settings(
    rate_limit: float | None,
    origins: Sequence[str] | None,
    proxies: Sequence[str] | None,
    metrics: str,
    oldest_days: float,
    address: str | None = None,
    shuffler: str | None = None,
    language: str | None = None,
) -> Settings:
    from sottovoce.service.settings import Settings

    return Settings(
        rate_limit=rate_limit,
        origins=tuple(origins or ()),
        proxies=tuple(proxies or ()),
        address=address,
        shuffler=shuffler,
        language=language,
        metrics=metrics,
        oldest_days=oldest_days,
    )


def _run(
    plans: Sequence[Path],
    url: str,
    host: str,
    port: int,
    settings: Settings,
    has_pages: bool,
    last_hop: tuple[Path, str | None] | None = None,
    totals: str | None = None,
    certificates: tuple[Path | None, Path | None] = (None, None),
    is_quiet: bool = False,
) -> None:
    """A collector, with the studio's pages or without; the last hop of shuffled plans, if it has
    their key; by HTTPS, if it has a certificate and the key of that.
    """
    from sottovoce.cli.collector_keys import (
        check_collector_keys,
        notes_on_surveys,
        opened_batches,
    )
    from sottovoce.console.surveys import read_plan, read_texts
    from sottovoce.protocol.texts import LONGEST_TITLE
    from sottovoce.service.app import make_app
    from sottovoce.service.certificates import Certificate
    from sottovoce.service.server import run
    from sottovoce.service.survey_service import SurveyService
    from sottovoce.service.totals_watcher import TotalsWatcher
    from sottovoce.shipping.watching import check_totals
    from sottovoce.store import open_store

    if has_pages:
        from sottovoce.studio.app import add_studio

        require_extra("analysis", "studio")
    certificate = Certificate.read(*certificates)
    made = [read_plan(path) for path in plans]
    if totals is not None:
        check_totals(totals)
    batches: Batches | None = None
    watcher: TotalsWatcher | None = None
    public = check_collector_keys(made, last_hop)
    store = open_store(url)
    try:
        for path, each in zip(plans, made, strict=True):
            texts = read_texts(path, each)
            named = texts if texts.title else replace(texts, title=path.stem[:LONGEST_TITLE])
            store.add_plan(each, named)
        service = SurveyService(
            store, settings.refresh_seconds, settings.most_values, settings.most_attributes, public
        )
        served = make_app(service, settings)
        start, code = "", None
        if last_hop is not None:
            batches = opened_batches(service, served, *last_hop)
        if has_pages:
            access = add_studio(
                served, service, settings.address, settings.shuffler, settings.language
            )
            start = "/studio"
            if host in LOCAL_HOSTS and not settings.proxies:
                code = access.new_code()

        notes = notes_on_surveys(
            store.entries(), public, has_pages=has_pages, shuffler=settings.shuffler
        )

        def listening(bound: int) -> None:
            origin = _origin(host, bound, is_secure=certificate is not None)
            _announce(origin + start, code, notes)

        if totals is not None:
            watcher = TotalsWatcher(store.address, totals)
        run(served, host, port, listening, certificate=certificate, is_quiet=is_quiet)
    finally:
        if watcher is not None:
            watcher.stop()
        if batches is not None:
            batches.stop()
        store.close()


def _origin(host: str, port: int, *, is_secure: bool) -> str:
    """Where a server listens, as a URL."""
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if is_secure else 'http'}://{name}:{port}"


def _announce(page: str, code: str | None, notes: Sequence[str]) -> None:
    """What whoever starts a collector reads: its address, before anything else."""
    typer.echo(f"Listening at {page}")
    if code is not None:
        typer.echo(f"To log in, open this once: {page}/login?code={code}")
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


@app.command()
def send(
    plan_file: PlanFile,
    people: Annotated[
        Path, typer.Argument(metavar="people.csv", help="One row per person; CSV or Parquet.")
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="URL", help="The collector, or a shuffled plan's first shuffler."
        ),
    ],
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Reports in one request.")] = 1,
    connections: Annotated[
        int, typer.Option(min=1, max=64, help="Requests under way at once.")
    ] = 4,
    log: Annotated[
        Path | None, typer.Option(help="A file for the id of every acknowledged report.")
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The journal; by default beside the people's file."),
    ] = None,
    moved: Annotated[
        bool,
        typer.Option("--moved", help="The collector that the journal names now has this address."),
    ] = False,
    ignore: Ignored = None,
    separator: Separator = None,
    series: SeriesFile = None,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Let everybody in a file whisper to a collector.

    Each row is a device of its own: it randomises here, sends its report, and sends it again with
    the same id until it is acknowledged, for up to five minutes.

    All rows are checked first. What is drawn is kept in a journal before it leaves: after an
    interruption, or with rows added to the file, the same command goes on from there, and nobody's
    report is drawn again. The journal is as secret as the file itself; without it a later run would
    draw, and count, everybody anew.

    In a plan of several rounds a row is drawn into one of them and answers only there. --series
    FILE keeps who that is: give the same file, and the same people in the same order, in every
    round. Whoever has begun to answer never answers again.

    Example:  sottovoce send plan.json people.csv --to http://127.0.0.1:8700 --log acknowledged.txt
    """
    from sottovoce.console.progress import progress
    from sottovoce.console.surveys import read_plan
    from sottovoce.sending.people import PeopleFileOptions, named_rows, row_count
    from sottovoce.sending.rounds import needed
    from sottovoce.sending.sending import send_people

    made = read_plan(plan_file, plan_id)
    reading = PeopleFileOptions(read_separator(separator), read_ignored(ignore))
    with (
        needed(made, series) as members,
        progress("sending", lambda: row_count(people, reading.separator), quiet) as advance,
    ):
        sent = send_people(
            made, people, to, batch, connections, log, advance, members, journal, moved, reading
        )
    line = f"{sent.now:,} reports acknowledged" + (
        f", {sent.before:,} before" if sent.before else ""
    )
    if not sent.lost:
        typer.echo(line)
        return
    typer.echo(
        f"{line}, {len(sent.lost):,} lost ({named_rows(sent.lost)}): the collector no longer takes "
        "their assignments, and nothing is drawn again"
    )
    raise typer.Exit(REPORTS_LOST)


@app.command()
def info(store: StoreUrl, as_json: Json = False) -> None:
    """Say what a store holds.

    Example:  sottovoce info sqlite:///survey.db
    """
    from sottovoce.service.survey_service import SurveyStatus
    from sottovoce.store import open_store

    opened = open_store(store, create=False)
    try:
        rows = [SurveyStatus.of(opened, entry).to_json() for entry in opened.entries()]
    finally:
        opened.close()
    if as_json:
        print_json({"plans": [row | {"reports": row["people"]} for row in rows]})
        return
    from sottovoce.console.tables import console, store_table

    console().print(store_table(rows))


@app.command()
def export(
    store: StoreUrl,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the Parquet files.")
    ],
    plan_id: Annotated[
        str | None, typer.Option("--plan", metavar="HEX", help="One survey; by default all.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a store's reports to Parquet files.

    Example:  sottovoce export sqlite:///survey.db -o reports/
    """
    from sottovoce.console.progress import progress
    from sottovoce.store import export as write_out
    from sottovoce.store import open_store

    opened = open_store(store, create=False)
    try:
        chosen = [
            each for each in opened.entries() if plan_id is None or each.plan.id.startswith(plan_id)
        ]
        if not chosen:
            raise InvalidInput(
                "plan: the store has no plan whose id starts so"
                if plan_id
                else "store: it has no plan"
            )
        for entry in chosen:
            if plan_id is None and opened.kept(entry.plan).only_sums:
                typer.echo(f"Only the sums of {entry.plan.id[:16]} are kept")
                continue
            with progress(
                f"exporting {entry.plan.id[:8]}", opened.count(entry.plan), quiet
            ) as advance:
                count = write_out(opened, entry.plan, output, advance)
            typer.echo(f"{count:,} reports of {entry.plan.id[:16]} written to {output}")
    finally:
        opened.close()


@app.command()
def token(
    store: StoreUrl,
    name: Annotated[str, typer.Option(help="Whose it is.")] = "analyst",
    scope: Annotated[
        str,
        typer.Option(
            metavar="read|manage", help="To see surveys and their estimates, or to change them too."
        ),
    ] = "manage",
    days: Annotated[
        float | None,
        typer.Option(metavar="N", help="For how long it is good; by default for ever."),
    ] = None,
    names: Annotated[
        bool, typer.Option("--list", help="Say who has tokens, and make none.")
    ] = False,
    revoke: Annotated[
        str | None, typer.Option(metavar="NAME", help="Forget somebody's tokens, and make none.")
    ] = None,
) -> None:
    """Make a token for an analyst; it is shown once, and the store keeps only its hash.

    With the scope `read` it shows surveys, estimates and exports; with `manage`, the default, it
    also makes, closes and changes surveys.

    Example:  sottovoce token sqlite:///survey.db --name alice --scope read --days 30

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
            for each in opened.tokens():
                typer.echo(f"{visible(each.name)}\t{each.scope}\t{_end_of(each)}")
        else:
            typer.echo(new_token(opened, name, scope, days))


def _end_of(token: Token) -> str:
    """When a token ends, in words."""
    if token.expires is None:
        return "never expires"
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(token.expires))
    return f"{'expired' if token.is_expired(time.time()) else 'expires'} {when}"
