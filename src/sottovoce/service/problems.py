"""What can go wrong, each with a name of its own, in the one shape of RFC 9457."""

from __future__ import annotations

import json
from typing import Any

from sottovoce.device.messages import PROBLEM
from sottovoce.ground.errors import (
    BadAssignment,
    BatchClosed,
    CorruptReport,
    InvalidInput,
    MissingLibrary,
    PlanMismatch,
    SottovoceError,
    StoreError,
    StoreFull,
    SurveyClosed,
    UnknownPlan,
)

MEDIA_TYPE = "application/problem+json"

# name: (status, title)
PROBLEMS: dict[str, tuple[int, str]] = {
    "malformed-body": (400, "The body cannot be read"),
    "malformed-host": (400, "The Host header cannot be read"),
    "unauthorized": (401, "A valid token is needed"),
    "forbidden": (403, "The token does not allow this"),
    "bad-assignment": (403, "The assignment does not hold"),
    "not-found": (404, "There is nothing here"),
    "unknown-plan": (404, "The plan is not known here"),
    "method-not-allowed": (405, "This address does not take that method"),
    "body-too-slow": (408, "The body took too long"),
    "head-too-slow": (408, "The headers took too long"),
    "id-reused": (409, "The id was used for another report"),
    "survey-exists": (409, "There is such a survey"),
    "no-reports": (409, "Nobody was heard yet"),
    "no-next-round": (409, "There is no next round"),
    "assignment-used": (409, "The assignment was used for another report"),
    "batch-closed": (409, "The shufflers' batch is closed"),
    "shuffled-plan": (409, "The plan's reports come through its shufflers"),
    "survey-closed": (410, "The survey is closed"),
    "body-too-large": (413, "The body is too large"),
    "unsupported-type": (415, "The body's type is not taken"),
    "invalid-report": (422, "The report cannot be one of its plan"),
    "wrong-time": (422, "The report is of a time that is not taken"),
    "invalid-input": (422, "The request breaks a rule"),
    "too-many-requests": (429, "Too many requests from one address"),
    "head-too-large": (431, "The address or the headers are too large"),
    "internal": (500, "A mistake of ours"),
    "not-installed": (501, "This collector was installed without it"),
    "busy": (503, "Too much at once; come again"),
    "estimate-under-way": (503, "The estimate is being made; come again"),
    "estimate-failed": (503, "The estimate could not be made"),
    "not-ready": (503, "The collector takes no reports now"),
    "store-full": (507, "The store is full"),
}


class Problem(Exception):
    """One of the problems above, with a sentence on this case."""

    def __init__(self, name: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.name, self.detail, self.headers = name, detail, headers or {}
        self.status, self.title = PROBLEMS[name]

    def to_json(self) -> dict[str, Any]:
        return {
            "type": PROBLEM + self.name,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }

    def body(self) -> bytes:
        return json.dumps(self.to_json()).encode()


# The first that fits; an error that is none of these is a mistake of ours.
_NAMES: tuple[tuple[type[SottovoceError], str], ...] = (
    (StoreFull, "store-full"),
    (SurveyClosed, "survey-closed"),
    (BatchClosed, "batch-closed"),
    (UnknownPlan, "unknown-plan"),
    (StoreError, "busy"),
    (MissingLibrary, "not-installed"),
    (BadAssignment, "bad-assignment"),
    (CorruptReport, "invalid-report"),
    (PlanMismatch, "invalid-report"),
    (InvalidInput, "invalid-input"),
    (SottovoceError, "invalid-input"),
)


def problem_of(wrong: BaseException) -> Problem:
    """The problem behind an error; what is not meant for a caller is not told."""
    if isinstance(wrong, Problem):
        return wrong
    for kind, name in _NAMES:
        if isinstance(wrong, kind):
            if name == "busy":  # what a store says of itself is for the log
                return Problem(
                    name, "the store cannot be reached; send it again", {"Retry-After": "1"}
                )
            return Problem(name, str(wrong))
    return Problem("internal", "the collector could not answer; nothing was stored")
