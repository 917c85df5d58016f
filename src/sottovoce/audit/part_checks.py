"""What is found of a part of another package: which of its laws hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from sottovoce.audit.contract import LawCheck
from sottovoce.audit.laws import LawBroken

T = TypeVar("T")


@dataclass(frozen=True)
class PartCheck:
    """Every law that a method or a question was checked for, in order."""

    part: str  # such as "method star"
    about: str  # at what numbers it was checked
    laws: tuple[LawCheck, ...]

    @property
    def passed(self) -> bool:
        return all(law.passed for law in self.laws)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        laws = [asdict(law) for law in self.laws]
        return {"part": self.part, "about": self.about, "passed": self.passed, "laws": laws}

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        held = sum(law.passed for law in self.laws)
        last = f"{verdict} {self.part} ({self.about}): {held} of {len(self.laws)} laws hold"
        return "\n".join([*map(str, self.laws), last])


def checked_laws(
    laws: Sequence[Callable[[T], str | None]],
    case: T,
    progress: Callable[[int], None] | None = None,
) -> tuple[LawCheck, ...]:
    """Check each law on a case; what a law returns is a remark about how it was checked."""
    found = []
    for law in laws:
        name = law.__name__.replace("_", " ")
        try:
            found.append(LawCheck(name, True, law(case) or ""))
        except Exception as wrong:  # a law that is broken, or a mistake of the part's own code
            kind = "" if isinstance(wrong, LawBroken) else f"{type(wrong).__name__}: "
            found.append(LawCheck(name, False, f"{kind}{wrong}"))
        if progress is not None:
            progress(len(found))
    return tuple(found)
