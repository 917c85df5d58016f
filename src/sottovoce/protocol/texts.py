"""What a survey says to people: kept beside its plan and no part of it, so that a text can be
written or translated without another plan, under which every device would draw again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from sottovoce.ground.arguments import plain_text
from sottovoce.ground.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan

LANGUAGES = ("en", "de", "fr", "it", "es")
LONGEST_TITLE = 200  # characters
LONGEST_QUESTION = 500  # of one attribute
LONGEST_PASSAGE = 5000
LONGEST = {
    "title": LONGEST_TITLE,
    "introduction": LONGEST_PASSAGE,
    "consent": LONGEST_PASSAGE,
    "contact": LONGEST_TITLE,
}


@dataclass(frozen=True)
class Texts:
    """A survey's texts, each of which may be empty.

    Attributes:
        title: the survey's name.
        introduction: what it is for; lines that are empty part paragraphs.
        consent: what people agree to before they see a question.
        contact: whom they can ask.
        language: of all these, one of ``LANGUAGES``; empty if people choose.
        questions: what is asked about an attribute, by its name.

    >>> texts = Texts("Habits", questions={"smoker": "Do you smoke?"})
    >>> texts.asked("smoker"), texts.asked("age")
    ('Do you smoke?', 'age')
    >>> Texts.parse(texts.to_json()) == texts, bool(Texts())
    (True, False)
    """

    title: str = ""
    introduction: str = ""
    consent: str = ""
    contact: str = ""
    language: str = ""
    questions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, longest in LONGEST.items():
            object.__setattr__(self, name, _checked(name, getattr(self, name), longest))
        if self.language not in ("", *LANGUAGES):
            raise InvalidInput(f"language ({self.language}) must be one of {', '.join(LANGUAGES)}")
        if not isinstance(self.questions, Mapping):
            raise InvalidInput("questions must be texts by the names of attributes")
        asked = {
            name: _checked(f"question of {name!r}", text, LONGEST_QUESTION)
            for name, text in self.questions.items()
        }
        kept = {name: text for name, text in asked.items() if text}
        object.__setattr__(self, "questions", kept)

    def __bool__(self) -> bool:
        return any(getattr(self, part.name) for part in fields(self))

    def asked(self, name: str) -> str:
        """How an attribute is asked for: its question, or its name.

        Args:
            name: of the attribute.
        """
        return self.questions.get(name, name)

    def check(self, names: Iterable[str]) -> None:
        """Refuse questions about attributes that are not there.

        Args:
            names: of the attributes that are there.
        """
        unknown = sorted(set(self.questions) - set(names))
        if unknown:
            raise InvalidInput(f"questions: attribute {unknown[0]!r} is not in the schema")

    def to_json(self) -> dict[str, Any]:
        """The texts that are not empty."""
        found = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: text for name, text in found.items() if text}

    def to_text(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_json(), ensure_ascii=False)

    def following(self, plan: Plan) -> Texts:
        """Those of a later round, whose number its title says.

        Args:
            plan: of the later round.
        """
        base = re.sub(r" \((next round|round \d+)\)$", "", self.title)
        is_numbered = len(plan.series.shares) > 1
        number = f"round {plan.series.number + 1}" if is_numbered else "next round"
        return replace(self, title=f"{base[: LONGEST_TITLE - 20]} ({number})".lstrip())

    @classmethod
    def parse(cls, body: Any, where: str = "texts") -> Texts:
        """The inverse of :meth:`to_json`.

        Args:
            body: what :meth:`to_json` gave.
            where: what an error calls it.
        """
        known = [part.name for part in fields(cls)]
        if not isinstance(body, Mapping):
            raise InvalidInput(f"{where}: they must be a table of {', '.join(known)}")
        unknown = [name for name in body if name not in known]
        if unknown:
            raise InvalidInput(f"{where}: {unknown[0]} is not one of {', '.join(known)}")
        try:
            return cls(**body)
        except InvalidInput as wrong:
            raise InvalidInput(f"{where}: {wrong}") from None


def _checked(name: str, text: Any, longest: int) -> str:
    """A text of lines that every store can keep."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name} must be text")
    lines = plain_text(name, text).replace("\r\n", "\n").strip()
    if len(lines) > longest:
        raise InvalidInput(f"{name} must have at most {longest:,} characters")
    return lines


NO_TEXTS = Texts()
