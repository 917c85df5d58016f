"""Series of rounds: what is asked next depends on what was heard, and nobody answers twice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import LARGEST_INTEGER, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families.base import share_of

_ID = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Series:
    """The rounds a plan belongs to. A person's round is drawn once; a later plan names its parent.

    ``shares``: how the crowd is split over the rounds; ``number``: this plan's round, from 0.
    """

    shares: tuple[int, ...] = (1,)
    number: int = 0
    origin: str | None = None  # the id of the first round's plan
    parent: str | None = None  # the id of the round before

    def __post_init__(self) -> None:
        if not self.shares:
            raise InvalidInput("rounds must have at least one share")
        for share in self.shares:
            if not isinstance(share, int):
                raise InvalidInput("rounds must be whole numbers")
            whole("rounds", share, 1, LARGEST_INTEGER)
        whole("round", self.number, 0, len(self.shares) - 1)
        for name, plan_id in (("origin", self.origin), ("parent", self.parent)):
            named = isinstance(plan_id, str) and _ID.fullmatch(plan_id) is not None
            if (self.number > 0) != named or (self.number == 0 and plan_id is not None):
                raise InvalidInput(
                    f"{name} must be the id of a plan in every round but the first, and none there"
                )

    def at(self, ticket: int) -> int:
        """The round of a uniform ticket of ``range(sum(shares))``."""
        return int(self.at_column(np.array([ticket]))[0])

    def at_column(self, tickets: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The rounds of many tickets."""
        return share_of(tickets, self.shares)

    def to_json(self) -> dict[str, Any]:
        return {
            "shares": list(self.shares),
            "round": self.number,
            "origin": self.origin,
            "parent": self.parent,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Series:
        return cls(tuple(data["shares"]), data["round"], data["origin"], data["parent"])
