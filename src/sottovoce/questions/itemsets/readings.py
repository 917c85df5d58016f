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
    values: Floats
    variances: Floats
    chance: Floats
    noise: Noise
    # people, and the chance that one of them supports a candidate she does not hold
    support: tuple[int, float]
    is_unbiased: bool
    repair: str | None  # what was done to the values

    def best(self, count: int) -> Reading:
        """The most frequent ones, in order."""
        order = np.argsort(-self.values, kind="stable")[:count]
        return replace(
            self,
            candidates=tuple(self.candidates[place] for place in order),
            values=self.values[order],
            variances=self.variances[order],
            chance=self.chance[order],
        )

    def heard(self) -> tuple[ItemsHeard, ...]:
        """As a later plan holds them."""
        columns = (self.values.tolist(), self.variances.tolist(), self.chance.tolist())
        return tuple(ItemsHeard(*row) for row in zip(self.candidates, *columns, strict=True))

    def with_heard(self, heard: Sequence[ItemsHeard]) -> Reading:
        """Together with what was heard of other candidates before."""
        extra = np.array([(each.frequency, each.variance, each.chance) for each in heard]).reshape(
            -1, 3
        )
        return replace(
            self,
            candidates=(*self.candidates, *(each.candidate for each in heard)),
            values=np.concatenate([self.values, extra[:, 0]]),
            variances=np.concatenate([self.variances, extra[:, 1]]),
            chance=np.concatenate([self.chance, extra[:, 2]]),
        )


def expected_false(
    values: Floats, floor: float | Floats, tested: int, people: float | Floats, q: float
) -> Floats:
    """For each estimate, how many of ``tested`` candidates that nobody holds are expected to look
    as frequent.

    ``floor``: the variance of the estimate of such a candidate, which each of ``people`` supports
    with chance ``q``: the support is binomial, and far from normal where it is rare.
    """
    support = people * q + values / np.sqrt(floor) * np.sqrt(people * q * (1 - q))
    # P[at least so many] = I_q(least, people - least + 1)
    least = np.clip(np.round(support), 1, people)
    betainc = imported("scipy.special").betainc
    return np.asarray(tested * betainc(least, people - least + 1, q))


def read_frequencies(aggregate: Aggregate, sizes: Sizes | None = None) -> Reading:
    """The frequency of every candidate of a padded ask, multiplied by the update factor of
    ``sizes`` if given.
    """
    people = aggregate.cohort_people(0)
    ask = aggregate.plan.cohorts[0].asks[0]
    encoding = ask.encoding
    assert isinstance(encoding, Padded | Drawn)
    factor = variance = None
    if sizes is not None:
        factor, variance = (
            sizes.update_factor(encoding.length),
            sizes.update_variance(encoding.length),
        )
    support = aggregate.support(0, 0, np.arange(encoding.count, dtype=np.uint64))
    told = counted(ask, support, people, factor or 1.0, variance or 0.0)
    chance = ask.oracle.q if isinstance(ask.oracle, PureOracle) else 0.5
    candidates = encoding.candidates
    if candidates is None:
        candidates = tuple((item,) for item in range(encoding.items))
    is_unbiased = encoding.length >= encoding.count
    return Reading(
        candidates,
        told.values,
        told.variances,
        expected_false(told.values, told.noise.floor, encoding.count, people, chance),
        told.noise,
        (people, chance),
        is_unbiased,
        None if is_unbiased else "length-limit" if factor is None else "update-factor",
    )


def read_sizes(aggregate: Aggregate) -> Sizes:
    """The law of sizes as heard, unfiltered."""
    ask = aggregate.plan.cohorts[0].asks[0]
    assert isinstance(ask.encoding, Held)
    assert isinstance(ask.oracle, PureOracle)
    shares, _ = aggregate.frequencies(0)
    return Sizes(shares, ask.oracle.noise(aggregate.cohort_people(0)).floor)


def sizes_found(
    attribute: str, sizes: Sizes, aggregate: Aggregate, notes: Sequence[str]
) -> Findings:
    """The law of sizes as findings: how many candidates people hold."""
    order = np.argsort(-sizes.shares, kind="stable")
    labels: list[CellLabel] = order.tolist()
    noise = Noise(sizes.variance, 0.0)
    values, variances = sizes.shares[order], np.full(len(order), sizes.variance)
    method = aggregate.plan.asked["method"]
    table = Table((attribute,), labels, values, variances, aggregate.people, noise, method=method)
    source = aggregate.plan.cohorts[0].asks[0].oracle
    assert isinstance(source, PureOracle)
    chances = expected_false(values, noise.floor, len(order), aggregate.people, source.q)
    return Findings({(attribute,): table}, aggregate.people, chances, (), notes)


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
