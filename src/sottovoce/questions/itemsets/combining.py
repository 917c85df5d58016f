"""Two rounds' evidence on the same candidates, each weighed by what it can be trusted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sottovoce.oracles import Noise
from sottovoce.questions.itemsets.known import ItemsHeard
from sottovoce.questions.itemsets.readings import Floats, Reading, expected_false

STRONG_ERRORS = 4.0  # standard errors above which candidates show how the rounds compare
LEAST_STRONG = 3
LEAST_SPREAD = 0.05


def combined(reading: Reading, heard: Sequence[ItemsHeard], factor: float, tested: int) -> Reading:
    """The candidates of ``reading`` with what an earlier round of other people ``heard`` of the
    same ones.

    Both rounds underestimate candidates that people hold among many others, the earlier one more
    so. Its frequencies are multiplied by the ratio that strong candidates show (by ``factor`` if
    there are too few), and trusted up to the spread of those ratios: rare candidates gain from it,
    frequent ones are left as the later round has them.
    """
    earlier = {each.candidate: each for each in heard}
    both = np.array(
        [place for place, each in enumerate(reading.candidates) if each in earlier], int
    )
    if not len(both):
        return reading
    told = np.array([earlier[reading.candidates[place]].frequency for place in both])
    told_variance = np.array([earlier[reading.candidates[place]].variance for place in both])
    values, variances = reading.values[both], reading.variances[both]
    ratio, spread = _ratio(told, told_variance, values, variances, factor)
    # inverse variances, the earlier round's with (spread f)^2 added for what its factor may miss
    prior = ratio * told
    noise = ratio**2 * told_variance
    rough = np.maximum((prior / noise + values / variances) / (1 / noise + 1 / variances), 0)
    trust = 1 / (noise + (spread * rough) ** 2)
    weight = trust / (trust + 1 / variances)
    joint, joint_variance = reading.values.copy(), reading.variances.copy()
    joint[both] = weight * prior + (1 - weight) * values
    joint_variance[both] = 1 / (trust + 1 / variances)
    # how far a candidate that nobody holds strays with these weights
    floors = np.full(len(joint), reading.noise.floor)
    floors[both] = weight**2 * noise.min() + (1 - weight) ** 2 * reading.noise.floor
    law = Noise(float(floors.min()), reading.noise.slope)
    people, support = reading.support
    # people whose support strays as little
    alike = np.round(people * np.maximum(reading.noise.floor / floors, 1))
    chance = expected_false(joint, floors, tested, alike, support)
    return replace(
        reading, values=joint, variances=joint_variance, chance=chance, noise=law, repair="combined"
    )


def _ratio(
    told: Floats, told_variance: Floats, values: Floats, variances: Floats, factor: float
) -> tuple[float, float]:
    """(the later over the earlier frequency of strong candidates, how much candidates differ in
    it).
    """
    strong = (values > STRONG_ERRORS * np.sqrt(variances)) & (
        told > STRONG_ERRORS * np.sqrt(told_variance)
    )
    if strong.sum() < LEAST_STRONG:
        return factor, 1 - 1 / factor
    ratios = values[strong] / told[strong]
    errors = variances[strong] / values[strong] ** 2 + told_variance[strong] / told[strong] ** 2
    ratio = float(np.median(ratios))
    excess = float(np.mean((ratios / ratio - 1) ** 2 - errors))
    return ratio, max(LEAST_SPREAD, float(np.sqrt(max(0.0, excess))))
