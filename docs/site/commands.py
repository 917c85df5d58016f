"""The reference of the command line, as Markdown made from the parser's own help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import typer

from docs.site.docstrings import as_markdown
from sottovoce.cli import app

SOURCE = "docs/commands.md"
KEPT = "\b"  # stands above a paragraph whose lines stay as they are
RULE = re.compile(r"^(.*?)\s*\[([^\[\]]*(?:\[[^\]]*\])?[^\[\]]*)\]$", re.DOTALL)
HELP = "Show this message and exit."


class Option(NamedTuple):
    """An argument or option of a command, as its help writes it."""

    form: str
    text: str
    rule: str  # its default, whether it must be given, which values it takes


class Command(NamedTuple):
    """A command, by the words after ``sottovoce``."""

    name: str
    usage: str
    text: str
    options: tuple[Option, ...]


def options_of(command: Any, context: Any) -> Iterator[Option]:
    """The arguments and options of a command, each with what its help says."""
    for parameter in command.get_params(context):
        # some versions of the parser have no record of an argument that nobody described
        form, text = parameter.get_help_record(context) or (parameter.name, "")
        if text != HELP:
            found = RULE.match(text)
            yield Option(form, *(found.groups() if found else (text, "")))


def commands(group: Any = None, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """Every command, in the order of the help."""
    group = typer.main.get_command(app) if group is None else group
    for name, command in group.commands.items():
        here = (*words, name)
        if hasattr(command, "commands"):
            yield from commands(command, here)
        elif not command.hidden:
            path = " ".join(("sottovoce", *here))
            context = command.context_class(command, info_name=path)
            usage = " ".join([path, *command.collect_usage_pieces(context)])
            found = tuple(options_of(command, context))
            yield Command(" ".join(here), usage, command.help or "", found)


def help_text(text: str) -> str:
    """The help of a command as Markdown: its examples and listings are blocks."""
    parts: list[str] = []
    examples: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        is_kept = paragraph.startswith(KEPT)
        plain = paragraph.removeprefix(KEPT).strip("\n")
        if plain.startswith("Example:"):
            examples.append(plain.removeprefix("Example:").strip())
        elif is_kept:
            parts.append(f"```text\n{plain}\n```")
        else:
            parts.append(as_markdown(" ".join(plain.split())))
    if examples:
        parts.append("\n".join(["```sh", *examples, "```"]))
    return "\n\n".join(parts)


def option_table(options: tuple[Option, ...]) -> str:
    rows = []
    for each in options:
        form = each.form.replace("|", r"\|")
        rule = as_markdown(each.rule).replace("|", r"\|") or " "
        rows.append(f"| `{form}` | {as_markdown(' '.join(each.text.split()))} | {rule} |")
    head = ["| argument or option | what it is | rule |", "| --- | --- | --- |"]
    return "\n".join([*head, *rows]) if rows else ""


@cache
def names() -> frozenset[str]:
    return frozenset(command.name for command in commands())


def known(words: str) -> str:
    """The command that a line begins with, of one or two words; empty if there is none."""
    first = words.partition(" ")[0]
    return next((name for name in (words, first) if name in names()), "")


def anchor(name: str) -> str:
    return name.replace(" ", "-")


def text() -> str:
    """The page of all commands."""
    parts = [
        "# Command line",
        "Every command, as `sottovoce COMMAND --help` prints it.",
        "A command exits with 0 if all is well, 1 if an audit failed or reports were lost, "
        "2 after bad input, 124 out of time and 130 when it was interrupted.",
    ]
    for command in commands():
        parts += [
            f"## {command.name} {{#{anchor(command.name)}}}",
            f"```text\n{command.usage}\n```",
            help_text(command.text),
            option_table(command.options),
        ]
    return "\n\n".join(part for part in parts if part)
