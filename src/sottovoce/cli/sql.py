"""The commands that ask SQL of what was whispered: one query, or a prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.clock import time_limit
from sottovoce.cli.commands import Json, PlanFile, PlanId, Quiet, ReportsSource, app, print_json
from sottovoce.cli.engines import EngineChoice, EngineName, Master
from sottovoce.console.reading import LOCAL_ENGINE
from sottovoce.ground.errors import InvalidInput, SottovoceError
from sottovoce.ground.labels import visible_lines

if TYPE_CHECKING:
    from sottovoce.questions.queries.sql.answer import QueryAnswer
    from sottovoce.questions.queries.sql.session import Session

REFUSED_QUERY = 2
HISTORY = ".sottovoce_history"
MAX_HISTORY = 1000  # lines
PROMPT, CONTINUED = "sql> ", "...> "
SQL_WORDS = (
    "SELECT", "FROM people", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "BETWEEN", "AND",
    "OR", "NOT", "IN", "COUNT(*)", "SUM(", "AVG(", "STDDEV(", "VARIANCE(", "MEDIAN(", "QUANTILE(",
)  # fmt: skip
Level = Annotated[float, typer.Option(help="Of the intervals.")]
OwnTable = Annotated[
    Path | None,
    typer.Option(
        "--table",
        metavar="FILE",
        help="Your own table (CSV, Parquet) of columns that are not sent.",
    ),
]
JoinColumn = Annotated[
    str, typer.Option("--on", metavar="COLUMN", help="Its column of the ids of reports.")
]


@app.command()
def query(
    plan_file: PlanFile,
    reports: ReportsSource,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="One SELECT; the table may have any name.")
    ],
    as_json: Json = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say what ran in clear and what was whispered.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: .svg, .png, .html or .json.")
    ] = None,
    level: Level = 0.95,
    table: OwnTable = None,
    on: JoinColumn = "id",
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Give up after so long; no limit by default."),
    ] = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Answer SQL over whispered dimensions, each number with its standard error.

    With --json the answer is a list of rows: columns, aggregate, value, std_error, low, high.
    What to know of it, such as a range that was clipped, is then said on standard error.

    Ctrl-C ends a query; --timeout 60 does so after a minute, with exit code 124.

    Example:  sottovoce query plan.json reports.parquet "SELECT COUNT(*) FROM people WHERE age > 30"

    Example:  sottovoce query plan.json sqlite:///shop.db "SELECT state, SUM(amount) FROM people
              WHERE age BETWEEN 30 AND 40 GROUP BY state" --explain --plot states.svg

    Example:  sottovoce query plan.json sqlite:///shop.db "SELECT SUM(amount) FROM people
              WHERE age < 30" --table sales.csv --on report

    With an engine other than local the reports stay where they are: public columns are counted
    there, and each group of reports is asked there, with the same integers.

    Example:  sottovoce query plan.json s3://bucket/reports "SELECT channel, COUNT(*) FROM people
              WHERE age > 30 GROUP BY channel" --engine sc://host
    """
    chosen = EngineChoice(engine, master)
    with time_limit(timeout):
        if chosen.is_local:
            answer = _answered(_session(plan_file, plan_id, reports, quiet, table, on), sql, level)
        else:
            answer = _answered_there(chosen, plan_file, plan_id, reports, table, sql, level)
    if plot is not None:
        answer.plot(str(plot))
    if as_json:
        print_json(answer.to_rows())
        if explain:
            typer.echo(visible_lines(answer.explain()), err=True)
        else:
            for note in answer.notes:
                typer.echo(visible_lines(f"Note: {note}"), err=True)
        return
    typer.echo(visible_lines(str(answer)))
    if explain:
        typer.echo(f"\n{visible_lines(answer.explain())}")
    if plot is not None:
        typer.echo(f"Drawn: {plot}")


@app.command("sql")
def sql_prompt(
    plan_file: PlanFile,
    reports: ReportsSource,
    level: Level = 0.95,
    table: OwnTable = None,
    on: JoinColumn = "id",
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Ask SQL at a prompt, with history and completion.

    A query ends with a semicolon or an empty line. .columns lists what may be asked about,
    .explain says how the last query was answered, .plot FILE draws it, .quit leaves.

    Example:  sottovoce sql plan.json reports.parquet

    Example:  sottovoce sql plan.json sqlite:///shop.db
    """
    asked = _session(plan_file, plan_id, reports, quiet, table, on)
    names = asked.columns.names
    if sys.stdin.isatty():
        _remember(names)
        typer.echo("Columns: " + ", ".join(names) + ".  .help says what else there is.")
    last = None
    for text in _statements():
        if text.startswith("."):
            if text.split()[0] in (".quit", ".exit"):
                break
            _command(text, asked, last)
            continue
        try:
            last = asked.ask(text, level)
            typer.echo(visible_lines(str(last)))
        except KeyboardInterrupt:  # this query, not the prompt
            typer.echo("interrupted", err=True)
        except SottovoceError as wrong:
            typer.echo(f"error: {visible_lines(str(wrong))}", err=True)


def _answered(asked: Session, sql: str, level: float) -> QueryAnswer:
    return _unless_refused(lambda: asked.ask(sql, level))


def _unless_refused(ask: Callable[[], QueryAnswer]) -> QueryAnswer:
    """The answer, or the refusal as it was drawn: over several lines."""
    from sottovoce.questions.queries.sql import SqlError

    try:
        return ask()
    except SqlError as wrong:
        typer.echo(f"error: {visible_lines(str(wrong))}", err=True)
        raise typer.Exit(REFUSED_QUERY) from None


def _answered_there(
    chosen: EngineChoice,
    plan_file: Path,
    plan_id: str | None,
    source: str,
    table: Path | None,
    sql: str,
    level: float,
) -> QueryAnswer:
    """The answer of reports that an engine's workers read."""
    from sottovoce.console.reading import check_sources
    from sottovoce.console.surveys import read_plan
    from sottovoce.engine.queries import ask_reports

    if table is not None:
        raise InvalidInput("table is joined by the engine local alone, which has the reports' ids")
    made = read_plan(plan_file, plan_id)
    check_sources([source], chosen.name)
    with chosen.opened() as workers:
        return _unless_refused(lambda: ask_reports(workers, made, source, sql, level))


def _session(
    plan_file: Path,
    plan_id: str | None,
    source: str,
    quiet: bool,
    table: Path | None,
    on: str,
) -> Session:
    """What was heard, ready for queries."""
    from sottovoce.console.reading import file_reports, stored_reports
    from sottovoce.console.surveys import read_plan
    from sottovoce.questions.queries.sql import open_session
    from sottovoce.store.urls import is_store

    made = read_plan(plan_file, plan_id)
    if made.question.kind != "queries":
        raise InvalidInput(
            f"plan ({plan_file}): its question must be queries, not {made.question.kind}"
        )
    if is_store(source):
        ids, reports = stored_reports(made, source, quiet)
        return open_session(made, reports, table=table, on=on, ids=ids)
    if table is not None:  # which needs ids
        return open_session(made, source, table=table, on=on)
    return open_session(made, file_reports(made, source, quiet))


def _statements() -> Iterator[str]:
    """Queries and commands as they are typed, or piped in."""
    lines: list[str] = []
    while True:
        try:
            line = input((CONTINUED if lines else PROMPT) if sys.stdin.isatty() else "")
        except EOFError:
            break
        except KeyboardInterrupt:
            typer.echo("")
            lines = []
            continue
        if not lines and line.strip().startswith("."):
            yield line.strip()
            continue
        lines.append(line)
        text = "\n".join(lines).strip()
        if text and (text.endswith(";") or not line.strip()):
            yield text
            lines = []
        elif not text:
            lines = []
    rest = "\n".join(lines).strip()
    if rest:
        yield rest


def _command(text: str, asked: Session, last: object) -> None:
    """One of the prompt's own commands."""
    from sottovoce.questions.queries.sql.answer import QueryAnswer

    name, _, argument = text.partition(" ")
    if name == ".columns":
        for each in asked.source.dimensions:
            typer.echo(f"{each.name}: whispered, {each.domain_text()}")
        for public in asked.source.public_names:
            typer.echo(f"{public}: public")
        for unsent in asked.source.unsent_names:
            typer.echo(f"{unsent}: public, not sent; --table joins it")
    elif name in (".explain", ".plot") and not isinstance(last, QueryAnswer):
        typer.echo("error: ask a query first", err=True)
    elif name == ".explain" and isinstance(last, QueryAnswer):
        typer.echo(visible_lines(last.explain()))
    elif name == ".plot" and isinstance(last, QueryAnswer):
        try:
            last.plot(argument.strip() or "query.svg")
            typer.echo(f"Drawn: {argument.strip() or 'query.svg'}")
        except (SottovoceError, OSError) as wrong:
            typer.echo(f"error: {wrong}", err=True)
    else:
        typer.echo("A query ends with ; or an empty line.  .columns  .explain  .plot FILE  .quit")


def _remember(names: tuple[str, ...]) -> None:
    """History over sessions, and completion of columns and of SQL's words with the tab key."""
    import atexit

    try:
        import readline
    except ImportError:  # not on every system
        return
    history = Path.home() / HISTORY
    words = [*names, *SQL_WORDS]

    def complete(text: str, state: int) -> str | None:
        fitting = [word for word in words if word.lower().startswith(text.lower())]
        return fitting[state] if state < len(fitting) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,()<>=")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(MAX_HISTORY)
    with suppress(OSError):  # the first time there is none
        readline.read_history_file(history)

    def keep() -> None:
        with suppress(OSError):  # a home that cannot be written to
            readline.write_history_file(history)

    atexit.register(keep)
