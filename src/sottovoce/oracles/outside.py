"""Oracles of other packages: each is an entry point of the group ``sottovoce.oracles``.

A package is imported when an oracle of it is asked for by name, or when all of them are listed;
sottovoce's own oracles are found without a look at what else is installed, and cannot be replaced.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.base import Oracle

GROUP = "sottovoce.oracles"
NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_PACKAGE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")

_loaded: dict[str, type[Oracle]] = {}  # by name: looking for entry points reads many files


def entries(taken: Collection[str]) -> dict[str, EntryPoint]:
    """Every entry point of the group by its name; refused if one is ``taken``, or two are alike.

    >>> entries({"grr"})
    {}
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        brought = f"oracle {entry.name!r} of the package {package_of(entry)!r}"
        if entry.name in taken:
            raise InvalidInput(f"{brought} has the name of one of sottovoce's own")
        if entry.name in found:
            other = package_of(found[entry.name])
            raise InvalidInput(f"{brought} has the name of one of the package {other!r}")
        found[entry.name] = entry
    return found


def package_of(entry: EntryPoint) -> str:
    """The package that brings an entry point, in the one spelling that package indexes know."""
    name = "" if entry.dist is None else entry.dist.name
    return re.sub(r"[-_.]+", "-", name).lower()


def load(name: str, taken: Collection[str]) -> type[Oracle] | None:
    """The oracle of another package that is called ``name``; None if there is none."""
    if name not in _loaded:
        entry = entries(taken).get(name)
        if entry is None:
            return None
        _loaded[name] = _from(entry)
    return _loaded[name]


def _from(entry: EntryPoint) -> type[Oracle]:
    package = package_of(entry)
    what = f"oracle {entry.name!r} of the package {package!r}"
    try:
        thing = entry.load()
    except Exception as wrong:  # whatever the package does when it is imported
        raise InvalidInput(
            f"{what} cannot be imported ({type(wrong).__name__}: {wrong})"
        ) from wrong
    kind = checked_kind(thing, f"{what} ({entry.value})")
    if kind.names != (entry.name,):
        raise InvalidInput(
            f"{what}: names {kind.names!r} of the class must be the entry point's name alone"
        )
    kind.package = package
    return kind


def checked_kind(thing: Any, what: str) -> type[Oracle]:
    """``thing`` if it is the whole class of an oracle; errors call it ``what``."""
    if not (isinstance(thing, type) and issubclass(thing, Oracle)):
        raise InvalidInput(f"{what} is not an oracle: a subclass of sottovoce.oracles.Oracle")
    if inspect.isabstract(thing):
        lacking = ", ".join(sorted(thing.__abstractmethods__))
        raise InvalidInput(f"{what} is not a whole oracle: it lacks {lacking}")
    names = getattr(thing, "names", ())
    if not isinstance(names, tuple) or not names or not all(map(_is_name, names)):
        raise InvalidInput(
            f"{what}: names must be a tuple of names such as ('my-oracle',), of lower-case "
            "letters, digits and hyphens"
        )
    if not isinstance(getattr(thing, "about", None), str):
        raise InvalidInput(f"{what}: about must be one line that says what it is")
    return thing


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def require(name: str, package: Any, taken: Collection[str]) -> None:
    """Refuse a plan's oracle of another ``package`` unless that very package is installed here."""
    if not isinstance(package, str) or not _PACKAGE.fullmatch(package):
        raise InvalidInput("plan: the package of an oracle must be the name of one")
    entry = entries(taken).get(name)
    if entry is None or package_of(entry) != package:
        raise InvalidInput(
            f"plan: oracle {name!r} needs the package {package!r}, which is not installed here; "
            "it decides what is private, so install it only if you trust it"
        )
