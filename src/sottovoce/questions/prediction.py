"""What a question promises before anybody is asked: figures, and the methods it could take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sottovoce.ground.errors import InvalidInput


@dataclass(frozen=True)
class Figure:
    """How well something will be known: the standard error of a share."""

    what: str
    error: float


@dataclass(frozen=True)
class Prediction:
    """What is expected of a question under its terms.

    ``error`` is what people plan by: the root mean squared error of a cell, of the worst attribute
    where there are several; with ``is_share`` the share of people who must hold a value for an even
    chance that it is found. ``unknown`` says why there is no such figure, and is empty if there is
    one.

    >>> Prediction(0.01, "grr", (Figure("x", 0.01),)).methods
    ('grr',)
    """

    error: float
    method: str  # the one that makes this error
    figures: tuple[Figure, ...] = ()  # of what is asked for, the worst first
    oracles: tuple[str, ...] = ()  # where attributes have oracles of their own
    is_share: bool = False
    unknown: str = ""

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods or oracles that are at work."""
        return self.oracles or (self.method,)


@dataclass(frozen=True)
class Rank:
    """A method in a planner's ranking. One that does not fit has a reason and no figures."""

    method: str
    predicted_sse: float | None
    per_cell: float | None  # root mean squared error
    ratio: float | None  # of the squared error to the best method's
    reason: str
    chosen: bool
    never_asked: int | None  # attributes and pairs of the plan's tables that it leaves out

    def to_json(self) -> dict[str, Any]:
        """All of it, by name."""
        return asdict(self)


class DoesNotFit(InvalidInput):
    """A method that cannot answer a question under these terms; others may."""

    def __init__(self, method: str, message: str) -> None:
        super().__init__(message)
        self.method = method

    def __reduce__(self) -> tuple[Any, ...]:  # errors cross processes
        return type(self), (self.method, str(self))
