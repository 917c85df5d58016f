"""What `sottovoce estimate` was asked for: which tables, drawn or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.analysis.raking import Raked
    from sottovoce.protocol.guarantee import Guarantee
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.texts import Texts
    from sottovoce.results.cells import Mark
    from sottovoce.results.estimate import Estimate, Table


LOCALLY: Mapping[str, Any] = {}  # who folds reports, if nobody says
MAX_PRINTED_TABLES = 6  # of tables that are all in a file


@dataclass(frozen=True)
class TableFiles:
    """Where the tables of an answer go beside the screen, if anywhere."""

    csv: Path | None
    xlsx: Path | None

    def check(self) -> None:
        """Refuse names that cannot be written, before anything takes long."""
        if self.csv is not None and self.csv.suffix.lower() != ".csv" and self.csv.exists():
            raise InvalidInput(f"csv ({self.csv}) must end in .csv, or be a folder not there yet")
        if self.xlsx is not None and self.xlsx.suffix.lower() != ".xlsx":
            raise InvalidInput(f"xlsx ({self.xlsx}) must end in .xlsx")

    def write(
        self,
        made: Plan,
        tables: Sequence[Table],
        level: float,
        marks: Sequence[Mark] | None = None,
    ) -> None:
        """All tables, whole; ``marks`` are those of popular values."""
        from sottovoce.results.spreadsheets import write_csv_tables
        from sottovoce.results.workbook import write_workbook

        if self.csv is not None:
            write_csv_tables(tables, self.csv, level, marks)
        if self.xlsx is not None:
            about = [("plan", made.id), ("guarantee", str(made.guarantee))]
            write_workbook(tables, self.xlsx, level, about, marks)

    def printed(self, tables: Sequence[Table]) -> Sequence[Table]:
        """What goes to the screen: all tables, or the first ones if a file holds them all."""
        return tables if self.csv is None and self.xlsx is None else tables[:MAX_PRINTED_TABLES]

    def say(self) -> None:
        """What was written."""
        for path in filter(None, (self.csv, self.xlsx)):
            typer.echo(f"Tables written to {path}")


def asked_tables(found: Estimate, marginals: Sequence[str], k: int | None) -> list[Table]:
    """The tables named ``a,b``, then all of ``k`` attributes; the plan's own if none is named."""
    tables = [found.marginal(*(name.strip() for name in names.split(","))) for names in marginals]
    if k is not None:
        tables += found.marginals(k).values()
    return tables if marginals or k is not None else list(found.tables.values())


def listened(
    made: Plan, source: str, rake: Path | None, quiet: bool, where: Mapping[str, Any] = LOCALLY
) -> Aggregate | Raked:
    """What was heard; with weights if a file has the population's shares of public columns.

    Args:
        made: the plan.
        source: where the reports are.
        rake: the file of shares.
        quiet: no progress bar.
        where: who folds the reports, as :func:`sottovoce.console.reading.heard` takes it.
    """
    from sottovoce.console.reading import all_reports, heard

    if rake is None:
        return heard(made, source, quiet, **where)
    engine = where.get("engine")
    if engine is not None and engine.name != "local":
        raise InvalidInput(f"rake weighs reports here, and not by the engine {engine.name}")
    from sottovoce.analysis.raking import rake as raked
    from sottovoce.console.surveys import read_margins

    return raked(made, all_reports(made, source, quiet), read_margins(rake))


def estimated(
    made: Plan,
    source: str,
    rake: Path | None,
    quiet: bool,
    where: Mapping[str, Any],
    **options: Any,
) -> Estimate:
    """The estimate of what was heard, with ``options`` of it, those not given None or False."""
    for option, value in options.items():
        if rake is not None and value:
            raise InvalidInput(f"rake: weights do not go with {option}")
    total: Any = listened(made, source, rake, quiet, where)
    found: Estimate = total.estimate(**(options if rake is None else {}))
    return found


def read_lines(path: Path) -> list[str]:
    """The different words of a file of candidates."""
    try:
        lines = [line.rstrip("\r") for line in path.read_text(encoding="utf-8-sig").split("\n")]
    except UnicodeDecodeError:
        raise InvalidInput(f"candidates ({path}): the file is not UTF-8") from None
    words = list(dict.fromkeys(line for line in lines if line))
    if not words:
        raise InvalidInput(f"candidates ({path}): there must be at least one, each on its own line")
    return words


def candidates(made: Plan, path: Path) -> Any:
    """The words of a file, as the plan's question takes them."""
    return made.question.candidates(made.schema, read_lines(path))


def whole_tables(
    made: Plan,
    found: Estimate,
    unrepaired: Sequence[Table],
    sums: Sequence[str],
    *,
    repair: str,
    level: float,
    as_json: bool,
    plot: Path | None,
    files: TableFiles,
) -> None:
    """Print whole tables and sums over sets of their values, and draw the tables, as wanted."""
    from sottovoce.analysis.sums import asked_sums
    from sottovoce.cli.commands import print_json
    from sottovoce.cli.sums import sums_table
    from sottovoce.postprocessing import postprocess

    summed = asked_sums(made.schema, found, sums, repair)
    tables = [postprocess(table, repair) for table in unrepaired]
    files.write(made, tables, level)
    if plot is not None:
        draw(tables, plot)
    if as_json:
        body = estimate_json(made, tables, level)
        told = {"sums": [each.to_json(level) for each in summed]} if sums else {}
        print_json(body | told)
        return
    from sottovoce.console.tables import console, estimate_table

    screen = console()
    shown = files.printed(tables)
    for table in shown:
        screen.print(estimate_table(table, level))
    if len(shown) < len(tables):
        typer.echo(f"The first {len(shown)} of {len(tables):,} tables")
    if summed:
        screen.print(sums_table(summed, level))
    if plot is not None:
        typer.echo(f"Drawn: {plot}")
    files.say()


def draw(tables: Sequence[Table], plot: Path) -> None:
    """One picture of all tables, one below the other."""
    from sottovoce.results.plots import save, stacked

    save(stacked(tables), str(plot))


def popular(
    made: Plan,
    found: Estimate,
    *,
    level: float,
    as_json: bool,
    plot: Path | None,
    with_tree: bool,
    following: Path | None,
    texts: Texts,
    files: TableFiles,
    refused: Mapping[str, object],
) -> None:
    """Print what is popular, draw it, and write the next round's plan, as far as each is wanted."""
    from sottovoce.api.planning import next_plan
    from sottovoce.cli import finding
    from sottovoce.cli.commands import print_json
    from sottovoce.console.writing import write_plan
    from sottovoce.results.plots import save

    for option, value in refused.items():
        if value:
            raise InvalidInput(f"{option} is for whole tables; popular values are a part of one")
    tree = finding.tree_lines(found) if with_tree else []
    after = next_plan(made, found) if found.next is not None else None
    if following is not None:
        if after is None:
            raise InvalidInput("next: there is no further round; this estimate is the last word")
        write_plan(after, following, texts.following(after) if texts else texts)
    files.write(made, list(found.tables.values()), level, found.marks)
    if plot is not None:
        save(found.chart(with_prefixes=with_tree), str(plot))
    if as_json:
        head = {"plan": made.id, "guarantee": guarantee_json(made.guarantee), "level": level}
        print_json(head | found.to_json(level) | {"next": after.id if after else None})
        return
    _print_popular(found, level, tree)
    if after is not None and following is None:
        typer.echo(_what_follows(after))
    if following is not None:
        typer.echo(f"Next round's plan: {following}")
    if plot is not None:
        typer.echo(f"Drawn: {plot}")
    files.say()


def _what_follows(after: Plan) -> str:
    rounds = len(after.series.shares)
    if rounds == 1:
        return (
            "Everybody is asked once more, out of what is left of epsilon: --next FILE writes "
            "that plan"
        )
    told = f"Round {after.series.number + 1} of {rounds} follows"
    return f"{told}: --next FILE writes its plan, for people who have not answered"


def _print_popular(found: Estimate, level: float, tree: Sequence[str]) -> None:
    from sottovoce.cli.finding import findings_table
    from sottovoce.console.tables import console

    console().print(findings_table(found, level))
    for note in found.remarks:
        typer.echo(visible(f"Note: {note}"))
    if tree:
        typer.echo("Prefixes on the way, with counts ± standard errors:")
    for line in tree:
        typer.echo(line)


def guarantee_json(guarantee: Guarantee) -> dict[str, float]:
    """The numbers of a guarantee, its own delta only if it has one."""
    told = guarantee.to_json()
    return {name: told[name] for name in told if name != "delta" or guarantee.delta}


def estimate_json(made: Plan, tables: Sequence[Table], level: float) -> dict[str, Any]:
    """Tables with all that marks them."""
    return {
        "plan": made.id,
        "guarantee": guarantee_json(made.guarantee),
        "level": level,
        "tables": [table.to_json(level) for table in tables],
    }
