"""Methods of other packages: each is an entry point of the group ``sottovoce.methods``."""

from __future__ import annotations

from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.packages import Brought, is_name
from sottovoce.questions.marginals.method import MarginalMethod
from sottovoce.questions.outside import TRUST, check_name, check_texts, whole_class


def checked_method(thing: Any, what: str, name: str | None = None) -> MarginalMethod:
    """The method of a class that is a whole one; errors call it ``what``."""
    kind = whole_class(thing, MarginalMethod, what)
    check_name(kind, what, "name", name)
    check_texts(kind, what, "about", "source")
    options = getattr(kind, "options", ())
    names = [str(option).replace("_", "-") for option in options]
    if not isinstance(options, tuple) or not all(map(is_name, names)) or "package" in options:
        raise InvalidInput(
            f"{what}: options must be a tuple of names such as ('depth',), none of them 'package'"
        )
    made: MarginalMethod = kind()
    return made


def _installed(thing: Any, what: str, name: str, package: str) -> MarginalMethod:
    method = checked_method(thing, what, name)
    type(method).package = package
    return method


BROUGHT_METHODS = Brought("sottovoce.methods", "method", _installed, TRUST)
