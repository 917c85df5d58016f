"""What tables may be off by, because nobody was asked how some of their attributes go together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from math import prod

import numpy as np

from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.structure import (
    EVENNESS,
    PAIR_TIE,
    TRIPLE_TIE,
    UNKNOWN_TIE,
)
from sottovoce.questions.marginals.workload import Places, Workload


def tie_variances(
    work: Workload, places: Places, table: Floats, is_tied: Callable[[Places], bool]
) -> Floats:
    """What maximum entropy may be off by, for all up to three attributes that no view holds.

    Args:
        work: What the attributes are.
        places: The attributes of the table.
        table: Its frequencies, (cells,).
        is_tied: Whether a view holds some attributes together.

    Returns:
        Variances of the cells, (cells,).
    """
    if is_tied(places):
        return np.zeros(table.size)
    unknown = []
    for count in range(1, min(3, len(places)) + 1):
        unknown += [own for own in combinations(places, count) if not is_tied(own)]
    return unknown_variances(work, places, table, unknown)


def unknown_variances(
    work: Workload,
    places: Places,
    table: Floats,
    parts: Iterable[Places],
    shares: Mapping[Places, float] | None = None,
) -> Floats:
    """What a table may be off by, because nothing was heard of some parts of it.

    Of two attributes that nobody was asked about together any tie is as likely as any other; of
    three, what goes beyond their pairs is as is usual.

    Args:
        work: What the attributes are.
        places: The attributes of the table.
        table: Its frequencies, (cells,).
        parts: Sets of these attributes.
        shares: Of a part, the share of its variance that is unknown; all of it unless given.

    Returns:
        Variances of the cells, (cells,).
    """
    shape = work.shape(places)
    cube = table.reshape(shape)
    axes = range(len(shape))
    odds = {}  # (1 - f_a) / f_a of each attribute, along its axis of the table
    for axis, (place, size) in enumerate(zip(places, shape, strict=True)):
        share = cube.sum(axis=tuple(other for other in axes if other != axis))  # (size,)
        share = np.clip(share, 0.5 / size**2, 1)
        along = [-1 if other == axis else 1 for other in axes]
        odds[place] = ((1 - share) / share).reshape(along)
    out = np.zeros(shape)
    for own in parts:
        # f_S = prod f_a + r prod sqrt(f_a (1 - f_a))
        # relative to f_S:  r prod sqrt((1 - f_a) / f_a)
        square = UNKNOWN_TIE if len(own) == 2 else tie_square(work, own)  # r^2
        unknown = 1.0 if shares is None else shares.get(own, 1.0)
        out += square * unknown * prod((odds[place] for place in own), start=np.ones(1))
    return np.asarray((out * cube**2).ravel())


def tie_square(work: Workload, places: Places) -> float:
    """The mean squared tie of attributes beyond what fewer of them say.

    That of one attribute is its own distance from uniform.
    """
    if len(places) == 1:
        # Var f / (f (1 - f)) at f = 1/K for a Dirichlet law of parameter a over K values
        return 1 / (work.sizes[places[0]] * EVENNESS + 1)
    return {2: PAIR_TIE**2, 3: TRIPLE_TIE**2}.get(len(places), 0.0)
