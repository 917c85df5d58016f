"""Every question there is, by name: where its class lives, and what a plan holds of it.

A device reads this table and loads none of the classes: what a question estimates is no business of
a device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sottovoce.ground.arguments import plain_option, plain_options
from sottovoce.ground.errors import InvalidInput


@dataclass(frozen=True)
class QuestionForm:
    """How a question stands in a plan: ``kind``, ``keys`` in order, ``home`` the class of it."""

    kind: str
    keys: tuple[str, ...]
    home: str  # module:class

    def load(self) -> Any:
        """The class, from its module."""
        module, _, name = self.home.partition(":")
        return getattr(import_module(module), name)


# of another package: a device needs nothing of it, since cohorts say who is asked what
OUTSIDE = QuestionForm(
    "of another package", ("package", "options"), "sottovoce.questions.outside:question_class"
)
NUMBERS = ("up_to", "top", "above", "round")  # keys whose values are numbers, or nothing
_ITEMS = ("attribute", "top", "method", "options", "round", "known")

# A new question is a folder of sottovoce.questions, a line here, and one in clients/js/src/plan.js.
QUESTIONS: tuple[QuestionForm, ...] = (
    QuestionForm(
        "frequencies",
        ("attributes", "oracle", "split", "options"),
        "sottovoce.questions.frequencies:Frequencies",
    ),
    QuestionForm(
        "marginals",
        ("up_to", "attributes", "workload", "method", "options"),
        "sottovoce.questions.marginals:Marginals",
    ),
    QuestionForm(
        "heavy-hitters",
        ("attribute", "top", "above", "method", "options"),
        "sottovoce.questions.heavyhitters:HeavyHitters",
    ),
    QuestionForm(
        "queries",
        ("dimensions", "measures", "workload", "method", "options"),
        "sottovoce.questions.queries:Queries",
    ),
    QuestionForm("top-items", _ITEMS, "sottovoce.questions.itemsets:TopItems"),
    QuestionForm("top-itemsets", _ITEMS, "sottovoce.questions.itemsets:TopItemsets"),
)


def form_of(kind: Any) -> QuestionForm:
    """The form of a question of this kind."""
    for form in QUESTIONS:
        if form.kind == kind:
            return form
    raise InvalidInput(
        f"plan: question ({kind}) must be one of {', '.join(form.kind for form in QUESTIONS)}"
    )


def question_class(stored: Mapping[str, Any]) -> Any:
    """The class of a stored question; one of another package must be installed."""
    if "package" in stored:
        return OUTSIDE.load()(stored["kind"], stored["package"])
    return form_of(stored["kind"]).load()


def check_measures(stored: Mapping[str, Any], public: Sequence[str]) -> None:
    """Refuse a stored question about measures that do not travel in clear."""
    for name in stored.get("measures", ()):
        if name not in public:
            raise InvalidInput(f"plan: measure {name!r} must be public, and travel in clear")


def check_form(stored: Mapping[str, Any]) -> QuestionForm:
    """Refuse a stored question with keys its kind has not, or numbers no plan spells so."""
    form = OUTSIDE if "package" in stored else form_of(stored["kind"])
    if form is OUTSIDE:
        _check_outside(stored)
    if tuple(stored) != ("kind", *form.keys):
        raise InvalidInput(f"plan: the keys of its question must be kind, {', '.join(form.keys)}")
    options = stored.get("options", {})
    numbers = [stored[key] for key in NUMBERS if key in stored]
    plain = [plain_options(options), *map(plain_option, numbers)]
    if list(options) != sorted(options) or json.dumps(plain) != json.dumps([options, *numbers]):
        raise InvalidInput("plan: a part of its question is not written as plans write it")
    return form


def _check_outside(stored: Mapping[str, Any]) -> None:
    """Refuse a question of another package that is called as one of ours, or as no package can."""
    kind, package = stored["kind"], stored["package"]
    if not isinstance(kind, str) or kind in {form.kind for form in QUESTIONS}:
        raise InvalidInput(f"plan: question ({kind}) of another package has the name of ours")
    if not isinstance(package, str) or not package:
        raise InvalidInput("plan: the package of a question must be the name of one")
