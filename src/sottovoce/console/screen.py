"""What reaches the screen: names and labels come from strangers, so nothing hidden passes."""

from __future__ import annotations

import typer

from sottovoce.ground.labels import visible_lines


def say(text: object) -> None:
    """Print lines, with every character that cannot be seen written out."""
    typer.echo(visible_lines(str(text)))
