"""The commands that compare people: shares and averages within groups, and changes over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.commands import (
    Json,
    PlanFile,
    PlanId,
    Quiet,
    ReportsSource,
    app,
    listed,
    print_json,
)
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from sottovoce.protocol.plan import Plan
    from sottovoce.results.averages import Average
    from sottovoce.results.estimate import Estimate, Table
    from sottovoce.results.group_answers import Group

TWO_GROUPS = 2
REMEMBERED = (
    "In one plan a device that keeps its state sends its first report again, whatever its answer "
    "is now, so that no change is seen: a second wave of the same people takes a plan of its own"
)
SAME_PLAN = f"Note: both waves are of one plan, so the people must be others. {REMEMBERED}."


@app.command()
def groups(
    plan_file: PlanFile,
    reports: ReportsSource,
    attribute: Annotated[str, typer.Argument(help="Whose values, or average, are looked at.")],
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="a:v,w", help="A group of people; may be given again."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Or one group for each value of this one.")
    ] = None,
    as_json: Json = False,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Compare groups of people: shares within each, and their differences.

    A share within a group is a ratio of two estimates; its interval knows how these err together. A
    group whose own share cannot be told from the noise is refused. Of two groups the differences
    are printed too, of numbers the means and medians. Without a group it is everybody.

    Example:  sottovoce groups plan.json reports.parquet drinks --by smoker

    Example:  sottovoce groups plan.json reports.parquet drinks --group "age:18..37"
              --group "age:58..97; smoker:no"

    Example:  sottovoce groups plan.json reports.parquet age    # the mean and the median
    """
    from sottovoce.console.reading import heard
    from sottovoce.console.surveys import read_plan

    _check_level(level)
    made = read_plan(plan_file, plan_id)
    asked = _asked_groups(made, group or [], by)
    found = heard(made, reports, quiet).estimate()
    tables = [found.within(attribute, each) for each in asked]
    averages = [each for group in asked or [{}] for each in found.averages(attribute, group)]
    if not asked and not averages:
        tables = [found.marginal(attribute)]
    if len(asked) == TWO_GROUPS:
        tables.append(found.compare(attribute, *asked))
    if as_json:
        print_json(
            {
                "plan": made.id,
                "level": level,
                "tables": [table.to_json(level) for table in tables],
                "averages": [each.to_json(level) for each in averages],
            }
        )
        return
    titles = [None] * len(tables) if not asked else [*map(_group_title, asked), "difference"]
    _print_tables(tables, titles, level)
    if averages:
        from sottovoce.console.tables import console

        console().print(_averages_table(averages, level))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InvalidInput(f"level ({level}) must lie between 0 and 1")


def _asked_groups(made: Plan, texts: Sequence[str], by: str | None) -> list[Group]:
    """The groups that were typed, or one for each value of an attribute."""
    from sottovoce.analysis.sums import group_in

    if by is None:
        return [group_in(made.schema, text) for text in texts]
    if texts:
        raise InvalidInput("groups: give --group or --by, not both")
    if by not in made.schema:
        raise InvalidInput(f"by: attribute {by!r} is not in the schema")
    return [{by: label} for label in made.schema[by].labels()]


def _group_title(group: Group) -> str:
    from sottovoce.results.groups import written_group

    return f"among {written_group(group)}"


def _print_tables(tables: Sequence[Table], titles: Sequence[str | None], level: float) -> None:
    """Tables for a person's eyes, under titles of their own where they have one."""
    from rich.markup import escape

    from sottovoce.console.tables import console, estimate_table

    screen = console()
    for table, title in zip(tables, titles, strict=False):
        shown = estimate_table(table, level)
        if title is not None:
            shown.title = escape(visible(f"{', '.join(table.attributes)}, {title}"))
        screen.print(shown)


def _averages_table(averages: Sequence[Average], level: float) -> RichTable:
    """Means and medians with their intervals."""
    from rich.markup import escape

    from sottovoce.console.tables import grid
    from sottovoce.results.averages import span_text

    heads = ["average", "of", "value", "std error", f"{100 * level:.4g}% interval", "if even"]
    out = grid(visible(averages[0].attribute), heads, words=heads[:2])
    for each in averages:
        out.add_row(
            each.kind,
            escape(visible(each.of)),
            f"{each.value:.4g}",
            f"{'at most ' if each.is_bound else ''}{each.std_error:.3g}",
            span_text(each.interval(level)),
            span_text(each.interval(level, evenly=True)) if each.is_binned else "",
        )
    if any(each.is_binned for each in averages):
        out.caption = (
            "the interval holds wherever in their bins people are; if even: if they are spread "
            "evenly inside"
        )
    return out


@app.command()
def change(
    plan_file: PlanFile,
    before: Annotated[str, typer.Argument(metavar="before", help="What the first wave sent.")],
    after: Annotated[str, typer.Argument(metavar="after", help="What the second wave sent.")],
    after_plan: Annotated[
        Path | None,
        typer.Option(metavar="plan.json", help="Of the second wave, if it has another plan."),
    ] = None,
    marginal: Annotated[
        list[str] | None,
        typer.Option(metavar="a,b", help="The table of these attributes; may be given again."),
    ] = None,
    same_people: Annotated[
        bool,
        typer.Option(
            "--same-people",
            help="The same people answered both: no sampling error. By default they are samples.",
        ),
    ] = False,
    as_json: Json = False,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Say what changed between two waves of a survey, with its error.

    Intervals are about the people whom both waves stand for, as samples. Both waves' coins must be
    independent: other people, or another plan. In one plan, a device that remembers sends its first
    report again, and the change is not seen.

    Example:  sottovoce change plan.json spring.parquet autumn.parquet --after-plan autumn.json
              --marginal drinks
    """
    from sottovoce.console.reading import heard
    from sottovoce.console.surveys import read_plan

    _check_level(level)
    made = read_plan(plan_file, plan_id)
    later = made if after_plan is None else read_plan(after_plan)
    is_same = later.id == made.id
    population = not same_people
    if is_same and before == after:
        raise InvalidInput("change: before and after are the same reports")
    if is_same and same_people:
        raise InvalidInput(f"change: same-people needs --after-plan. {REMEMBERED}")
    first = heard(made, before, quiet).estimate()
    second = heard(later, after, quiet).estimate()
    names = [tuple(listed(each)) for each in marginal or []]
    asked = names or _asked_in_both(first, second)
    tables = [second.change_since(first, *each) for each in asked]
    if as_json:
        told: dict[str, Any] = {"before": made.id, "after": later.id, "level": level}
        rows = [
            table.to_json(level) | {"rows": table.rows(level, population=population)}
            for table in tables
        ]
        print_json(told | {"is_same_plan": is_same, "population": population, "tables": rows})
        return
    _print_changes(tables, level, population)
    if is_same:
        typer.echo(SAME_PLAN)


def _asked_in_both(first: Estimate, second: Estimate) -> list[tuple[str, ...]]:
    """The tables of which both waves say something; all if there is none, which is refused."""
    left_out = [
        names
        for names in first.tables
        if first.marginal(*names).unasked or second.marginal(*names).unasked
    ]
    if len(left_out) == len(first.tables):
        return list(first.tables)
    for names in left_out:
        typer.echo(f"Left out, as not asked in both: {visible(', '.join(names))}", err=True)
    return [names for names in first.tables if names not in left_out]


def _print_changes(tables: Sequence[Table], level: float, population: bool) -> None:
    """Changes for a person's eyes."""
    from rich.markup import escape

    from sottovoce.console.tables import console, estimate_table

    screen = console()
    for table in tables:
        shown = estimate_table(table, level, population=population)
        shown.title = escape(visible(f"{', '.join(table.attributes)}: what changed"))
        screen.print(shown)
