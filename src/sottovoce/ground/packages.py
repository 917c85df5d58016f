"""What other packages bring: things of one kind, each an entry point of one group.

A package is imported when something of it is asked for by name, or when all of it is listed;
sottovoce's own is found without a look at what else is installed, and cannot be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from sottovoce.ground.errors import InvalidInput

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_PACKAGE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")

T = TypeVar("T")


class Brought(Generic[T]):
    """What other packages bring of one kind.

    Args:
        group: of the entry points, such as ``sottovoce.oracles``.
        word: what one of them is called in errors.
        check: makes of what an entry point names the thing that is used, or refuses it; it is told
            what errors should call it, the entry point's name, and the package.
        trust: what a package decides, as a person reads it who lacks it.
    """

    def __init__(
        self, group: str, word: str, check: Callable[[Any, str, str, str], T], trust: str
    ) -> None:
        self.group = group
        self._word = word
        self._check = check
        self._trust = trust
        self._loaded: dict[str, T] = {}  # by name: looking for entry points reads many files

    def entries(self, taken: Collection[str]) -> dict[str, EntryPoint]:
        """Every entry point by its name; refused if one is ``taken``, or two are alike."""
        found: dict[str, EntryPoint] = {}
        for entry in entry_points(group=self.group):
            brought = f"{self._word} {entry.name!r} of the package {package_of(entry)!r}"
            if entry.name in taken:
                raise InvalidInput(f"{brought} has the name of one of sottovoce's own")
            if entry.name in found:
                other = package_of(found[entry.name])
                raise InvalidInput(f"{brought} has the name of one of the package {other!r}")
            found[entry.name] = entry
        return found

    def load(self, name: str, taken: Collection[str]) -> T | None:
        """What another package brings under this name; None if there is nothing."""
        if name not in self._loaded:
            entry = self.entries(taken).get(name)
            if entry is None:
                return None
            self._loaded[name] = self._from(entry)
        return self._loaded[name]

    def every(self, taken: Collection[str]) -> list[T]:
        """All that other packages bring."""
        found = (self.load(name, taken) for name in self.entries(taken))
        return [thing for thing in found if thing is not None]

    def _from(self, entry: EntryPoint) -> T:
        package = package_of(entry)
        what = f"{self._word} {entry.name!r} of the package {package!r}"
        try:
            thing = entry.load()
        except Exception as wrong:  # whatever the package does when it is imported
            raise InvalidInput(
                f"{what} cannot be imported ({type(wrong).__name__}: {wrong})"
            ) from wrong
        return self._check(thing, f"{what} ({entry.value})", entry.name, package)

    def require(self, name: Any, package: Any, taken: Collection[str]) -> None:
        """Refuse a plan's part of another ``package`` unless that very package is installed."""
        if not isinstance(package, str) or not _PACKAGE.fullmatch(package):
            raise InvalidInput(f"plan: the package of {self._article} must be the name of one")
        entry = self.entries(taken).get(name)
        if entry is None or package_of(entry) != package:
            raise InvalidInput(
                f"plan: {self._word} {name!r} needs the package {package!r}, which is not "
                f"installed here; {self._trust}"
            )

    @property
    def _article(self) -> str:
        return f"an {self._word}" if self._word[0] in "aeiou" else f"a {self._word}"


def package_of(entry: EntryPoint) -> str:
    """The package that brings an entry point, in the one spelling that package indexes know."""
    name = "" if entry.dist is None else entry.dist.name
    return re.sub(r"[-_.]+", "-", name).lower()


def is_name(name: Any) -> bool:
    """Whether something is the name of what a package brings.

    >>> is_name("my-oracle"), is_name("My oracle"), is_name(None)
    (True, False, False)
    """
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def named_thing(word: str, target: str, example: str) -> Any:
    """What ``module:Name`` names; errors call it ``word``, and show an ``example``.

    >>> named_thing("oracle", "fractions:Fraction", "mypackage:MyOracle")
    <class 'fractions.Fraction'>
    """
    module, _, name = target.partition(":")
    if not module or not name.isidentifier():
        raise InvalidInput(f"{word} ({target}) must be module:Class, such as {example}")
    try:
        thing = getattr(import_module(module), name, None)
    except Exception as wrong:  # whatever the module does when it is imported
        raise InvalidInput(
            f"{word} ({target}): {module} cannot be imported ({type(wrong).__name__}: {wrong})"
        ) from wrong
    if thing is None:
        raise InvalidInput(f"{word} ({target}): {module} has no {name}")
    return thing
