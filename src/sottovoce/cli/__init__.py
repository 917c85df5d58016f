"""The command line; nothing heavy loads before a command needs it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence

import typer

from sottovoce.cli import (  # noqa: F401  (they add their commands)
    analysis,
    assignment_keys,
    checks,
    compare_shuffled,
    folding,
    groups,
    marginals,
    methods,
    oracles,
    people,
    peos,
    popular,
    queries,
    releases,
    reporting,
    retention,
    service,
    shipping,
    shufflers,
    shuffling,
    sql,
)
from sottovoce.cli.commands import app
from sottovoce.console.screen import fit_streams
from sottovoce.ground.errors import SottovoceError
from sottovoce.ground.extras import explained_import
from sottovoce.ground.labels import visible

__all__ = ["app", "main", "run"]

BAD_INPUT = 2
INTERRUPTED = 130


def _with_whole_examples(text: str) -> str:
    """A help text whose examples stand on one line each, so that they can be copied.

    >>> _with_whole_examples("Freeze it.\\n\\nExample:  sottovoce plan a.toml\\n  -o plan.json")
    'Freeze it.\\n\\n\\x08\\nExample:  sottovoce plan a.toml -o plan.json'
    """
    paragraphs = inspect.cleandoc(text).split("\n\n")
    for place, paragraph in enumerate(paragraphs):
        head, _, command = paragraph.partition("Example:")
        if not head and command:
            # the sign \b keeps a paragraph as it is
            paragraphs[place] = f"\b\nExample:  {' '.join(command.split())}"
    return "\n\n".join(paragraphs)


def _keep_examples_whole(group: typer.Typer) -> None:
    for command in group.registered_commands:
        command.help = _with_whole_examples(inspect.getdoc(command.callback) or "")
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            about = inner.typer_instance.info
            about.help = _with_whole_examples(about.help or "")
            _keep_examples_whole(inner.typer_instance)


_keep_examples_whole(app)


def main() -> None:
    """The ``sottovoce`` command."""
    fit_streams()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    0 well, 1 an audit failed or reports were lost, 2 bad input, 124 out of time, 130 interrupted.
    """
    try:
        outcome = app(
            args=list(arguments) or ["--help"], prog_name="sottovoce", standalone_mode=False
        )
    except KeyboardInterrupt:
        outcome = INTERRUPTED
    except Exception as wrong:
        message = _explained(wrong)
        if message is None:
            raise
        print(f"error: {visible(' '.join(message.split()))}", file=sys.stderr)
        return BAD_INPUT
    if outcome == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return outcome if isinstance(outcome, int) else 0


def _explained(wrong: Exception) -> str | None:
    """One sentence for an error that the caller can mend; None for a mistake of ours."""
    if isinstance(wrong, SottovoceError):
        return str(wrong)
    if isinstance(wrong, ModuleNotFoundError):
        missing = explained_import(wrong)
        return None if missing is None else str(missing)
    if isinstance(wrong, UnicodeEncodeError):
        return (
            f"a name cannot be written in this system's encoding ({wrong.encoding}); set one that "
            "has every sign, such as LC_ALL=C.UTF-8"
        )
    if isinstance(wrong, OSError):
        named = f"{wrong.filename}: " if wrong.filename else ""
        return f"{named}{wrong.strerror or 'the file cannot be read; it was cut or damaged'}"
    # A wrong option: typer carries its own click or uses the installed one; both explain.
    explain = getattr(wrong, "format_message", None)
    return str(explain()) if explain else None
