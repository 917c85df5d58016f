"""The commands for the key that signs assignments: another one, and one that collectors share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.collector_options import StoreUrl
from sottovoce.cli.service import key_app

SIGNING_DELAY = 60  # seconds that an assignment may be under way when its key is replaced
_HEAD = "sottovoce assignment key 1"


@key_app.command("rotate")
def rotate(
    store: StoreUrl,
    now: Annotated[
        bool,
        typer.Option(
            "--now", help="Refuse at once what the former key signed, as when it was stolen."
        ),
    ] = False,
) -> None:
    """Replace the key that signs assignments.

    Collectors that run use the new key from now on. What the former key signed is accepted until it
    expires, a day at most; with --now it is refused, and whoever has drawn a report with it cannot
    send it any more.

    Example:  sottovoce key rotate sqlite:///survey.db
    """
    from sottovoce.store import open_store

    with open_store(store, create=False) as opened:
        opened.replace_signing_key(0 if now else _held_seconds())
    kept = (
        "assignments of the former one are refused"
        if now
        else "those of the former one hold until they expire"
    )
    typer.echo(f"There is a new key for assignments; {kept}")


@key_app.command("share")
def share(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the key goes; a new file.")],
    store: Annotated[
        str | None,
        typer.Argument(metavar="[STORE]", help="The store whose key it is; without, a new key."),
    ] = None,
) -> None:
    """Write a key that signs assignments to a file that other stores can take.

    Collectors with stores of their own take each other's assignments if all stores sign with one
    key.

    Example:  sottovoce key share sqlite:///survey.db -o assignments.key
    """
    import secrets

    from sottovoce.device.assignment import KEY_BYTES
    from sottovoce.ground.key_files import write_key_file
    from sottovoce.store import open_store

    if store is None:
        key = secrets.token_bytes(KEY_BYTES)
    else:
        with open_store(store, create=False) as opened:
            key = opened.signing_key()
    write_key_file(output, _HEAD, key, "it may hold a key that is in use")
    typer.echo(f"A key for assignments was written to {output}; whoever has it can sign them")


@key_app.command("take")
def take(
    file: Annotated[
        Path, typer.Argument(metavar="assignments.key", help="What `sottovoce key share` wrote.")
    ],
    store: StoreUrl,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="For a day take what it signs, and sign with the own key."),
    ] = False,
) -> None:
    """Let a store sign assignments with a key that others have too.

    What its former key signed is accepted until it expires. To replace the key of stores that run,
    let all of them --accept the new one first, then take it.

    Example:  sottovoce key take assignments.key sqlite:///survey.db

    Example:  sottovoce key take assignments.key sqlite:///survey.db --accept
    """
    from sottovoce.device.assignment import KEY_BYTES
    from sottovoce.ground.key_files import read_key_file
    from sottovoce.store import open_store

    key = read_key_file(file, _HEAD, KEY_BYTES, "sottovoce key share")
    with open_store(store) as opened:
        if accept:
            opened.accept_signing_key(key, _held_seconds())
            typer.echo("Assignments that this key signed are accepted for a day")
            return
        opened.replace_signing_key(_held_seconds(), key)
    typer.echo(
        "Assignments are signed with this key; those of the former one hold until they expire"
    )


def _held_seconds() -> int:
    """For how long what a former key signed may still come."""
    from sottovoce.service.settings import ASSIGNMENT_SECONDS

    return ASSIGNMENT_SECONDS + SIGNING_DELAY
