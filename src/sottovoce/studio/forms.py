"""What somebody typed into the form for a new survey: as typed, and as a survey to plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.texts import Texts
from sottovoce.service.problems import Problem

MOST_BYTES = 1 << 18  # of a form
MOST_FIELDS = 2000
MAX_FORM_ATTRIBUTES = 64
MAX_FORM_VALUES = 10_000  # of an attribute: each is a row of a table
LONGEST_TEXT = 8  # bytes of a text, unless the form says more
SENT_CLEAR = "clear"
ATTRIBUTE_KINDS = ("boolean", "categorical", "ordinal", "text")
Fields = Sequence[tuple[str, str]]


async def read_form(request: Request) -> Fields:
    """The fields of a form that a page posted."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:
            raise Problem("body-too-large", f"a form must have at most {MOST_BYTES} bytes")
    try:
        return parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Problem("malformed-body", "the form cannot be read") from None


def one(fields: Fields, name: str, default: str = "") -> str:
    """The last value of a field."""
    return next((value.strip() for key, value in reversed(fields) if key == name), default)


@dataclass(frozen=True)
class Row:
    """One attribute as it was typed."""

    name: str = ""
    kind: str = ATTRIBUTE_KINDS[0]
    values: str = ""
    low: str = ""
    high: str = ""
    bins: str = ""
    longest: str = ""
    alphabet: str = ""
    missing: str = ""  # the answer of people who give none
    question: str = ""  # how people are asked for it, if not by its name
    sent: str = ""  # SENT_CLEAR if it travels as it is

    @property
    def is_empty(self) -> bool:
        """Whether nothing was typed: what the form offers by itself does not count."""
        return self == Row(kind=self.kind, missing=self.missing, sent=self.sent)

    def attribute(self) -> dict[str, Any]:
        """As a survey file has it."""
        told = self._kind()
        if self.sent == SENT_CLEAR:
            return told | {"sensitive": False}  # without an answer for who gives none
        if not self.missing or self.kind == "text":
            return told
        # of numbers it is the one below the lowest: the page has no field to type it into
        return told | {"missing": told["low"] - 1 if self.kind == "ordinal" else self.missing}

    def _kind(self) -> dict[str, Any]:
        """The same without the answer of people who give none."""
        where = f"attribute {self.name!r}"
        if self.kind == "categorical":
            values = [part.strip() for part in self.values.split(",") if part.strip()]
            if len(values) > MAX_FORM_VALUES:
                raise InvalidInput(
                    f"{where}: values ({len(values):,}) must be at most {MAX_FORM_VALUES:,}"
                )
            return {"kind": self.kind, "values": values}
        if self.kind == "ordinal":
            ends = {
                "low": _whole(f"{where}: lowest", self.low),
                "high": _whole(f"{where}: highest", self.high),
            }
            bins = _whole(f"{where}: groups", self.bins) if self.bins else None
            if (bins or ends["high"] - ends["low"] + 1) > MAX_FORM_VALUES:
                raise InvalidInput(
                    f"{where}: it must have at most {MAX_FORM_VALUES:,} values; "
                    "put them into groups"
                )
            return {"kind": self.kind, **ends, "bins": bins}
        if self.kind == "boolean":
            return {"kind": self.kind}
        if self.kind == "text":
            longest = _whole(f"{where}: longest", self.longest or str(LONGEST_TEXT))
            told = {"kind": self.kind, "bytes": longest, "longer": "cut"}
            return told | {"alphabet": self.alphabet} if self.alphabet else told
        raise InvalidInput(
            f"{where}: kind ({self.kind}) must be one of {', '.join(ATTRIBUTE_KINDS)}"
        )


@dataclass(frozen=True)
class Draft:
    """A survey as it was typed, right or wrong."""

    title: str = ""
    rows: tuple[Row, ...] = field(default=(Row(),))
    learn: str = "tables"
    up_to: str = "2"
    epsilon: str = "1.0"
    people: str = "10000"
    top: str = "16"
    coin: str = "device"
    trust: str = "local"
    delta: str = "1e-9"
    hops: str = ""  # public keys, with spaces or lines between
    introduction: str = ""
    consent: str = ""
    contact: str = ""
    language: str = ""

    @classmethod
    def of(cls, fields: Fields) -> Draft:
        """From the form's fields; every attribute has one of each."""
        whole = ("name", "kind", "values", "low", "high", "bins")
        parts = (*whole, "longest", "alphabet", "missing", "question", "sent")
        columns = [[value.strip() for key, value in fields if key == part] for part in parts]
        # the others may be lacking
        columns[len(whole) :] = [
            column or [""] * len(columns[0]) for column in columns[len(whole) :]
        ]
        if len({len(column) for column in columns}) > 1:
            raise Problem("malformed-body", "the form's attributes are not whole")
        rows = tuple(Row(*cells) for cells in zip(*columns, strict=True))
        plain = Draft()
        return cls(
            rows=rows or plain.rows,
            **{
                name: one(fields, name, getattr(plain, name))
                for name in (
                    *("title", "learn", "up_to", "epsilon", "people", "top", "coin"),
                    *("trust", "delta", "hops", "introduction", "consent", "contact"),
                    "language",
                )
            },
        )

    def body(self) -> dict[str, Any]:
        """The survey that it describes, as ``surveys.Survey.parse`` reads it, without its texts."""
        rows = [row for row in self.rows if not row.is_empty]
        if not rows:
            raise InvalidInput("attributes: give at least one a name")
        if len(rows) > MAX_FORM_ATTRIBUTES:
            raise InvalidInput(f"attributes ({len(rows)}) must be at most {MAX_FORM_ATTRIBUTES}")
        names = [row.name for row in rows]
        for place, name in enumerate(names):
            if not name:
                raise InvalidInput(f"attribute {place + 1}: give it a name")
            if name in names[:place]:
                raise InvalidInput(f"attribute {name!r}: names must be different")
        return {
            "epsilon": self.epsilon,
            "people": _whole("people", self.people.replace(",", "").replace(" ", "")),
            "schema": {row.name: row.attribute() for row in rows},
            "question": self._question([row for row in rows if row.sent != SENT_CLEAR]),
            "public": [row.name for row in rows if row.sent == SENT_CLEAR],
            "coin": self.coin,
            **self._trusted(),
        }

    def texts(self) -> Texts:
        """What the survey says to people."""
        return Texts(
            self.title,
            self.introduction,
            self.consent,
            self.contact,
            self.language,
            {row.name: row.question for row in self.rows if row.name},
        )

    def _trusted(self) -> dict[str, Any]:
        """Of a shuffled survey what it needs besides; of another one nothing."""
        if self.trust == "local":
            return {}
        return {"trust": self.trust, "delta": self.delta, "hops": self.keys}

    @property
    def keys(self) -> list[str] | None:
        """The public keys of a shuffled survey's hops; None of another one."""
        return None if self.trust == "local" else self.hops.lower().split()

    def _question(self, rows: Sequence[Row]) -> dict[str, Any]:
        names = [row.name for row in rows]
        if not names:
            raise InvalidInput("attributes: at least one must be randomised")
        if self.learn == "popular":
            if len(rows) > 1:
                raise InvalidInput(
                    "what is popular is asked of one attribute; leave the others out"
                )
            return {
                "kind": "heavy-hitters",
                "attribute": names[0],
                "top": _whole("most popular values", self.top),
            }
        free = [row.name for row in rows if row.kind == "text"]
        if free:
            raise InvalidInput(
                f"attribute {free[0]!r} is free text: learn what is popular, or give it a list"
            )
        if self.learn == "frequencies":
            return {"kind": "frequencies", "attributes": names}
        if self.learn != "tables":
            raise InvalidInput(f"learn ({self.learn}) must be frequencies, tables or popular")
        up_to = _whole("attributes together", self.up_to)
        if not 1 <= up_to <= len(names):
            raise InvalidInput(
                f"attributes together ({up_to}) must be 1 to the number of attributes "
                f"({len(names)})"
            )
        return {"kind": "marginals", "attributes": names, "up_to": up_to}


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{name} must be a whole number") from None
