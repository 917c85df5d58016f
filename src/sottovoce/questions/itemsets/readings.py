"""What a round's answers say: candidates, sizes, or the frequencies of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.ground.extras import imported
from sottovoce.oracles import Noise, PureOracle
from sottovoce.protocol.encodings import Drawn, Held, Padded
from sottovoce.protocol.encodings.sets import Candidates
from sottovoce.questions.itemsets.associations import SetFindings
from sottovoce.questions.itemsets.known import ItemsHeard
from sottovoce.questions.itemsets.padding import counted
from sottovoce.questions.itemsets.sizes import Sizes
from sottovoce.results.cells import CellLabel
from sottovoce.results.estimate import Table
from sottovoce.results.findings import Findings

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reading:
    """The frequencies of candidates that a round heard."""

    candidates: Candidates
    values: Floats  # (candidates,)
    variances: Floats  # (candidates,)
    chance: Floats  # (candidates,): how many that nobody holds look as frequent
    noise: Noise
    # people, and the chance that one of them supports a candidate she does not hold
    support: tuple[int, float]
    is_unbiased: bool
    repair: str | None  # what was done to the values

    def best(self, count: int) -> Reading:
        """The most frequent ones, in order."""
        order = np.argsort(-self.values, kind="stable")[:count]
        candidates = tuple(self.candidates[row] for row in order)
        return replace(
            self,
            candidates=candidates,
            values=self.values[order],
            variances=self.variances[order],
            chance=self.chance[order],
        )

    def heard(self) -> tuple[ItemsHeard, ...]:
        """As a later plan holds them."""
        values, variances = self.values.tolist(), self.variances.tolist()
        rows = zip(self.candidates, values, variances, self.chance.tolist(), strict=True)
        return tuple(ItemsHeard(*row) for row in rows)

    def with_heard(self, heard: Sequence[ItemsHeard]) -> Reading:
        """Together with what was heard of other candidates before."""
        candidates = [item.candidate for item in heard]
        values = [item.frequency for item in heard]
        variances = [item.variance for item in heard]
        chance = [item.chance for item in heard]
        return replace(
            self,
            candidates=(*self.candidates, *candidates),
            values=np.concatenate([self.values, values]),
            variances=np.concatenate([self.variances, variances]),
            chance=np.concatenate([self.chance, chance]),
        )


def expected_false(
    values: Floats, floor: float | Floats, tested: int, people: float | Floats, q: float
) -> Floats:
    """For each estimate, how many candidates that nobody holds are expected to look as frequent.

    The support of such a candidate is binomial, and far from normal where it is rare.

    Args:
        values: the estimates, (candidates,).
        floor: the variance of the estimate of a candidate that nobody holds.
        tested: how many candidates were looked at.
        people: who each support such a candidate
        q: with this chance.

    Returns:
        Expected numbers, (candidates,).
    """
    # the support that such an estimate comes from: n q + z sqrt(n q (1 - q)), z = value / error
    deviation = np.sqrt(people * q * (1 - q))
    errors = values / np.sqrt(floor)
    support = people * q + errors * deviation
    # P[at least so many] = I_q(least, people - least + 1)
    least = np.clip(np.round(support), 1, people)
    tail = imported("scipy.special").betainc(least, people - least + 1, q)
    return np.asarray(tested * tail)


def read_frequencies(aggregate: Aggregate, sizes: Sizes | None = None) -> Reading:
    """The frequency of every candidate of a padded ask, multiplied by the update factor of
    ``sizes`` if given.
    """
    people = aggregate.cohort_people(0)
    ask = aggregate.plan.cohorts[0].asks[0]
    encoding, source = ask.encoding, ask.oracle
    assert isinstance(encoding, Padded | Drawn)
    assert isinstance(source, PureOracle)
    factor, factor_variance, repair = 1.0, 0.0, "length-limit"
    if sizes is not None:
        factor = sizes.update_factor(encoding.length)
        factor_variance = sizes.update_variance(encoding.length)
        repair = "update-factor"
    codes = np.arange(encoding.count, dtype=np.uint64)  # (candidates,)
    support = aggregate.support(0, 0, codes)
    told = counted(ask, support, people, factor, factor_variance)
    chance = expected_false(told.values, told.noise.floor, encoding.count, people, source.q)
    candidates = encoding.candidates
    if candidates is None:
        candidates = tuple((item,) for item in range(encoding.items))
    is_unbiased = encoding.length >= encoding.count  # nothing that a set holds is left out
    return Reading(
        candidates,
        told.values,
        told.variances,
        chance,
        told.noise,
        (people, source.q),
        is_unbiased,
        repair=None if is_unbiased else repair,
    )


def read_sizes(aggregate: Aggregate) -> Sizes:
    """The law of sizes as heard, unfiltered."""
    ask = aggregate.plan.cohorts[0].asks[0]
    assert isinstance(ask.encoding, Held)
    assert isinstance(ask.oracle, PureOracle)
    shares, _ = aggregate.frequencies(0)
    noise = ask.oracle.noise(aggregate.cohort_people(0))
    return Sizes(shares, noise.floor)


def sizes_found(
    attribute: str, sizes: Sizes, aggregate: Aggregate, notes: Sequence[str]
) -> Findings:
    """The law of sizes as findings: how many candidates people hold."""
    source = aggregate.plan.cohorts[0].asks[0].oracle
    assert isinstance(source, PureOracle)
    people, method = aggregate.people, aggregate.plan.asked["method"]
    order = np.argsort(-sizes.shares, kind="stable")  # (sizes,)
    labels: list[CellLabel] = order.tolist()
    values = sizes.shares[order]
    variances = np.full(len(order), sizes.variance)
    noise = Noise(sizes.variance, 0.0)
    table = Table((attribute,), labels, values, variances, people, noise, method=method)
    chances = expected_false(values, noise.floor, len(order), people, source.q)
    return Findings({(attribute,): table}, people, chances, (), notes)


def frequencies_found(
    attribute: str,
    reading: Reading,
    labels: Sequence[CellLabel],
    aggregate: Aggregate,
    notes: Sequence[str],
) -> SetFindings:
    """Frequencies as findings, in the order of the reading."""
    table = Table(
        (attribute,),
        labels,
        reading.values,
        reading.variances,
        aggregate.people,
        reading.noise,
        reading.is_unbiased,
        method=aggregate.plan.asked["method"],
        is_complete=False,
        repair=reading.repair,
    )
    return SetFindings({(attribute,): table}, aggregate.people, reading.chance, (), notes)
