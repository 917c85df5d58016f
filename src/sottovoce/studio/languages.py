"""The sentences of the participant's page, by language: one JSON catalogue each.

``page`` holds those of the template, ``script`` those that the page's program says, ``form`` what
the form for a new survey offers. What stands in
braces is filled in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.texts import LANGUAGES

_FOLDER = Path(__file__).parent / "languages"
DEFAULT_LANGUAGE = LANGUAGES[0]
LANGUAGE_NAMES = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "it": "Italiano",
    "es": "Español",
}


@dataclass(frozen=True)
class Words:
    """What a participant's page says in one language."""

    language: str
    page: Mapping[str, str]
    script: Mapping[str, str]
    form: Mapping[str, str]

    def __call__(self, name: str, /, **parts: object) -> str:
        """A sentence of the page, with its parts filled in.

        >>> words("de")("send")
        'Zufällig verändern und senden'
        """
        return self.page[name].format(**parts)

    @property
    def script_json(self) -> str:
        """The program's sentences, for an attribute of the page."""
        return json.dumps(self.script, ensure_ascii=False, separators=(",", ":"))


@cache
def words(language: str) -> Words:
    """The catalogue of a language, read once."""
    if language not in LANGUAGES:
        raise InvalidInput(f"language ({language}) must be one of {', '.join(LANGUAGES)}")
    found = json.loads((_FOLDER / f"{language}.json").read_text("utf-8"))
    return Words(language, found["page"], found["script"], found["form"])


def chosen_language(asked: str | None, survey: str | None, accepted: str) -> str:
    """The first that there is: what the address asks for, the survey's, what the browser prefers.

    Args:
        asked: the address's ``lang``.
        survey: what whoever runs the studio has set.
        accepted: the browser's ``Accept-Language``.

    >>> chosen_language(None, None, "ja, de-CH;q=0.9, en;q=0.8")
    'de'
    """
    for language in (asked, survey, *_preferred(accepted)):
        if language in LANGUAGES:
            return language
    return DEFAULT_LANGUAGE


def _preferred(accepted: str) -> Sequence[str]:
    """Languages of an ``Accept-Language``, without their regions, the most wanted first."""
    weighted: list[tuple[float, str]] = []
    for part in accepted[:1000].split(","):
        name, _, weight = part.partition(";q=")
        try:
            weighted.append((float(weight or 1), name.strip().partition("-")[0].lower()))
        except ValueError:
            continue  # not a weight: as if the language were not named
    ordered = sorted(weighted, key=lambda pair: -pair[0])
    return [name for weight, name in ordered if weight > 0]
