"""What a value must reach on its way through coded windows, beside noise and its own ghosts.

A beginning of a value, of the first so many windows, must be among the best that the search keeps.
The whole must be among the best of all. And there are ghosts: values that nobody holds, but that
begin like a popular one. They have its score in the windows that they share with it, so that only
the other windows tell them from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.questions.heavyhitters.sensitivity import expected_false, free_places, noise_score

Floats = NDArray[np.float64]
DRAWS = 1 << 14  # values whose ways are tried for a prediction
DRAWS_SEED = 12
MOST_LOST = 32  # popular values that were not found
MOST_SHARED = 2  # windows whose cells a value shares with popular ones by chance, at most


@dataclass(frozen=True, eq=False)
class Passage:
    """The windows as a value passes them.

    Attributes:
        fresh: The new bits of each window.
        people: Who tell each window.
        buckets: The values of a hash.
        kept: Of each window, how many beginnings the search goes on with.
        width: The bits of a window.
    """

    fresh: Sequence[int]
    people: Sequence[int]
    buckets: int
    kept: Sequence[int]
    width: int

    @cached_property
    def shares(self) -> Floats:
        """The share of the people who tell each window, (windows,)."""
        return np.array(self.people) / sum(self.people)

    @cached_property
    def _ends(self) -> Floats:
        """Bits of the first so many windows, (windows,)."""
        return np.cumsum(self.fresh).astype(float)

    @cached_property
    def beginnings(self) -> Floats:
        """The score that each beginning must pass to be kept, (windows,)."""
        heard = np.cumsum(self.people)
        tails = np.array(self.kept) / 2.0**self._ends
        return noise_score(tails, heard, self.buckets)

    def ghosts(self, tested: ArrayLike) -> Floats:
        """How many values share each beginning but the whole, of so many that may be held.

        Args:
            tested: (values,) or one number.

        Returns:
            Numbers, (..., windows - 1).
        """
        shared = 2.0 ** -self._ends[:-1]
        return np.asarray(tested, float)[..., None] * shared

    # -- of values that were found

    def chances(self, scores: Floats, tested: Floats, popular: int) -> Floats:
        """How many values that nobody holds are expected to look as popular, ghosts among them.

        Args:
            scores: (values, windows).
            tested: how many values had the chance that each had, (values,).
            popular: values that have ghosts.

        Returns:
            Numbers, (values,).
        """
        total = np.zeros(len(scores))
        for shared, share in self._ghostly(popular):
            own = [window for window in range(len(self.people)) if window not in shared]
            heard = sum(self.people[window] for window in own)
            rest = scores[:, own].sum(axis=1)
            total += expected_false(tested * share, rest, heard, self.buckets)
        return total

    def _ghostly(self, popular: int) -> Iterator[tuple[tuple[int, ...], float]]:
        """Windows that a value may share with popular ones, and the share of values that do."""
        windows = range(len(self.people))
        for count in range(min(MOST_SHARED, len(windows) - 1) + 1):
            for shared in combinations(windows, count):
                # cells meet by their hash, whichever popular values that were not found put
                # something into them; what was found is taken out of its cells
                yield shared, (min(popular, MOST_LOST) * 2.0**-self.width) ** count
        for count in range(1, len(windows)):
            # or the values begin alike
            yield tuple(windows[:count]), popular * 2.0 ** -float(self._ends[count - 1])

    def moved(self, scores: Floats, totals: Floats) -> Floats:
        """The scores of values that would have these ``totals``, all else the same.

        How a total is shared out among windows, beyond their share of the people, tells nothing of
        a value's frequency.
        """
        excess = totals - scores.sum(axis=1)
        return np.asarray(scores + excess[:, None] * self.shares)

    def least_totals(self, scores: Floats, tested: Floats) -> Floats:
        """The total from which the search comes by each of the values that it found.

        Args:
            scores: (values, windows).
            tested: how many values had the chance that each had, (values,).

        Returns:
            Totals, (values,); minus infinity where nothing was in the way.
        """
        totals = scores.sum(axis=1)
        heard = np.cumsum(self.shares)
        sums = np.cumsum(scores, axis=1)  # (values, windows)
        # P_w = c_w T + what does not depend on T, so that P_w > a_w from T + (a_w - P_w) / c_w
        short = (self.beginnings - sums) / heard
        limits = [totals[:, None] + short]
        if len(self.people) > 1:
            # as large as the best ghost is, half of the time
            ghosts = np.maximum(self.ghosts(tested), 1e-9)
            people = sum(self.people) - np.cumsum(self.people)[:-1]
            best = noise_score(log(2) / ghosts, people, self.buckets)
            rest = totals[:, None] - sums[:, :-1]
            limits.append(totals[:, None] + (best - rest) / (1 - heard[:-1]))
        every = np.concatenate(limits, axis=1)
        # a limit that is not passed was lower this time: what is found was found
        passed = np.where(every <= totals[:, None], every, -np.inf)
        return np.asarray(passed.max(axis=1))

    # -- of values that may be found

    def threshold(self, tested: float, top: int, gain: float, slope: float, chance: float) -> float:
        """How frequent a value must be to be found with this chance, among noise and its ghosts.

        Args:
            tested: how many values may be held.
            top: how many are wanted.
            gain: what one person adds to the score of the value that she holds, on average.
            slope: by how much, relative to noise, a score's variance grows with the frequency.
            chance: of finding it.
        """
        frequency = 0.0
        for _ in range(3):  # the noise of the value itself grows a little with its frequency
            needed = self._needed(tested, top, gain, 1 + slope * frequency)
            frequency = max(float(np.quantile(needed, chance)), 0.0)
        return frequency

    def _needed(self, tested: float, top: int, gain: float, variance: float) -> Floats:
        """The frequency that a value needs to be found, in each of many draws of noise, (draws,).

        Args:
            tested: how many values may be held.
            top: how many are wanted.
            gain: what one person adds to the score of the value that she holds, on average.
            variance: of the value's own score, relative to that of noise.
        """
        draws = np.random.default_rng(DRAWS_SEED)
        people = np.array(self.people, float)  # (windows,)
        spread = np.sqrt(people * (self.buckets - 1) * variance)
        noise = draws.standard_normal((DRAWS, len(people))) * spread  # (draws, windows)
        heard = np.cumsum(people)
        sums = np.cumsum(noise, axis=1)
        # f gain n_w + noise > limit, for the beginnings ...
        needed = [(self.beginnings - sums) / (gain * heard)]
        # ... for the whole: the largest but k - 1 of N values that nobody holds has a tail of about
        # Gamma(k) / N, with k the places that are free for them ...
        tails = draws.standard_gamma(free_places(top), DRAWS) / tested
        best = noise_score(tails, heard[-1], self.buckets)
        needed.append(((best - sums[:, -1]) / (gain * heard[-1]))[:, None])
        # ... and for what tells it from its ghosts
        if len(people) > 1:
            rest = sums[:, -1:] - sums[:, :-1]
            others = heard[-1] - heard[:-1]
            tails = draws.standard_exponential(rest.shape) / self.ghosts(tested)
            best = noise_score(tails, others, self.buckets)
            needed.append((best - rest) / (gain * others))
        return np.asarray(np.concatenate(needed, axis=1).max(axis=1))
