"""The thesis's way (7.6): a normal form of ANDs joined by OR, and inclusion and exclusion.

For methods that answer ranges and their products alone. Every other method is handed the disjoint
products of :mod:`~sottovoce.questions.queries.sql.masks`, which need neither.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.queries.sql.errors import SqlError
from sottovoce.questions.queries.sql.masks import Factors
from sottovoce.questions.queries.sql.predicates import And, Atom, Formula, Not, Outcome

MAX_CONJUNCTIONS = 256
MAX_SIGNED_TERMS = 1024

Sets = tuple[NDArray[np.bool_], ...]  # for each axis which classes are in
_Key = tuple[bytes, ...]


def inclusion_exclusion(
    formula: Formula, look: Callable[[int], Outcome], shape: tuple[int, ...]
) -> list[tuple[float, Factors]]:
    """A condition as a signed sum of products: |A or B| = |A| + |B| - |A and B|.

    Args:
        formula: the condition.
        look: where the atom of a number is true, and where false, over the grid of classes; each
            of them is about one axis at most.
        shape: the classes of each axis.

    Returns:
        (a whole number, a product): their sum is 1 where the condition is true and 0 elsewhere.
    """
    signed: dict[_Key, tuple[int, Sets]] = {}
    for conjunction in conjunctions(formula, look, shape):
        # what is new, less what was counted already
        added = [(1, conjunction)]
        for sign, known in signed.values():
            both = tuple(a & b for a, b in zip(known, conjunction, strict=True))
            added.append((-sign, both))
        for sign, sets in added:
            _add(signed, sign, sets)
        if len(signed) > MAX_SIGNED_TERMS:
            raise SqlError(
                f"inclusion and exclusion needs more than {MAX_SIGNED_TERMS:,} terms",
                hint="ask with fewer ORs, or plan with a method that answers any condition",
            )
    return [
        (float(sign), tuple(each.astype(float) for each in sets)) for sign, sets in signed.values()
    ]


def conjunctions(
    formula: Formula, look: Callable[[int], Outcome], shape: tuple[int, ...]
) -> list[Sets]:
    """The normal form: sets of classes for each axis, joined by OR. Empty ones are left out."""
    return [sets for sets in _normal(formula, True, look, shape) if all(s.any() for s in sets)]


def _normal(
    formula: Formula, wanted: bool, look: Callable[[int], Outcome], shape: tuple[int, ...]
) -> list[Sets]:
    """Where a formula is true, or where it is false; NOT moves down to the atoms."""
    if isinstance(formula, Not):
        return _normal(formula.part, not wanted, look, shape)
    if isinstance(formula, Atom):
        true, false = look(formula.number)
        chosen = true if wanted else false
        return [_on_axis(chosen, shape)] if chosen.any() else []
    if isinstance(formula, And) == wanted:
        # all of them: every choice of one conjunction from each
        found = [tuple(np.ones(size, bool) for size in shape)]
        for part in formula.parts:
            right = _normal(part, wanted, look, shape)
            pairs = [tuple(a & b for a, b in zip(x, y, strict=True)) for x in found for y in right]
            found = _limited([sets for sets in pairs if all(s.any() for s in sets)])
        return found
    listed: list[Sets] = []
    for part in formula.parts:
        listed = _limited(listed + _normal(part, wanted, look, shape))
    return listed


def _on_axis(true: NDArray[np.bool_], shape: tuple[int, ...]) -> Sets:
    """An atom's set, which is not empty, as a product of sets."""
    sets = [np.ones(size, bool) for size in shape]
    own = [axis for axis, size in enumerate(true.shape) if size > 1]
    if len(own) > 1:
        raise SqlError(
            "this method answers conditions on single columns, not comparisons between columns",
            hint="compare each column with numbers, or plan with a method that answers all",
        )
    if own:
        sets[own[0]] = true.reshape(-1)
    return tuple(sets)


def _limited(found: list[Sets]) -> list[Sets]:
    unique = {tuple(each.tobytes() for each in sets): sets for sets in found}
    if len(unique) > MAX_CONJUNCTIONS:
        raise SqlError(
            f"the normal form of the condition has more than {MAX_CONJUNCTIONS} parts",
            hint="ask with fewer ORs, or plan with a method that answers any condition",
        )
    return list(unique.values())


def _add(signed: dict[_Key, tuple[int, Sets]], sign: int, sets: Sets) -> None:
    """Count a product in; what cancels is gone."""
    if not all(each.any() for each in sets):
        return
    key = tuple(each.tobytes() for each in sets)
    total = signed.get(key, (0, sets))[0] + sign
    if total:
        signed[key] = (total, sets)
    else:
        signed.pop(key, None)
