"""Estimates whose tables are known: from a joint distribution, with errors stated as large as one
likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.questions.marginals.estimate import _Singles
from sottovoce.questions.marginals.method import Fit
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.results.words import CLOSED_FORM

Floats = NDArray[np.float64]


class KnownFit(Fit):
    """The tables of a joint distribution, whose cells err alike and sum to one."""

    errors: ClassVar[str] = CLOSED_FORM

    def __init__(self, joint: Floats, variance: float, unheard: Sequence[Places] = ()) -> None:
        self.joint, self.variance, self.unheard = joint, variance, unheard

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        every = range(self.joint.ndim)
        return [self.joint.sum(axis=tuple(set(every) - set(each))).ravel() for each in sets]

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        # a cell that is the sum of m of N cells: w m (1 - m/N) N/(N - 1) for w of a single one
        cells = self.joint.size
        sums = [cells // table.size for table in self.tables(sets)]
        each = [self.variance * count * (1 - count / cells) * cells / (cells - 1) for count in sums]
        return [
            np.full(cells // count, variance) for count, variance in zip(sums, each, strict=True)
        ]

    def is_unbiased(self, places: Places) -> bool:
        return True

    def is_heard(self, part: Places) -> bool:
        return part not in self.unheard


def known(
    joint: Floats,
    variance: float = 0.0,
    order: int = 2,
    people: int = 10_000,
    unheard: Sequence[Places] = (),
    **attributes: sv.Categorical,
) -> sv.MarginalEstimate:
    """The estimate of this joint distribution; attributes are named a, b, c, ... unless given.

    ``unheard``: pairs of places that were never asked.
    """
    kinds = attributes or {
        "abcdefghijkl"[place]: sv.Categorical(range(size)) for place, size in enumerate(joint.shape)
    }
    schema = sv.Schema(**kinds)
    work = Workload.of(schema, None, order)
    made = sv.MarginalEstimate(
        {}, people, work=work, fit=KnownFit(joint, variance, unheard), method="known", schema=schema
    )
    object.__setattr__(made, "tables", _Singles(made))
    return made


def chain(sizes: Sequence[int], seed: int) -> Floats:
    """The joint distribution of a Markov chain, each attribute strongly tied to the one before."""
    draws = np.random.default_rng(seed)
    joint = draws.dirichlet(np.full(sizes[0], 3.0))
    for size in sizes[1:]:
        steps = draws.dirichlet(np.full(size, 0.4), joint.shape[-1]) * 0.9 + 0.1 / size
        joint = joint[..., None] * steps
    return joint
