"""Questions of other packages: each is an entry point of the group ``sottovoce.questions``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from sottovoce.ground.arguments import plain_options
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.packages import Brought, is_name
from sottovoce.protocol.question_forms import QUESTIONS
from sottovoce.questions.base import Question

TRUST = "it decides what people are asked and what is made of it"


def whole_class(thing: Any, base: Any, what: str) -> Any:
    """``thing`` if it is a subclass of ``base`` that lacks nothing; errors call it ``what``."""
    if not (isinstance(thing, type) and issubclass(thing, base)):
        raise InvalidInput(
            f"{what} must be a subclass of {base.__name__}, of the module {base.__module__}"
        )
    if inspect.isabstract(thing):
        lacking = ", ".join(sorted(getattr(thing, "__abstractmethods__", ())))
        raise InvalidInput(f"{what} is not whole: it lacks {lacking}")
    return thing


def check_texts(thing: type[Any], what: str, *names: str) -> None:
    """Refuse a class that does not say in one line what each of these is."""
    for name in names:
        text = getattr(thing, name, None)
        if not isinstance(text, str) or not text or "\n" in text:
            raise InvalidInput(f"{what}: {name} must be one line of text")


def check_name(thing: type[Any], what: str, part: str, name: str | None) -> None:
    """Refuse a class whose ``part`` is no name for plans, or not that of its entry point."""
    own = getattr(thing, part, None)
    if not is_name(own):
        raise InvalidInput(
            f"{what}: {part} must be a name such as 'my-own', of lower-case letters, digits and "
            "hyphens"
        )
    if name is not None and own != name:
        raise InvalidInput(f"{what}: {part} {own!r} of the class must be the entry point's name")


class PackageQuestion(Question):
    """The base of a question that another package brings: a frozen dataclass.

    Its fields are what a survey says of it: whole numbers, text, truth values, tuples of these, or
    None for what is left out. A plan holds them, and so they hold no floats: a number that is not
    whole is text.
    """

    about: ClassVar[str]  # one line for tables
    package: ClassVar[str] = ""  # which brings it, as plans name it

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        return super().from_survey({key: _frozen(part) for key, part in options.items()})

    def to_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        given = {name: value for name, value in sorted(values.items()) if value is not None}
        return {"package": self.package, "options": plain_options(given)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{key: _frozen(part) for key, part in data["options"].items()})


def _frozen(part: Any) -> Any:
    return tuple(map(_frozen, part)) if isinstance(part, list) else part


def checked_question(thing: Any, what: str, name: str | None = None) -> type[PackageQuestion]:
    """``thing`` if it is the whole class of a question; errors call it ``what``."""
    kind: type[PackageQuestion] = whole_class(thing, PackageQuestion, what)
    check_name(kind, what, "kind", name)
    check_texts(kind, what, "about")
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        raise InvalidInput(f"{what} must be a frozen dataclass, whose fields a plan holds")
    return kind


def _installed(thing: Any, what: str, name: str, package: str) -> type[PackageQuestion]:
    kind = checked_question(thing, what, name)
    kind.package = package
    return kind


BROUGHT_QUESTIONS = Brought("sottovoce.questions", "question", _installed, TRUST)


def question_class(kind: str, package: str) -> type[PackageQuestion]:
    """The question of a plan that names the package which brings it."""
    taken = [form.kind for form in QUESTIONS]
    BROUGHT_QUESTIONS.require(kind, package, taken)
    found = BROUGHT_QUESTIONS.load(kind, taken)
    assert found is not None  # it is installed
    return found
