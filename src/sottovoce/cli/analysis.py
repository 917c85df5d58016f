"""The commands that use marginals: tests of independence, dependency trees, synthetic records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from sottovoce.console.screen import say
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.analysis import Association

RECORDS = (".csv", ".parquet", ".pq")


def hear(plan_file: Path, plan_id: str | None, reports: str, quiet: bool) -> Aggregate:
    """The aggregate of the reports for a plan of marginals."""
    from sottovoce.console.reading import heard
    from sottovoce.console.surveys import read_plan

    made = read_plan(plan_file, plan_id)
    if not made.question.is_joint:
        raise InvalidInput(
            f"plan ({plan_file}): its question must be marginals, not {made.question.kind}"
        )
    return heard(made, reports, quiet)


@app.command()
def associate(
    plan_file: PlanFile,
    reports: ReportsSource,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            metavar="a,b", help="Two attributes; may be given again. By default all pairs."
        ),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option(
            metavar="LAW", help="asymptotic, simulation or naive; by default what the method needs."
        ),
    ] = None,
    replicates: Annotated[
        int, typer.Option(help="Collections that are simulated for one null law.")
    ] = 99,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation.")] = 1,
    as_json: Json = False,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Test which attributes go together, the privacy noise allowed for.

    A small p says that two attributes are not independent; `adjusted` allows for testing many pairs
    at once. V is the strength, 0 to 1; its interval is above 0 exactly if p is at most 0.05.

    Example:  sottovoce associate plan.json reports.parquet --pair smoker,age
    """
    from sottovoce import analysis
    from sottovoce.console.progress import progress

    pairs = None if pair is None else [listed(each) for each in pair]
    heard = hear(plan_file, plan_id, reports, quiet)
    with progress("simulating", None, quiet) as advance:
        found = analysis.associate(
            heard, pairs, null=null, replicates=replicates, seed=seed, progress=advance
        )
    if as_json:
        print_json([each.to_json() for each in found])
        return
    for line in _lines(found):
        say(line)


def _lines(found: Sequence[Association]) -> list[str]:
    """Rows for a person's eyes, the clearest first."""
    names = [" - ".join(each.attributes) for each in found]
    width = max(len("attributes"), *map(len, names))
    lines = [
        f"{'attributes':<{width}}  {'V':>7} {'95% interval':>16} {'statistic':>10} {'degrees':>8} "
        f"{'p':>10} {'adjusted':>10}"
    ]
    rows = list(zip(names, found, strict=True))
    tested = [row for row in rows if row[1].is_asked]
    for name, each in sorted(tested, key=lambda row: (row[1].p_value, -row[1].statistic)):
        lines.append(
            f"{name:<{width}}  {each.strength:>7} {each.span:>16} {each.statistic:>10.2f} "
            f"{each.degrees:>8} {each.p_value:>10.3g} {each.adjusted:>10.3g}  {each.mark}".rstrip()
        )
    lines += [f"{name:<{width}}  never asked together" for name, each in rows if not each.is_asked]
    if not tested:
        return lines
    law = tested[0][1].method
    warning = ": takes the noise for association, do not rely on it" if law == "naive" else ""
    return [*lines, f"{found[0].people:,} people; null law: {law}{warning}"]


@app.command()
def tree(
    plan_file: PlanFile,
    reports: ReportsSource,
    root: Annotated[
        str | None, typer.Option(metavar="NAME", help="By default the attribute that tells most.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: .svg, .png, .html or .json.")
    ] = None,
    as_json: Json = False,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Draw the tree of attributes that tell most about each other.

    Figures are mutual informations in nats, less what noise alone would seem to tell, with 95%
    intervals. An edge may be noise if the test of `associate` does not reject, all pairs allowed
    for.

    Example:  sottovoce tree plan.json reports.parquet --plot tree.svg
    """
    from sottovoce import analysis

    found = analysis.dependency_tree(hear(plan_file, plan_id, reports, quiet), root)
    if plot is not None:
        found.plot(str(plot))
    if as_json:
        print_json(found.to_json())
        return
    say(found)
    if plot is not None:
        typer.echo(f"Drawn: {plot}")


@app.command()
def synthesize(
    plan_file: PlanFile,
    reports: ReportsSource,
    people: Annotated[int, typer.Option(help="How many to make up.")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same people.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where they go: .csv or .parquet.")
    ],
    attributes: Annotated[
        str | None, typer.Option(metavar="a,b,c", help="Some; by default all of the plan.")
    ] = None,
    as_json: Json = False,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Make up people whose tables are those of the crowd.

    It costs no privacy: only the estimate is read.

    Example:  sottovoce synthesize plan.json reports.parquet --people 10000 --seed 1 -o people.csv
    """
    from sottovoce import analysis
    from sottovoce.analysis.pairs import estimate_of
    from sottovoce.ground.files import replacing, write_csv
    from sottovoce.questions.marginals.coverage import named

    if output.suffix.lower() not in RECORDS:
        raise InvalidInput(f"output ({output}) must end in one of {', '.join(RECORDS)}")
    chosen = None if attributes is None else listed(attributes)
    estimate = estimate_of(hear(plan_file, plan_id, reports, quiet))
    made = analysis.synthesize(estimate, people, seed, chosen)
    with replacing(output) as draft:
        if output.suffix.lower() == ".csv":
            with draft.open("w", encoding="utf-8", newline="") as file:
                write_csv(file, [made.columns, *made.itertuples(index=False)])
        else:
            made.to_parquet(draft, index=False)
    unasked = made.attrs["never_asked"]
    if as_json:
        told = {"people": len(made), "attributes": list(made.columns), "output": str(output)}
        print_json(told | {"never_asked": [list(part) for part in unasked]})
        return
    typer.echo(f"{len(made):,} synthetic people written to {output}")
    if unasked:
        parts = [estimate.work.places(part) for part in unasked]
        typer.echo(
            visible(f"Note: never asked, so drawn as if independent: {named(estimate.work, parts)}")
        )
