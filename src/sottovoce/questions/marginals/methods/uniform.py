"""The baseline that asks nobody: every cell is as likely as any other."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sottovoce.oracles import oracle
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit, Floats, MarginalMethod
from sottovoce.questions.marginals.models.structure import spread
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Options
from sottovoce.results.words import CLOSED_FORM
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate


class UniformFit(Fit):
    """The same frequency everywhere; its error is that of a typical table."""

    errors: ClassVar[str] = CLOSED_FORM

    def __init__(self, work: Workload) -> None:
        self._work = work

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        out = []
        for places in sets:
            cells = self._work.cells(places)
            out.append(np.full(cells, 1 / cells))
        return out

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        # the expected squared distance of a table from the uniform one, shared by its cells
        out = []
        for places in sets:
            cells = self._work.cells(places)
            out.append(np.full(cells, spread(self._work, places) / cells))
        return out

    def is_reconstructed(self, places: Places) -> bool:
        return True

    def is_heard(self, part: Places) -> bool:
        return False


class Uniform(MarginalMethod):
    """The uniform table, whatever people say.

    A plan needs an ask, so one attribute is asked and not used.
    """

    name: ClassVar[str] = "uniform"
    about: ClassVar[str] = "every cell alike, nobody's answer used"
    source: ClassVar[str] = "zhang2018calm, section 5.1"
    is_baseline: ClassVar[bool] = True

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        return None

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        first = Cells.of(schema, work.names[0])
        source = oracle("adaptive", size=first.size, epsilon=epsilon)
        return Listed([Cohort((Ask(first, source),))])

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> Fit:
        return UniformFit(work)

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        return [0.0] * len(parts)

    def is_whole(self, work: Workload, options: Options, places: Places) -> bool:
        return False

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        return float(np.mean([spread(work, places) for places in work.sample]))
