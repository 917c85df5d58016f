"""The commands. Each reads its arguments, calls the library, which does the work, and prints."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce import __version__
from sottovoce.cli.engines import EngineName, Master
from sottovoce.cli.examples import EXAMPLES
from sottovoce.cli.listing import listing
from sottovoce.console.reading import LOCAL_ENGINE
from sottovoce.console.screen import say, says_all
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import json_visible

if TYPE_CHECKING:
    from sottovoce.oracles import Oracle
    from sottovoce.protocol.plan import Plan

AUDIT_FAILED = 1

app = typer.Typer(
    name="sottovoce",
    help="Learn what a crowd does without ever receiving anybody's true answer.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
compare_app = typer.Typer(
    help="""Method against method: measured error beside theory.

    Example:  sottovoce compare oracles --size 64 --epsilon 0.5,1 --people 100000 --runs 10

    Example:  sottovoce compare marginals table.csv --k 3 --epsilon 0.5,1 --methods auto,calm

    Example:  sottovoce compare heavyhitters words.csv --value word --bytes 6 --top 32
    --epsilon 2 --methods windows,pem

    Example:  sottovoce compare itemsets baskets.parquet --column items --top 64 --epsilon 2
    --methods svim,ldpminer

    Example:  sottovoce compare releases table.csv --methods dp-marginals,auto --epsilon 0.5,1
    """,
    rich_markup_mode=None,
)
app.add_typer(compare_app, name="compare")

PlanFile = Annotated[
    Path, typer.Argument(metavar="plan.json", help="The plan, as `sottovoce plan` wrote it.")
]
ReportsSource = Annotated[
    str,
    typer.Argument(
        metavar="reports.parquet",
        help="What the devices sent: Parquet, a folder or URL of it, a total, or a store.",
    ),
]
PlanId = Annotated[
    str | None, typer.Option("--id", metavar="HEX", help="Refuse the plan unless this is its id.")
]
SeriesFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keeps every row's round, for plans of several rounds."),
]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Rake = Annotated[
    Path | None, typer.Option(metavar="TOML", help="Weights: shares of public columns that hold.")
]
Size = Annotated[int, typer.Option("--size", help="How many values there are.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sottovoce {__version__}")
        raise typer.Exit


@app.callback(epilog=EXAMPLES)
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def plan(
    survey: Annotated[Path, typer.Argument(metavar="survey.toml", help="The survey.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the plan goes.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Freeze a survey into a plan that everybody can read.

    Example:  sottovoce plan survey.toml -o plan.json

    \b
    A survey.toml:
      epsilon = 1.0
      people = 200000
      [schema.age]
      kind = "ordinal"
      low = 18
      high = 97
      bins = 16
      [question]
      kind = "frequencies"
      attributes = ["age"]

    With trust = "shuffled" and delta = "1e-9" others mix the reports, and people hide in the crowd.

    Or, for tables of any two attributes, kind = "marginals" and up_to = 2; the ranking of methods
    is then printed too. `sottovoce methods` lists all questions, methods and their options.
    """
    from sottovoce.console.surveys import planner_ranking, ranking_json, read_parts

    asked = read_parts(survey)
    made = asked.plan()
    if output is not None:
        from sottovoce.console.writing import write_plan

        write_plan(made, output, asked.texts)
    ranks = planner_ranking(made)
    if as_json:
        print_json(describe(made) | ranking_json(made, ranks))
        return
    say(made)
    if ranks:
        from sottovoce.console.tables import console, ranking_table

        console().print(ranking_table(ranks, made.question.ranked))
    typer.echo(f"Id: {made.id}")
    if output is not None:
        from sottovoce.console.writing import texts_file

        texts = f", and what it says to people: {texts_file(output)}" if asked.texts else ""
        typer.echo(f"Written: {output}{texts}")


def describe(made: Plan) -> dict[str, Any]:
    """A plan's figures as JSON."""
    from sottovoce.cli.answers import guarantee_json
    from sottovoce.console.surveys import asks
    from sottovoce.questions.base import predicted

    return {
        "id": made.id,
        "guarantee": guarantee_json(made.guarantee),
        "epsilon": float(made.epsilon),
        "people": made.people,
        "cohorts": len(made.cohorts),
        "family": made.cohorts.kind,  # unless it is listed, the asks below stand for all
        "predicted": [figure.to_json() for figure in predicted(made).figures],
        "asks": [
            {
                "attributes": list(ask.encoding.attributes),
                "oracle": ask.oracle.names[0],
                "size": ask.oracle.size,
                "people": people,
                "epsilon": ask.guarantee.per_report,
                "bits": ask.oracle.bits,
                "std_error": _predicted_error(ask.oracle, people),
            }
            for people, ask in asks(made)
        ],
    }


def _predicted_error(oracle: Oracle, people: int) -> float | None:
    try:
        return float(oracle.std_error(people))
    except InvalidInput:  # of an open alphabet: it depends on the candidates
        return None


@app.command(cls=listing("post-processing", "decoder"))
def estimate(
    plan_file: PlanFile,
    reports: ReportsSource,
    postprocess: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Repair the estimate, such as norm-sub.")
    ] = None,
    marginal: Annotated[
        list[str] | None,
        typer.Option(metavar="a,b", help="The table of these attributes; may be given again."),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="All tables of so many attributes.")
    ] = None,
    sums: Annotated[
        list[str] | None,
        typer.Option("--sum", metavar="a:v,w", help="Their sum, or a range's: age:18..37."),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The values to look for, one a line (open alphabets)."),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Of rappor, o-rr and o-rappor: least-squares, nnls or lasso."
        ),
    ] = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Of the same: all hold a candidate.")
    ] = False,
    tree: Annotated[
        bool,
        typer.Option(
            "--tree", help="Of popular values: the prefixes on the way, printed or drawn."
        ),
    ] = False,
    following: Annotated[
        Path | None,
        typer.Option(
            "--next", metavar="FILE", help="Write the plan of the next round, if there is one."
        ),
    ] = None,
    as_json: Json = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: .svg, .png, .html or .json.")
    ] = None,
    rake: Rake = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Tables as CSV: a file .csv for one, a new folder."),
    ] = None,
    xlsx: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tables as Excel, a sheet for each.")
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Say what the crowd said, with standard errors and intervals.

    Example:  sottovoce estimate plan.json reports.parquet --postprocess norm-sub --plot
              estimate.svg

    Example:  sottovoce estimate plan.json reports.parquet --marginal smoker,age --marginal smoker

    Example:  sottovoce estimate plan.json sqlite:///survey.db --sum age:18..37

    Example:  sottovoce estimate plan.json s3://bucket/reports --engine sc://host

    Example:  sottovoce estimate plan.json reports.parquet --k 2 --xlsx tables.xlsx --csv tables

    Example:  sottovoce estimate plan.json reports.parquet --tree --next next.json
    # popular values, in rounds
    """
    from sottovoce.cli import answers
    from sottovoce.console.surveys import read_plan, read_texts
    from sottovoce.engine import open_engine

    if not 0 < level < 1:
        raise InvalidInput(f"level ({level}) must lie between 0 and 1")
    files = answers.TableFiles(csv, xlsx)
    files.check()
    made = read_plan(plan_file, plan_id)
    words = None if candidates is None else answers.candidates(made, candidates)
    options = {"candidates": words, "decoder": decoder, "complete": complete}
    with open_engine(engine, master) as workers:
        found = answers.estimated(made, reports, rake, quiet, {"engine": workers}, **options)
        if found.is_part:
            refused = {"postprocess": postprocess, "marginal": marginal, "k": k}
            refused |= {"sum": sums, "decoder": decoder}
            how: dict[str, Any] = {"plot": plot, "with_tree": tree, "files": files}
            how |= {"following": following, "texts": read_texts(plan_file, made)}
            answers.popular(made, found, level=level, as_json=as_json, refused=refused, **how)
            return
        if tree or following is not None:
            raise InvalidInput("tree and next are for plans that ask for popular values")
        tables = answers.asked_tables(found, marginal or [], k)
        answers.whole_tables(
            made,
            found,
            tables,
            sums or [],
            repair=postprocess or "base",
            level=level,
            as_json=as_json,
            plot=plot,
            files=files,
        )


@app.command()
def audit(
    plan_file: Annotated[
        Path | None, typer.Argument(metavar="[plan.json]", help="Audit a plan's reports.")
    ] = None,
    oracle: Annotated[str | None, typer.Option(metavar="NAME", help="Or audit one oracle.")] = None,
    size: Annotated[int | None, typer.Option(help="Its number of values.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Its epsilon.")] = None,
    draws: Annotated[int | None, typer.Option(min=1, help="Draws of an audit by sampling.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prove that a plan, or an oracle, is as private as it says.

    The exit code is 1 if it is not. A plan's devices are run along every way that their coins can
    fall, record by record: cohort, encoding, all asks together, with exact chances. Public hashes
    that are too many are sampled, and so are whole reports where they are too many to list; then
    each oracle is audited by itself, too.

    Example:  sottovoce audit plan.json

    Example:  sottovoce audit --oracle olh --size 8 --epsilon 1
    """
    from sottovoce import audit as auditing
    from sottovoce.console.progress import progress
    from sottovoce.console.surveys import audited_plan, suspects

    plan, suspect = audited_plan(plan_file, oracle, size, epsilon)
    total = auditing.AUDIT_DRAWS if draws is None else draws
    whole = None
    if plan is not None:
        tell = None if quiet else lambda line: typer.echo(f"audit: {line}", err=True)
        with progress("auditing reports", None, quiet) as advance:
            whole = auditing.audit_plan(plan, draws=total, progress=advance, say=tell)
    listed = [suspect] if suspect is not None else []
    if plan is not None and whole is not None and whole.enumeration is None:
        listed = suspects(plan)
    results = []
    for each in listed:
        with progress(f"auditing {each.oracle.names[0]}", total, quiet) as advance:
            results.append((each, auditing.audit(each.oracle, draws=total, progress=advance)))
    passed = all(result.passed for _, result in results) and (whole is None or whole.passed)
    if as_json:
        found = {"audits": [each.to_json() | result.to_json() for each, result in results]}
        print_json(
            {"passed": passed, **({} if whole is None else {"plan": whole.to_json()}), **found}
        )
    else:
        if whole is not None:
            say(whole)
        for each, result in results:
            say(f"{each}{result}")
    if not passed:
        raise typer.Exit(AUDIT_FAILED)


def listed(text: str) -> list[str]:
    """The parts of a,b,c."""
    return [part.strip() for part in text.split(",")]


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to fill.")] = Path(
        "out/demo"
    ),
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Simulate the coins, reproducibly; by default they are real."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run a whole private survey among made-up people.

    The planner's choice, tables with intervals beside the truth, the dependency tree, what is
    popular, three methods measured, and a collector to which 20,000 people post. It leaves the
    survey, plan, people, reports, store, release, picture and page in the folder. In a terminal the
    collector stays, with the studio, until Ctrl-C.

    Example:  sottovoce demo --output out/demo
    """
    from sottovoce.demo.survey import run_demo

    run_demo(output, seed, quiet)


def print_json(data: Any) -> None:
    """One JSON document; a list has one row a line. What is not a number in JSON is null."""
    if isinstance(data, list):
        lines = ",\n".join(" " + _json(row) for row in data)
        typer.echo(f"[\n{lines}\n]")
    else:
        typer.echo(_json(data))


def _json(data: Any) -> str:
    # escapes where standard output lacks signs: what is read from it is the same
    is_ascii = not says_all(sys.stdout.encoding)
    return json_visible(json.dumps(_finite(data), ensure_ascii=is_ascii, allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
