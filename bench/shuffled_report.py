"""What ``bench.shuffled_plans`` measured, as a section of docs/shuffle.md with a picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

SECTION = "shuffled plans"
PICTURE = "shuffle-errors.svg"
THESIS = "solh, thesis"
ORDER = ("auto", "auto, head", "auto, cap 8", "olh-seeded, head", THESIS)
TITLES = {
    "kosarak": "Kosarak's shape, 1,000,000 people, 42,178 values",
    "ipums": "IPUMS's shape, 602,325 people, 915 values, Zipf(1.1)",
}
Line = Mapping[str, Any]


def report(lines: Sequence[Line]) -> str:
    """The section in Markdown."""
    text = [
        "Squared errors of whole simulated surveys, from a plan with `least=people` and `cap=12` "
        "to its estimate, at delta 1e-9.",
        "`python -m bench.shuffled_plans --out FILE`, and with `--report FILE`, prints all of it.",
        "",
        *_frequencies(lines),
        *_marginals(lines),
        *_words(lines),
        *_formulas(lines),
    ]
    return "\n".join(text)


def _by(lines: Sequence[Line], groups: Sequence[str], source: str) -> dict[Any, list[Line]]:
    """Lines of a source, by epsilon and method."""
    found: dict[Any, list[Line]] = defaultdict(list)
    for line in lines:
        if line["group"] in groups and line["source"] == source:
            found[line["epsilon"], line["method"]].append(line)
    return found


def _mean(lines: Sequence[Line], name: str) -> float:
    return float(np.mean([line[name] for line in lines]))


def _frequencies(lines: Sequence[Line]) -> list[str]:
    text = [
        "### Frequencies",
        "",
        "Kosarak's people hold sets, and the thesis takes one item of each.",
        "Not all of Kosarak is at hand: one item is drawn from each of the 69,999 sessions of its "
        "beginning, and a million people are drawn from these with replacement, among 42,178 "
        "values.",
        "IPUMS is not at hand; a Zipf law over as many values stands in, with as many people "
        "(figure 9.3 in kind).",
        "`cap=12` is there so that the cap does not decide; `cap 8` is what plans have by default, "
        "and costs most where the analyst's epsilon is large.",
        '`auto` is `sv.Frequencies(...)`, `head` has `focus="head"`, and the thesis\'s is '
        '`oracle="solh", thesis=True`, whose error on Kosarak\'s shape is that of the ten largest '
        "values and 2,048 others drawn at random.",
        "Hash sizes of `olh` are powers of two up to 2^13 (the table tells the power), those of "
        "`olh-field` any numbers.",
        '"Largest ten" is the root of their mean squared error; "local" is the epsilon of a report '
        "by itself, which is where the gain comes from.",
        "",
    ]
    heads = [
        "eps_c",
        "method",
        "local",
        "asked by",
        "squared error",
        "times less",
        "largest ten",
        "runs",
    ]
    for source, title in TITLES.items():
        found = _by(lines, (source,), source)
        if not found:
            continue
        text += [
            f"{title}:",
            "",
            f"| {' | '.join(heads)} |",
            "| --- " * len(heads) + "|",
        ]
        for epsilon, method in sorted(found, key=_place):
            own = found[epsilon, method]
            thesis = found.get((epsilon, THESIS))
            times = f"{_mean(thesis, 'mse') / _mean(own, 'mse'):.1f}" if thesis else ""
            first = own[0]
            options = "".join(f" {value}" for value in first["options"].values())
            cells = [
                epsilon,
                method,
                f"{first['local']:g}",
                f"{first['oracle']}{options}",
                f"{_mean(own, 'mse'):.3g}",
                times,
                f"{sqrt(_mean(own, 'head_mse')):.2g}",
                str(len(own)),
            ]
            text.append(f"| {' | '.join(cells)} |")
        text += ["", *_least(found)]
    return text


def _place(point: tuple[str, str]) -> tuple[float, int]:
    """Where a row stands: by epsilon, then by method."""
    return float(point[0]), ORDER.index(point[1])


def _least(found: Mapping[Any, Sequence[Line]]) -> list[str]:
    """By how much ours err less at least, in a sentence each."""
    told = []
    epsilons = {epsilon for epsilon, _ in found}
    for method in ORDER[:2]:
        times = {
            epsilon: _mean(found[epsilon, THESIS], "mse") / _mean(found[epsilon, method], "mse")
            for epsilon in epsilons
            if (epsilon, method) in found and (epsilon, THESIS) in found
        }
        if times:
            worst = min(times, key=lambda epsilon: times[epsilon])
            told.append(
                f"Here `{method}` errs at least {times[worst]:.1f} times less than the thesis's "
                f"(at {worst})."
            )
    return [*told, ""]


def _marginals(lines: Sequence[Line]) -> list[str]:
    sources = list(dict.fromkeys(line["source"] for line in lines if line["group"] == "marginals"))
    if not sources:
        return []
    text = [
        "### Marginals",
        "",
        "All tables of three attributes of 262,144 people drawn with replacement: squared error "
        "summed over a table's cells, in the mean over tables and runs, at epsilon 0.5.",
        "Local reports promise it without a delta and for replacing a record; the curator's "
        "releases are for people who come or go.",
        "",
        "| source | method | asks by | local | squared error | runs |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for source in sources:
        for (_, method), own in _by(lines, ("marginals",), source).items():
            local = f"{own[0]['local']:g}" if "local" in own[0] else ""
            asks = own[0].get("chosen", "")
            error = f"{_mean(own, 'sse'):.2g}"
            text.append(f"| {source} | {method} | {asks} | {local} | {error} | {len(own)} |")
    return [*text, ""]


def _words(lines: Sequence[Line]) -> list[str]:
    found = _by(lines, ("words",), "words")
    if not found:
        return []
    text = [
        "### Words",
        "",
        "The 32 most frequent of English words cut to six letters, which 500,000 people hold "
        "(figure 9.4 in kind; its queries of AOL are not at hand).",
        "Plans ask groups of people, inside one shuffle.",
        "The thesis's accountant has everybody answer all six levels, with a sixth of epsilon and "
        "delta each; only letters are tried there, which helps it.",
        '"Local" is not shuffled.',
        "",
        "| eps_c | method | local | found of 32, run by run | mean |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (epsilon, method), own in sorted(found.items(), key=lambda each: float(each[0][0])):
        hits = ", ".join(str(line["found"]) for line in own)
        local = f"{own[0]['local']:.4g}"
        text.append(f"| {epsilon} | {method} | {local} | {hits} | {_mean(own, 'found'):.1f} |")
    return [*text, ""]


def _formulas(lines: Sequence[Line]) -> list[str]:
    columns = {line["epsilon"]: line for line in lines if line["group"] == "table"}
    if not columns:
        return []
    epsilons = sorted(columns, key=float)
    text = [
        "### Table 9.2",
        "",
        "Mean squared errors by formula, a million people and 42,178 values, with the local "
        "epsilon of what is ours in brackets.",
        "`aue` and `rap-r` are not LDP: a report by itself is not private at these numbers, no "
        "plan has them, and `sottovoce compare shuffled` only simulates them.",
        "`rap-r` promises less than the others at the same epsilon: it hides whether a value was "
        "given, and replacing one costs twice as much.",
        "",
        f"| | {' | '.join(f'eps_c {epsilon}' for epsilon in epsilons)} |",
        "| --- " * (1 + len(epsilons)) + "|",
    ]
    for name in columns[epsilons[0]]["errors"]:
        cells = []
        for epsilon in epsilons:
            local = columns[epsilon]["locals"].get(name)
            told = f" ({local:.3g})" if local is not None else ""
            cells.append(f"{columns[epsilon]['errors'][name]:.2g}{told}")
        text.append(f"| {name} | {' | '.join(cells)} |")
    return [*text, ""]


def picture(lines: Sequence[Line]) -> Any:
    """Squared error over the analyst's epsilon, a line for each method."""
    import altair as alt

    charts = []
    for source, title in TITLES.items():
        rows = [
            {"epsilon": float(epsilon), "method": method, "mse": _mean(own, "mse")}
            for (epsilon, method), own in _by(lines, (source,), source).items()
        ]
        if not rows:
            continue
        drawn = (
            alt.Chart(alt.Data(values=rows))
            .mark_line(point=True)
            .encode(
                x=alt.X(
                    "epsilon:Q", title="epsilon, against the analyst", scale=alt.Scale(type="log")
                ),
                y=alt.Y(
                    "mse:Q",
                    title="mean squared error",
                    scale=alt.Scale(type="log"),
                    axis=alt.Axis(format=".0e"),
                ),
                color=alt.Color("method:N", title="method"),
            )
        )
        charts.append(drawn.properties(width=300, height=220, title=title))
    return alt.hconcat(*charts)


def write_page(lines: Sequence[Line], docs: Path) -> None:
    """Put the section between its marks, and the picture beside."""
    from bench.page import write_section

    caption = "Mean squared error over the analyst's epsilon: auto, auto with focus head, thesis"
    write_section(docs, SECTION, [report(lines)], {PICTURE: (caption, picture(lines))})
