"""Two rounds' evidence on the same candidates, each weighed by what it can be trusted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sottovoce.oracles import Noise
from sottovoce.questions.itemsets.choice import ChosenBy, expected_false, star_values
from sottovoce.questions.itemsets.known import ItemsHeard
from sottovoce.questions.itemsets.readings import Floats, Reading

STRONG_ERRORS = 4.0  # standard errors above which candidates show how the rounds compare
LEAST_STRONG = 3
LEAST_SPREAD = 0.05
# how far candidates' own ratios usually lie from the common one, in parts of what that corrects, as
# read off kosarak, retail, online_retail and lastfm; it counts as much as so many candidates
UNLIKE = 0.9
LIKE_CANDIDATES = 6
UNKNOWN_SPREAD = 0.3  # if too few strong candidates show any of it


def combined(reading: Reading, heard: Sequence[ItemsHeard], factor: float, tested: int) -> Reading:
    """The candidates of ``reading`` with what an earlier round of other people ``heard`` of the
    same ones.

    Both rounds underestimate candidates that people hold among many others, the earlier one more
    so. Its frequencies are multiplied by the ratio that strong candidates show (by ``factor`` if
    there are too few), and trusted up to the spread of those ratios: rare candidates gain from it,
    frequent ones are left as the later round has them.

    Args:
        reading: what the later round says.
        heard: what the earlier round said of some of its candidates.
        factor: what the earlier frequencies must be multiplied by, as far as sizes tell.
        tested: how many candidates were looked at in all.
    """
    earlier = {item.candidate: item for item in heard}
    rows = [row for row, each in enumerate(reading.candidates) if each in earlier]
    if not rows:
        return reading
    same = [earlier[reading.candidates[row]] for row in rows]
    frequencies = [item.frequency for item in same]
    told_variances = [item.variance for item in same]
    before = Rated(np.array(frequencies), np.array(told_variances))
    after = Rated(reading.values[rows], reading.variances[rows])
    ratio, spread = _ratio(before, after, factor)
    prior = Rated(ratio * before.values, ratio**2 * before.variances)
    # the mean by inverse variances; then again, with (spread f)^2 added to the earlier round's for
    # what its factor may miss
    rough = np.maximum(_mean(prior, after), 0)
    doubted = prior.variances + (spread * rough) ** 2  # (rows,)
    trust = 1 / doubted
    total = trust + 1 / after.variances
    weight = trust / total  # of the earlier round, (rows,)
    values = reading.values.copy()
    values[rows] = weight * prior.values + (1 - weight) * after.values
    variances = reading.variances.copy()
    variances[rows] = 1 / total
    # how far a candidate that nobody holds strays with these weights
    later_floor = reading.noise.floor
    floors = np.full(len(values), later_floor)  # (candidates,)
    earlier_floor = prior.variances.min()
    floors[rows] = weight**2 * earlier_floor + (1 - weight) ** 2 * later_floor
    doubt = reading.choice.doubt.copy()
    doubt[rows] = weight**2 * (spread * rough) ** 2 + (1 - weight) ** 2 * doubt[rows]
    # what an earlier frequency had to exceed, and how far it strays from what both rounds say
    least = min(item.frequency for item in heard)
    passed, passed_error = np.zeros(len(values)), np.zeros(len(values))
    passed[rows] = ratio * least
    passed_error[rows] = np.sqrt(np.maximum(doubted - 1 / total, 0))
    people, support = reading.support
    # people whose support strays as little
    times = np.maximum(later_floor / floors, 1)
    alike = np.round(people * times)
    stars = star_values(floors, tested, alike, support)
    return replace(
        reading,
        values=values,
        variances=variances,
        chance=expected_false(values, floors, tested, alike, support),
        choice=ChosenBy(stars, floors, doubt, passed, passed_error),
        noise=Noise(float(floors.min()), reading.noise.slope),
        repair="combined",
    )


@dataclass(frozen=True, eq=False)
class Rated:
    """One round's frequencies of some candidates, and their variances."""

    values: Floats  # (rows,)
    variances: Floats  # (rows,)

    @property
    def is_strong(self) -> NDArray[np.bool_]:
        """Whether each stands far above the noise."""
        strong: NDArray[np.bool_] = self.values > STRONG_ERRORS * np.sqrt(self.variances)
        return strong

    def at(self, rows: NDArray[np.bool_]) -> Rated:
        """Some of them."""
        return Rated(self.values[rows], self.variances[rows])

    @property
    def relative_variances(self) -> Floats:
        """Variances over squared values."""
        return self.variances / self.values**2


def _mean(one: Rated, other: Rated) -> Floats:
    """The mean of both, by inverse variances."""
    sums = one.values / one.variances + other.values / other.variances
    mean: Floats = sums / (1 / one.variances + 1 / other.variances)
    return mean


def _ratio(before: Rated, after: Rated, factor: float) -> tuple[float, float]:
    """How the rounds compare.

    Returns:
        The later over the earlier frequency of strong candidates, or ``factor`` if there are too
        few; and how far that may be from a candidate's own, relative to it.
    """
    is_strong = after.is_strong & before.is_strong
    count = int(is_strong.sum())
    if count < LEAST_STRONG:
        return factor, max(1 - 1 / factor, UNKNOWN_SPREAD)
    before, after = before.at(is_strong), after.at(is_strong)
    ratios = after.values / before.values
    ratio = float(np.median(ratios))
    # Var[a/b] / (a/b)^2 = Var a / a^2 + Var b / b^2: what is above that is not noise
    errors = after.relative_variances + before.relative_variances
    squares = (ratios / ratio - 1) ** 2
    excess = float((squares - errors).sum())
    # few candidates tell little of how they differ: beside them stands what is usual
    usual = max(UNLIKE * (1 - 1 / max(ratio, factor)), LEAST_SPREAD)
    between = (LIKE_CANDIDATES * usual**2 + excess) / (LIKE_CANDIDATES + count)
    between = max(between, 0.75 * usual**2)
    # the variance of a median is pi/2 that of a mean
    of_median = np.pi / 2 * (float(errors.mean()) + between) / count
    return ratio, float(np.sqrt(between + of_median))
