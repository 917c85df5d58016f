"""The square wave for one ordered dimension: everybody names a place near her value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle
from sottovoce.oracles.wave import SquareWave
from sottovoce.postprocessing.smoothing import smoothed_em
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Cohort, Family, Listed
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import Options
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.method import QueryMethod
from sottovoce.questions.queries.target import Target
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

BOOTSTRAPS = 24  # crowds drawn from the fitted table, whose answers tell how far ours may be off
BOOTSTRAP_SEED = 20


@dataclass(frozen=True, eq=False)
class WaveTable(FittedTable):
    """Frequencies of one dimension, decoded from the places that people named.

    Errors are those of answers of crowds that were drawn from the fitted frequencies: what the
    smoothing of a spike costs is not in them.
    """

    source: SquareWave
    heard: Floats  # how much weight named each place, (places,)
    worth: float  # as many equal reports would err as much
    is_unbiased: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.source.size,)

    @cached_property
    def shares(self) -> Floats:
        """The decoded frequencies, (size,)."""
        return smoothed_em(self.source, self.heard)

    @cached_property
    def _redrawn(self) -> Floats:
        """Frequencies decoded from drawn crowds, (crowds, size)."""
        draws = np.random.default_rng(BOOTSTRAP_SEED)
        chances = self.source.place_chances(self.shares)
        reports = max(1, round(self.worth))
        crowds = draws.multinomial(reports, chances / chances.sum(), BOOTSTRAPS)
        return np.stack([smoothed_em(self.source, crowd) for crowd in crowds])

    def joint(self, terms: Sequence[Term]) -> Joint:
        whole = np.ones(self.source.size)
        weights = np.stack([np.asarray(term.get(0, whole), float) for term in terms])
        values = weights @ self.shares
        errors = self._redrawn @ weights.T  # (crowds, terms)
        errors = errors - errors.mean(axis=0)
        covariance = errors.T @ errors / (BOOTSTRAPS - 1)
        return Joint(values, covariance)


class SquareWaves(QueryMethod):
    """A place near the value through a square wave; decoded by smoothed expectation maximization.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    li2020numerical.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "square-wave"
    about = "a place near the value, decoded by smoothed expectation maximization"
    source = "li2020numerical"
    is_baseline = True

    def refuse(self, target: Target, terms: Terms) -> str | None:
        if len(target) != 1 or not target.dimensions[0].is_ordered:
            return "a square wave is for one dimension whose values have an order"
        if target.sizes[0] > SquareWave.largest:
            return f"{target.sizes[0]:,} values are more than {SquareWave.largest:,}"
        return None

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        encoding = Cells.of(schema, *target.names)
        made = oracle("square-wave", size=encoding.size, epsilon=epsilon)
        return Listed([Cohort((Ask(encoding, made),))])

    def fit(
        self,
        target: Target,
        aggregate: Aggregate,
        options: Options,
        squares: Floats | None = None,
        counted: FittedTable | None = None,
    ) -> WaveTable:
        made = aggregate.plan.cohorts[0].oracles[0]
        assert isinstance(made, SquareWave)
        heard = aggregate.state(0).astype(float)
        if heard.min() < 0 or not heard.sum() > 0:
            raise InvalidInput(
                "weights of reports must not be negative for square-wave, and some must be above 0"
            )
        total = float(heard.sum())
        square = total if squares is None else float(squares[0])
        return WaveTable(made, heard, total**2 / square)
