"""What reaches the screen: names and labels come from strangers, so nothing hidden passes."""

from __future__ import annotations

import codecs
import io
import sys

import typer

from sottovoce.ground.labels import visible_lines

# signs of trees and tables that narrow encodings lack
_DRAWN = str.maketrans("─│└├±…", "-|`+~.")


def plain(wrong: UnicodeError) -> tuple[str, int]:
    r"""Stand-ins for what an encoding cannot say: lines by lines, all else by escapes.

    >>> print("└─ серый".encode("cp1252", errors="sottovoce").decode())
    `- \u0441\u0435\u0440\u044b\u0439
    """
    if not isinstance(wrong, UnicodeEncodeError):
        raise wrong
    told = wrong.object[wrong.start : wrong.end].translate(_DRAWN)
    return told.encode("ascii", errors="backslashreplace").decode(), wrong.end


codecs.register_error("sottovoce", plain)


def fit_streams() -> None:
    """From here on no sign is too much for the terminal or the file behind standard output."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not says_all(stream.encoding):
            stream.reconfigure(errors="sottovoce")


def says_all(encoding: str | None) -> bool:
    """Whether an encoding has every sign; what has no name is taken to.

    >>> says_all("utf8"), says_all("cp1252"), says_all(None)
    (True, False, True)
    """
    return encoding is None or codecs.lookup(encoding).name.startswith("utf-")


def say(text: object) -> None:
    """Print lines, with every character that cannot be seen written out."""
    typer.echo(visible_lines(str(text)))
