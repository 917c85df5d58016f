"""Encodings: how a record becomes one value of a finite domain, and the ask that whispers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sottovoce.oracles import Oracle
from sottovoce.oracles import from_json as oracle_from_json
from sottovoce.protocol.encodings.base import Encoding, of_kind
from sottovoce.protocol.encodings.sets import Drawn, Held, Padded
from sottovoce.protocol.encodings.spellings import Extensions, Window
from sottovoce.protocol.encodings.tables import Cells, Grid, Intervals, Parities
from sottovoce.protocol.guarantee import Guarantee
from sottovoce.schema import Schema

__all__ = [
    "ENCODINGS", "Ask", "Cells", "Drawn", "Encoding", "Extensions", "Grid", "Held", "Intervals",
    "Padded", "Parities", "Window", "of_kind",
]  # fmt: skip

# Every encoding there is.
# A new one is a class in a file of this folder, a line here, and its kind in docs/wire.md.
ENCODINGS: tuple[type[Encoding], ...] = (
    Cells,
    Parities,
    Grid,
    Intervals,
    Window,
    Extensions,
    Padded,
    Held,
    Drawn,
)


@dataclass(frozen=True)
class Ask:
    """One thing a cohort is asked: a record becomes one of finitely many values, for an oracle."""

    encoding: Encoding
    oracle: Oracle

    def __post_init__(self) -> None:
        self.encoding.check(self.oracle)

    @property
    def guarantee(self) -> Guarantee:
        return self.encoding.guarantee(self.oracle)

    @property
    def requested(self) -> Fraction:
        return self.encoding.requested(self.oracle)

    def to_json(self) -> dict[str, Any]:
        return {"encoding": self.encoding.to_json(), "oracle": self.oracle.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Ask:
        encoding = of_kind("encoding", data["encoding"]["kind"], ENCODINGS)
        return cls(encoding.from_json(data["encoding"], schema), oracle_from_json(data["oracle"]))
