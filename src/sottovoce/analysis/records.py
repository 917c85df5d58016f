"""Records drawn from tables: codes by chance, then the schema's labels or values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.results.estimate import Floats
from sottovoce.schema import Attribute, Ordinal, Schema

Integers = NDArray[np.int64]
MAX_SYNTHETIC_PEOPLE = 1 << 30


def generator(people: int, seed: int) -> np.random.Generator:
    """The generator of a seed; refuses a number of people or a seed that cannot be."""
    whole("people", people, 1, MAX_SYNTHETIC_PEOPLE)
    return np.random.Generator(np.random.PCG64(whole("seed", seed, 0, 1 << 128)))


def draw_cells(distribution: Floats, people: int, draws: np.random.Generator) -> Integers:
    """A cell for everybody, from one distribution."""
    return _places(np.cumsum(distribution), draws.random(people))


def draw_given(conditionals: Floats, given: Integers, draws: np.random.Generator) -> Integers:
    """A value for everybody, each from the row that is given.

    Args:
        conditionals: The frequencies of values in each row, (rows, values).
        given: Everybody's row, (people,).
        draws: The generator.

    Returns:
        Values, (people,).
    """
    values = conditionals.shape[1]
    # rows laid end to end: row i covers the interval from i to i + 1
    totals = conditionals.sum(axis=1, keepdims=True)
    ladder = (np.cumsum(conditionals, axis=1) / totals).clip(0, 1)
    ladder += np.arange(len(conditionals))[:, None]
    places = _places(ladder.ravel(), given + draws.random(len(given)))
    return np.asarray(np.clip(places - given * values, 0, values - 1), np.int64)


def _places(rising: Floats, points: Floats) -> Integers:
    """For each point the first of the rising numbers above it; the last one if there is none."""
    found = np.searchsorted(rising, points, side="right")
    return np.minimum(found, rising.size - 1).astype(np.int64)


def conditionals_of(table: Floats, otherwise: Floats) -> Floats:
    """The last attribute given the others, a row per cell of theirs; ``otherwise`` if empty.

    Args:
        table: Frequencies, the last axis that of the attribute, (..., values).
        otherwise: The distribution of a row without people, (values,).

    Returns:
        Distributions, (cells of the others, values).
    """
    rows = np.maximum(table.reshape(-1, table.shape[-1]), 0.0)
    totals = rows.sum(axis=1, keepdims=True)
    is_known = totals > 0
    return np.where(is_known, rows / np.where(is_known, totals, 1.0), otherwise)


def frame(schema: Schema, codes: Mapping[str, Integers]) -> Any:
    """A data frame of the schema's labels."""
    pd = imported("pandas")

    return pd.DataFrame(
        {name: _column(schema[name].labels())[column] for name, column in codes.items()}
    )


def people_of(schema: Schema, codes: Mapping[str, Integers]) -> dict[str, NDArray[Any]]:
    """Columns of values that the schema encodes as these codes."""
    return {name: _column(_values(schema[name]))[column] for name, column in codes.items()}


def _values(attribute: Attribute) -> Sequence[Any]:
    """A value for each code; of a bin, its first one."""
    if isinstance(attribute, Ordinal) and attribute.bins is not None:
        return attribute.starts
    return attribute.labels()


def _column(labels: Sequence[Any]) -> NDArray[Any]:
    """Labels as numpy has them; of mixed kinds, or text, as objects."""
    kinds = {type(label) for label in (labels[:1] if isinstance(labels, range) else labels)}
    if kinds in ({int}, {bool}):
        return np.array(labels)
    column = np.empty(len(labels), object)
    column[:] = list(labels)
    return column


def checked_names(known: Sequence[str], names: Sequence[str] | None) -> tuple[str, ...]:
    """Some different attributes of those known; all by default."""
    if names is None:
        return tuple(known)
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise InvalidInput("attributes must be a list of one or more different names")
    for name in names:
        if name not in known:
            raise InvalidInput(
                f"attribute {name!r} is not in the plan (it has: {', '.join(known)})"
            )
    return tuple(names)
