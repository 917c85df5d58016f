"""The commands. Each reads its arguments, calls the library and prints; the library does the work."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce import __version__
from sottovoce.errors import InvalidInput
from sottovoce.files import replacing

if TYPE_CHECKING:
    from sottovoce.estimate import Estimate
    from sottovoce.front import Plan
    from sottovoce.guarantee import Guarantee
    from sottovoce.oracles import Oracle

AUDIT_FAILED = 1

app = typer.Typer(
    name="sottovoce",
    help="Learn what a crowd does without ever receiving anybody's true answer.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
compare_app = typer.Typer(
    help="""Method against method: measured error beside theory.

    Example:  sottovoce compare oracles --size 64 --epsilon 0.5,1 --people 100000 --runs 10
    """,
    rich_markup_mode=None,
)
app.add_typer(compare_app, name="compare")

PlanFile = Annotated[Path, typer.Argument(metavar="plan.json", help="The plan, as `sottovoce plan` wrote it.")]
PlanId = Annotated[str | None, typer.Option("--id", metavar="HEX", help="Refuse the plan unless this is its id.")]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Size = Annotated[int, typer.Option("--size", help="How many values there are.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sottovoce {__version__}")
        raise typer.Exit


@app.callback(
    epilog="""\b
    Examples:
      sottovoce demo
      sottovoce plan survey.toml -o plan.json
      sottovoce whisper plan.json people.csv -o reports.parquet
      sottovoce estimate plan.json reports.parquet --plot estimate.svg
      sottovoce audit plan.json
      sottovoce oracles --size 64 --epsilon 1
      sottovoce compare oracles --size 64 --epsilon 0.5,1 --people 100000 --runs 10
    """
)
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def plan(
    survey: Annotated[Path, typer.Argument(metavar="survey.toml", help="The survey.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where the plan goes.")] = None,
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
    """
    from sottovoce.cli.survey import read_survey

    made = read_survey(survey)
    if output is not None:
        write_plan(made, output)
    if as_json:
        _print_json(describe(made))
        return
    typer.echo(str(made))
    typer.echo(f"Id: {made.id}")
    if output is not None:
        typer.echo(f"Written: {output}")


def write_plan(made: Plan, output: Path) -> None:
    """The plan's own bytes, whole or not there."""
    with replacing(output) as draft:
        draft.write_bytes(made.to_json().encode())


def describe(made: Plan) -> dict[str, Any]:
    """A plan's figures as JSON."""
    from sottovoce.cli.survey import asks

    return {
        "id": made.id,
        "guarantee": _guarantee(made.guarantee),
        "epsilon": float(made.epsilon),
        "people": made.people,
        "cohorts": len(made.cohorts),
        "asks": [
            {
                "attributes": list(ask.encoding.attributes),
                "oracle": ask.oracle.names[0],
                "size": ask.oracle.size,
                "people": people,
                "epsilon": ask.oracle.epsilon,
                "bits": ask.oracle.bits,
                "std_error": _predicted_error(ask.oracle, people),
            }
            for people, ask in asks(made)
        ],
    }


def _guarantee(guarantee: Guarantee) -> dict[str, float]:
    return {"per_report": guarantee.per_report, "lifetime": guarantee.lifetime}


def _predicted_error(oracle: Oracle, people: int) -> float | None:
    try:
        return float(oracle.std_error(people))
    except InvalidInput:  # of an open alphabet: it depends on the candidates
        return None


@app.command()
def whisper(
    plan_file: PlanFile,
    people: Annotated[Path, typer.Argument(metavar="people.csv", help="One row per person; CSV or Parquet.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the reports go (Parquet).")],
    seed: Annotated[
        int | None, typer.Option(min=0, help="Simulate, reproducibly. Never for real people's reports.")
    ] = None,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Let everybody in a file whisper.

    Each row becomes the report of one device. Without --seed every report draws its coins from the operating
    system's entropy.

    Example:  sottovoce whisper plan.json people.csv -o reports.parquet
    """
    from sottovoce.cli.survey import read_plan

    count = write_whispers(read_plan(plan_file, plan_id), people, output, seed, quiet)
    typer.echo(f"{count:,} reports written to {output}")


def write_whispers(made: Plan, people: Path, output: Path, seed: int | None, quiet: bool) -> int:
    """Everybody's report into one Parquet file, whole or not there; returns how many."""
    from sottovoce.cli.people import row_count, whispers
    from sottovoce.cli.progress import progress
    from sottovoce.reports import write_stream

    with progress("whispering", row_count(people), quiet) as advance:
        return write_stream(output, whispers(made, people, seed, advance))


@app.command()
def estimate(
    plan_file: PlanFile,
    reports: Annotated[Path, typer.Argument(metavar="reports.parquet", help="What the devices sent.")],
    postprocess: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Repair the estimate, such as norm-sub.")
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The values to look for, one a line (open alphabets).")
    ] = None,
    decoder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of rappor, o-rr and o-rappor: least-squares, nnls or lasso.")
    ] = None,
    as_json: Json = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it: .svg, .png, .html or .json.")] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Say what the crowd said, with standard errors and intervals.

    Example:  sottovoce estimate plan.json reports.parquet --postprocess norm-sub --plot estimate.svg
    """
    from sottovoce.cli.survey import read_plan

    if not 0 < level < 1:
        raise InvalidInput(f"level ({level}) must lie between 0 and 1")
    made = read_plan(plan_file, plan_id)
    words = None if candidates is None else _candidates(made, candidates)
    wanted = {"candidates": words, "decoder": decoder}
    found = listen(made, reports, quiet, **{key: value for key, value in wanted.items() if value is not None})
    if postprocess is not None:
        from sottovoce.postprocessing import postprocess as repair

        found = repair(found, postprocess)
    if plot is not None:
        _draw(found, plot)
    if as_json:
        _print_json(_estimate_json(made, found, level))
        return
    from sottovoce.cli.tables import console, estimate_table

    screen = console()
    for table in found.tables.values():
        screen.print(estimate_table(table, level))
    if plot is not None:
        typer.echo(f"Drawn: {plot}")


def listen(made: Plan, reports: Path, quiet: bool, **options: Any) -> Estimate:
    """The estimate from a file of reports, read in constant memory."""
    from sottovoce.aggregate import Aggregate
    from sottovoce.cli.people import row_count
    from sottovoce.cli.progress import progress
    from sottovoce.reports import stream

    heard = Aggregate(made)
    with progress("listening", row_count(reports), quiet) as advance:
        for batch in stream(reports):
            heard.add(batch)
            advance(heard.people)
    return heard.estimate(**options)


def _candidates(made: Plan, path: Path) -> dict[str, list[str]]:
    """The words of a file, for the open attributes of a plan, or for all if none is open."""
    try:
        lines = [line.rstrip("\r") for line in path.read_text(encoding="utf-8-sig").split("\n")]
    except UnicodeDecodeError:
        raise InvalidInput(f"candidates ({path}): the file is not UTF-8") from None
    words = list(dict.fromkeys(line for line in lines if line))
    if not words:
        raise InvalidInput(f"candidates ({path}): there must be at least one, each on its own line")
    asked = made.cohorts.attributes
    open_ones = [name for name in asked if made.schema[name].is_open]
    return dict.fromkeys(open_ones or asked, words)


def _draw(found: Estimate, plot: Path) -> None:
    import altair as alt

    from sottovoce.plots import save

    charts = [table.plot() for table in found.tables.values()]
    save(charts[0] if len(charts) == 1 else alt.vconcat(*charts), str(plot))


def _estimate_json(made: Plan, found: Estimate, level: float) -> dict[str, Any]:
    return {
        "plan": made.id,
        "guarantee": _guarantee(made.guarantee),
        "level": level,
        "tables": [
            {
                "attributes": list(table.attributes),
                "people": table.people,
                "method": table.method,
                "is_unbiased": table.is_unbiased,
                "rows": table.rows(level),
            }
            for table in found.tables.values()
        ],
    }


@app.command()
def audit(
    plan_file: Annotated[Path | None, typer.Argument(metavar="[plan.json]", help="Audit every ask of a plan.")] = None,
    oracle: Annotated[str | None, typer.Option(metavar="NAME", help="Or audit one oracle.")] = None,
    size: Annotated[int | None, typer.Option(help="Its number of values.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Its epsilon.")] = None,
    draws: Annotated[int | None, typer.Option(min=1, help="Draws of an audit by sampling.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prove that oracles are as private as they say.

    The exit code is 1 if one is not. Outputs that can be listed are all listed, with their exact chances. Where
    there are too many, draws give a lower bound on epsilon.

    Example:  sottovoce audit plan.json

    Example:  sottovoce audit --oracle olh --size 8 --epsilon 1
    """
    from sottovoce import audit as auditing
    from sottovoce.cli.progress import progress

    total = auditing.DRAWS if draws is None else draws
    results = []
    for attributes, suspect in _suspects(plan_file, oracle, size, epsilon):
        with progress(f"auditing {suspect.names[0]}", total, quiet) as advance:
            results.append((attributes, suspect.size, auditing.audit(suspect, draws=total, progress=advance)))
    passed = all(result.passed for *_, result in results)
    if as_json:
        rows = [{"attributes": names, "size": count, **result.to_json()} for names, count, result in results]
        _print_json({"passed": passed, "audits": rows})
    else:
        for attributes, _, result in results:
            typer.echo(f"{', '.join(attributes)}: {result}" if attributes else str(result))
    if not passed:
        raise typer.Exit(AUDIT_FAILED)


def _suspects(
    plan_file: Path | None, oracle: str | None, size: int | None, epsilon: str | None
) -> list[tuple[tuple[str, ...], Oracle]]:
    """(attributes, oracle) for all that an audit was asked to judge; no attributes for an oracle by itself."""
    from sottovoce.cli.survey import asks, read_plan
    from sottovoce.oracles import oracle as build

    if plan_file is not None:
        if (oracle, size, epsilon) != (None, None, None):
            raise InvalidInput("audit: give a plan, or --oracle, --size and --epsilon, not both")
        return [(ask.encoding.attributes, ask.oracle) for _, ask in asks(read_plan(plan_file))]
    if oracle is None or size is None or epsilon is None:
        raise InvalidInput("audit: give a plan, or all of --oracle, --size and --epsilon")
    return [((), build(oracle, size=size, epsilon=epsilon))]


@app.command()
def oracles(
    size: Size,
    epsilon: Annotated[str, typer.Option(help="The privacy budget.")],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the frequency oracles for your numbers.

    The thesis's tables 3.1 and 3.2 beside what the integer coins realise, the recommended oracle marked.

    Example:  sottovoce oracles --size 64 --epsilon 1
    """
    from sottovoce.cli.progress import progress
    from sottovoce.compare import figures, fitting

    with progress("computing", len(fitting(size)), quiet) as advance:
        rows = figures(size, epsilon, advance)
    if as_json:
        _print_json([row.to_json() for row in rows])
        return
    from sottovoce.cli.tables import console, figures_table

    console().print(figures_table(rows, size, epsilon))


@compare_app.command("oracles")
def compare_oracles(
    size: Size,
    epsilon: Annotated[str, typer.Option(metavar="E,E", help="One or more epsilons.")],
    people: Annotated[int, typer.Option(help="In each run.")],
    runs: Annotated[int, typer.Option(help="Each with its own seed and salt.")],
    names: Annotated[
        str | None, typer.Option("--oracles", metavar="a,b", help="Some; by default all that fit.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure each oracle's error on a Zipf(1.1) crowd.

    Prints it beside theory, with seconds and bytes per report.

    Example:  sottovoce compare oracles --size 64 --epsilon 0.5,1 --people 100000 --runs 10 --oracles grr,olh
    """
    from sottovoce import compare
    from sottovoce.cli.progress import progress

    chosen = _listed(names) if names else None
    epsilons = _listed(epsilon)
    total = runs * len(epsilons) * len(chosen or compare.fitting(size))
    with progress("comparing", total, quiet) as advance:
        rows = list(compare.compare_oracles(chosen, size, epsilons, people, runs, seed, advance))
    if as_json:
        _print_json([row.to_json() for row in rows])
        return
    from sottovoce.cli.tables import comparison_table, console

    console().print(comparison_table(rows))


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to fill.")] = Path("out/demo"),
    seed: Annotated[
        int | None, typer.Option(min=0, help="Simulate the coins, reproducibly; by default they are real.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run a whole private survey among made-up people.

    It leaves the survey, plan, people, reports and a page of plots in the folder, the truth beside the estimates.

    Example:  sottovoce demo --output out/demo
    """
    from sottovoce.cli.demo import run_demo

    run_demo(output, seed, quiet)


def _print_json(data: Any) -> None:
    """One JSON document; a list has one row a line. What is not a number in JSON is null."""
    if isinstance(data, list):
        lines = ",\n".join(" " + _json(row) for row in data)
        typer.echo(f"[\n{lines}\n]")
    else:
        typer.echo(_json(data))


def _json(data: Any) -> str:
    return json.dumps(_finite(data), ensure_ascii=False, allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
