"""The reference of the package, as Markdown made from its docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from docs.site.docstrings import parse
from docs.site.members import (
    Function,
    Parameter,
    Property,
    bases,
    constructor_of,
    function_of,
    methods_of,
    properties_of,
    public,
    shared_bases,
)

# pages, each with the names that it holds; a new name that none holds stands on the last one
PAGES = {
    "schema": (
        "Schemas",
        "Schema Boolean Categorical Ordinal Integer Text Items FixedPoint Number Attribute Single",
    ),
    "questions": (
        "Questions",
        "Frequencies Marginals Queries HeavyHitters TopItems TopItemsets Popular Question",
    ),
    "plans": ("Plans", "plan next_plan Plan Guarantee Texts oracle amplified Amplified"),
    "devices": (
        "Devices and reports",
        "Client ClientState Assignment simulate simulate_block simulate_rounds Report Reports "
        "CheckedReports",
    ),
    "estimates": (
        "Aggregates and estimates",
        "Aggregate Estimate MarginalEstimate QueryEstimate Findings Table GroupAnswers "
        "JointEstimate Frames TableWords",
    ),
    "analysis": (
        "Analysis and reports",
        "postprocess choose_postprocess query associate dependency_tree synthesize rules rake "
        "report SurveyPage",
    ),
    "central": ("Central releases", "release load_release Release"),
    "errors": ("Errors and more", ""),
}
NAMES = {page: names.split() for page, (_, names) in PAGES.items()}
LAST = "errors"
FOLDER = "docs/api"


def source_of(page: str) -> str:
    """Where a page would stand, if it were written by hand."""
    return f"{FOLDER}/{page}.md"


def sources() -> dict[str, str]:
    """The pages of the reference, and what the navigation calls them."""
    return {source_of("index"): "Python", **{source_of(page): PAGES[page][0] for page in PAGES}}


@cache
def things() -> dict[str, Any]:
    """Everything that the reference holds, by name."""
    return public() | shared_bases()


def names_on(page: str) -> list[str]:
    """The names of a page that the package has."""
    known = things()
    placed = {name for names in NAMES.values() for name in names}
    names = [name for name in NAMES[page] if name in known]
    return names + [name for name in known if name not in placed] if page == LAST else names


def page_of(name: str) -> str:
    """The page that holds a name."""
    return next((page for page, names in NAMES.items() if name in names), LAST)


def heading(level: int, name: str) -> str:
    """A heading whose anchor is the name itself, since `plan` and `Plan` are two."""
    return f"{'#' * level} {name} {{#{name}}}"


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()) or " "


def code(text: str) -> str:
    """Code for a cell of a table."""
    plain = text.replace("|", r"\|")
    return f"`{plain}`" if plain else " "


def parameter_table(parameters: Sequence[Parameter]) -> str:
    rows = [
        f"| {code(each.name)} | {code(each.kind)} | {code(each.default)} | {cell(each.text)} |"
        for each in parameters
    ]
    head = ["| parameter | type | default | what it is |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows]) if rows else ""


def property_table(properties: Sequence[Property]) -> str:
    rows = [
        f"| {code(each.name)} | {code(each.kind)} | {cell(each.doc.text)} |" for each in properties
    ]
    head = ["| to be read | type | what it is |", "| --- | --- | --- |"]
    return "\n".join([*head, *rows]) if rows else ""


def function_text(head: str, function: Function) -> str:
    """A function's part of a page."""
    doc = function.doc
    parts = [
        head,
        f"```python\n{function.signature}\n```",
        doc.text,
        parameter_table(function.parameters),
        f"Returns: {doc.returns}" if doc.returns else "",
        f"Raises: {doc.raises}" if doc.raises else "",
        f"```pycon\n{doc.example}\n```" if doc.example else "",
    ]
    return "\n\n".join(part for part in parts if part)


def class_text(name: str, kind: type) -> str:
    """A class's part of a page: how it is made, what can be read of it, what it does."""
    if issubclass(kind, BaseException):
        return f"{heading(2, name)}\n\n{parse(kind.__doc__).text}"
    parts = [function_text(heading(2, name), constructor_of(name, kind))]
    if bases(kind):
        links = [f"[`{base.__name__}`]({link_to(name, base.__name__)})" for base in bases(kind)]
        parts.append(f"It also has what these have: {', '.join(links)}.")
    parts.append(property_table(properties_of(kind)))
    parts += [function_text(heading(3, method.name), method) for method in methods_of(kind)]
    return "\n\n".join(part for part in parts if part)


def link_to(origin: str, name: str) -> str:
    """A link from the page of one name to another name."""
    page = page_of(name)
    return f"#{name}" if page == page_of(origin) else f"{page}.md#{name}"


def page_text(page: str) -> str:
    """A page of the reference."""
    known = things()
    parts = [f"# {PAGES[page][0]}"]
    for name in names_on(page):
        thing = known[name]
        text = (
            class_text(name, thing)
            if isinstance(thing, type)
            else function_text(heading(2, name), function_of(name, thing, {}))
        )
        parts.append(text)
    return "\n\n".join(parts)


def index_text() -> str:
    """The first page: every public name with a line of its own."""
    parts = [
        "# Python",
        "Everything public, `import sottovoce as sv`, made from the docstrings.",
        "Classes that have no public name, such as `Attribute`, hold what public ones share.",
    ]
    known = public()
    for page, (title, _) in PAGES.items():
        rows = [
            f"| [`{name}`]({page}.md#{name}) | {cell(parse(known[name].__doc__).summary)} |"
            for name in names_on(page)
            if name in known
        ]
        parts.append(f"## {title}")
        parts.append("\n".join(["| name | what it is |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def texts() -> dict[str, str]:
    """The pages of the reference by their sources."""
    made = {source_of(page): page_text(page) for page in PAGES}
    return {source_of("index"): index_text(), **made}
