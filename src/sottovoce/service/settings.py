"""What whoever runs a collector can choose."""

from __future__ import annotations

from dataclasses import dataclass

from sottovoce.ground.errors import InvalidInput
from sottovoce.service.addresses import is_origin, networks
from sottovoce.service.limits import (
    MAX_SURVEY_ATTRIBUTES,
    MAX_SURVEY_TABLE_CELLS,
    MAX_SURVEY_VALUES,
)

ASSIGNMENT_SECONDS = 24 * 3600  # for which an assignment holds, at most
MOST_ANALYST_BYTES = 1 << 20  # of a request's body that is no report, if reports may have more
PER_REPORT = 512  # bytes that a report takes at most besides its payload
POSITIVE = (
    "most_bytes",
    "most_reports",
    "most_assigned",
    "most_padded",
    "body_seconds",
    "answer_seconds",
    "assignment_seconds",
    "oldest_days",
    "most_values",
    "most_attributes",
    "most_cells",
)
METRICS = ("token", "public", "off")


@dataclass(frozen=True)
class Settings:
    """Limits of a collector; the defaults are for a survey on the open web."""

    most_bytes: int = 8 << 20  # of a request's body
    most_reports: int = 20_000  # in one request
    # in one request, if their coins are assigned: each takes long to check
    most_assigned: int = 500
    # bytes of a request's reports, each taken for as long as its plan's longest
    most_padded: int = 32 << 20
    # bytes that are read or wait to be written; beyond, senders are told to come again
    most_waiting: int = 256 << 20
    body_seconds: float = 10.0  # to send a body
    # until what was sent is durable, or the sender is told to come again
    answer_seconds: float = 30.0
    rate_limit: float | None = None  # requests a second from one address
    origins: tuple[str, ...] = ()  # other sites whose pages may send reports
    # addresses and networks of proxies that are believed about their clients
    proxies: tuple[str, ...] = ()
    # where participants' pages are: a browser keeps what it drew for one address alone
    address: str | None = None
    # where the first shuffler takes the sealed reports of participants' pages
    shuffler: str | None = None
    # of participants' pages; by default what each browser prefers
    language: str | None = None
    # who may read the counters: whoever has a token, everybody (public), or nobody (off)
    metrics: str = "token"
    assignment_seconds: int = ASSIGNMENT_SECONDS
    oldest_days: float = 30.0  # since the minute that a report's id tells
    refresh_seconds: float = 2.0  # between two estimates of a survey, at least
    most_values: int = MAX_SURVEY_VALUES  # of a survey that is made over HTTP
    most_attributes: int = MAX_SURVEY_ATTRIBUTES  # the same
    # of a table of several attributes that is asked for, if its plan does not
    most_cells: int = MAX_SURVEY_TABLE_CELLS

    def __post_init__(self) -> None:
        for name in POSITIVE:
            if getattr(self, name) <= 0:
                raise InvalidInput(f"{name} ({getattr(self, name)}) must be greater than 0")
        # or some could never get in
        least = 2 * self.most_bytes + self.most_padded + PER_REPORT * self.most_reports
        if self.most_waiting < least:
            raise InvalidInput(
                f"most_waiting ({self.most_waiting}) must be at least {least}, for the largest "
                "request"
            )
        if (
            self.assignment_seconds > ASSIGNMENT_SECONDS
        ):  # a key that was replaced is accepted for so long
            raise InvalidInput(
                f"assignment_seconds ({self.assignment_seconds}) must be at most "
                f"{ASSIGNMENT_SECONDS}"
            )
        if self.metrics not in METRICS:
            raise InvalidInput(f"metrics ({self.metrics}) must be one of {', '.join(METRICS)}")
        if self.rate_limit is not None and not self.rate_limit > 0:
            raise InvalidInput(f"rate_limit ({self.rate_limit}) must be greater than 0")
        networks(self.proxies)
        for name in ("address", "shuffler"):
            origin = getattr(self, name)
            if origin is not None and not is_origin(origin):
                raise InvalidInput(
                    f"{name} ({origin}) must be like https://survey.example.org, with no path"
                )
        for origin in self.origins:
            if origin != "*" and not origin.startswith(("http://", "https://")):
                raise InvalidInput(
                    f"origin ({origin}) must start with http:// or https://, or be *"
                )
