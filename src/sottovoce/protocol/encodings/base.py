"""What an encoding is: how a record becomes one value of a finite domain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.oracles import Oracle
from sottovoce.protocol.guarantee import Guarantee
from sottovoce.schema import CODE, Schema


class Encoding(ABC):
    """How a record becomes one of finitely many values. If it draws, it says at what cost."""

    kind: ClassVar[str]
    form: ClassVar[str] = CODE  # what it reads of its attributes
    attributes: tuple[str, ...]  # the attributes it reads
    delta: Fraction | None = None  # the chance that its guarantee fails, if it has one

    @property
    @abstractmethod
    def size(self) -> int:
        """How many values there are."""

    @abstractmethod
    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        """The value of one record."""

    @abstractmethod
    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Any:
        """The values of many records: a column of integers, or words where they exceed 64 bits."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What a device needs to know."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Encoding:
        """The inverse of :meth:`to_json`."""

    def check(self, oracle: Oracle) -> None:
        """Refuse an oracle that cannot whisper these values."""
        if self.size != oracle.size:
            raise InvalidInput(
                f"plan: an oracle of size {oracle.size} cannot take {self.size} values"
            )

    def guarantee(self, oracle: Oracle) -> Guarantee:
        """What a person is promised whose value goes through ``oracle``: its own, unless drawn."""
        return Guarantee(oracle.epsilon, oracle.lifetime_epsilon)

    def requested(self, oracle: Oracle) -> Fraction:
        """What this costs as it was asked for, exactly."""
        return Fraction(oracle.requested)


K = TypeVar("K")


def of_kind(part: str, kind: Any, known: Sequence[type[K]]) -> type[K]:
    """The class of this kind, of those there are."""
    for candidate in known:
        if candidate.kind == kind:  # type: ignore[attr-defined]
            return candidate
    names = ", ".join(each.kind for each in known)  # type: ignore[attr-defined]
    raise InvalidInput(f"plan: {part} ({kind}) must be one of {names}")
