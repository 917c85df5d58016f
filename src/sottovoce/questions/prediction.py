"""What a question promises before anybody is asked: figures, and the methods it could take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sottovoce.ground.errors import InvalidInput

# of one attribute, of two, of a whole table
OF_SHARES, OF_PAIRS, OF_TABLES = "shares", "pairs", "tables"
UNPREDICTED = "its error is not known beforehand"  # the reason of a method without a figure
PREDICTED_KINDS = (OF_SHARES, OF_PAIRS, OF_TABLES)


@dataclass(frozen=True)
class Figure:
    """How well something will be known: the standard error of a share.

    Attributes:
        what: Of what it is the error.
        error: Root mean square over all cells of that kind.
        kind: One of ``PREDICTED_KINDS``.
        worst: The attributes whose cells err most; empty if there is nothing to choose from.
        worst_error: Root mean square over their cells; ``error`` if it is not given.

    >>> Figure("a cell of a pair", 0.01).largest
    0.01
    """

    what: str
    error: float
    kind: str = OF_SHARES
    worst: str = ""
    worst_error: float | None = None

    @property
    def largest(self) -> float:
        """The error of the worst attributes."""
        return self.error if self.worst_error is None else self.worst_error

    def to_json(self) -> dict[str, Any]:
        """All of it, by name."""
        return asdict(self)

    def __str__(self) -> str:
        """In percentage points, with what is worst if that is told."""
        worst = f" (worst: {self.worst} {points(self.largest)})" if self.worst else ""
        return f"{self.what} +- {points(self.error)} points{worst}"


def points(error: float) -> str:
    """An error in percentage points, two digits.

    >>> points(0.0206), points(0.4), points(2.5)
    ('2.1', '40', '250')
    """
    return f"{100 * error:.2g}" if error < 1 else f"{100 * error:.0f}"


@dataclass(frozen=True)
class Prediction:
    """What is expected of a question under its terms.

    ``error`` is what a planner goes by: of frequencies the error of the worst attribute, of
    marginals the root mean squared error over the cells of all tables asked for; with ``is_share``
    the share of people who must hold a value for an even chance that it is found. ``unknown`` says
    why there is no such figure, and is empty if there is one. What people plan by are the
    ``figures``, apart for single attributes, pairs and larger tables.

    >>> Prediction(0.01, "grr", (Figure("x", 0.01),)).methods
    ('grr',)
    """

    error: float
    method: str  # the one that makes this error
    # of what is asked for: of frequencies the worst attribute first, of marginals shares first
    figures: tuple[Figure, ...] = ()
    oracles: tuple[str, ...] = ()  # where attributes have oracles of their own
    is_share: bool = False
    unknown: str = ""

    def largest(self, kind: str | None) -> float | None:
        """The error of the worst attributes, of one kind of figures; None if it has none of them.

        Without a kind that of single shares and of pairs, whichever is larger. Where no table has
        more than two attributes, tables are pairs.
        """
        own = {figure.kind for figure in self.figures}
        kinds = {kind}
        if kind is None:
            kinds = {OF_SHARES, OF_PAIRS}
        elif kind == OF_TABLES and OF_TABLES not in own:
            kinds = {OF_PAIRS}
        errors = [figure.largest for figure in self.figures if figure.kind in kinds]
        return max(errors, default=None)

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
