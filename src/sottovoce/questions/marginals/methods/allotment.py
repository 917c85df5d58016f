"""How many people tell each sign, for the least squared error of the workload's tables.

The symbols are those of :mod:`sottovoce.questions.marginals.methods.efron_stein`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.protocol.families.choices import elementary
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.methods.coefficients import counts, orders
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.marginals.workload import Places, Workload

# characters times their parts up to which signs of more attributes are used for fewer
POOLING_WORK = 1 << 28
LEAST_USE = 1e-12  # of an order in the workload, before its square root is taken
STEEPEST = 12.0  # logarithms of times and weights lie within this of each other
DESCENT_STEPS = 60

Kind = tuple[int, ...]  # how many attributes of each size a set has


def depth_of(work: Workload) -> int:
    """How many attributes a sign may have beyond those it is used for."""
    return work.order - 1 if sum(counts(work)) << work.order <= POOLING_WORK else 0


def leaks(work: Workload) -> list[float]:
    """The sum of squared means of each attribute's rows, (H - K)/K."""
    return [
        (order - size) / size for order, size in zip(orders(work.sizes), work.sizes, strict=True)
    ]


def sign_tickets(work: Workload, weights: Sequence[float]) -> list[float]:
    """The tickets of all characters of 1, 2, ... attributes, if every order counts once.

    Args:
        work: Says how many signs an attribute has, H - 1.
        weights: Of each attribute's signs, in the workload's order.
    """
    own = [weight * (order - 1) for weight, order in zip(weights, orders(work.sizes), strict=True)]
    return elementary(own, work.order)[1:]


@dataclass(frozen=True)
class Allotment:
    """How many people each character gets, and the error; attributes of one size are alike.

    A character of S, |S| = r attributes, has times_r prod over S of weight tickets, and in
    proportion w_S people. Over the tables A of the workload and S within A the squared error is

        E = sum of a_S(A)/L_S,    a_S(A) = prod over S of (K - 1) prod over A - S of 1/K,

    at the cost of sum over S of w_S prod over S of (H - 1) people. Without leaks (H = K), L_S = w_S
    prod over S of H, and for equal weights E is least for

        times_r proportional to sqrt(A_r/N_r),
        A_r = sum over A and |S| = r of a_S(A)/prod over S of H,

    with N_r characters of order r: the square root of how often the workload uses one. From there a
    descent settles the leaks and the weights of attributes of other sizes.

    Everywhere ``times`` is an array of shape (orders,), for 1, 2, ... attributes, and ``weights``
    one of shape (sizes,), in the order of :attr:`sizes`.
    """

    work: Workload

    @cached_property
    def sizes(self) -> list[int]:
        """The different K, increasing."""
        return sorted(set(self.work.sizes))

    @cached_property
    def _uses(self) -> tuple[NDArray[np.int64], Floats]:
        """The kinds of sets S in the workload's tables, and how much each is used.

        Returns:
            How many attributes of each size S has, (kinds, sizes); and the mean over tables of the
            sum of a_S / prod over S of H over such S, (kinds,).
        """
        tables: dict[Kind, int] = defaultdict(int)  # tables of each kind
        for places in self.work.sample:
            tables[self._kind(places)] += 1
        gains = [  # (K - 1)/H: an attribute in S
            (size - 1) / order for size, order in zip(self.sizes, orders(self.sizes), strict=True)
        ]
        uses: dict[Kind, float] = defaultdict(float)
        for table, often in tables.items():
            for kind in product(*(range(most + 1) for most in table)):
                if not any(kind):
                    continue  # the empty set's component is known
                use = float(often)
                for inside, most, gain, size in zip(kind, table, gains, self.sizes, strict=True):
                    # which of the attributes of this size are in S; 1/K for each of the others
                    use *= comb(most, inside) * gain**inside / float(size) ** (most - inside)
                uses[kind] += use / len(self.work.sample)
        return np.array(list(uses)), np.array(list(uses.values()))

    def _kind(self, places: Places) -> Kind:
        return tuple(sum(self.work.sizes[place] == size for place in places) for size in self.sizes)

    @cached_property
    def _depth(self) -> int:
        """How many attributes a sign may have beyond those it is used for."""
        return depth_of(self.work)

    @cached_property
    def _leaking(self) -> list[tuple[int, float, list[NDArray[np.bool_]]]]:
        """The sizes that leak.

        Returns:
            For each its column of kinds, its leak (H - K)/K, and for each of its attributes whether
            that is outside S, (kinds,).
        """
        kinds, _ = self._uses
        leak_of = dict(zip(self.work.sizes, leaks(self.work), strict=True))
        leaking = []
        for column, size in enumerate(self.sizes):
            if leak_of[size] > 0:
                numbers = range(self.work.sizes.count(size))
                is_outside = [
                    number >= kinds[:, column] for number in numbers
                ]  # the first are in S
                leaking.append((column, leak_of[size], is_outside))
        return leaking

    @cached_property
    def _asked(self) -> list[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
        """For 0, 1, ... attributes beyond S whether signs have so many, and their place in times.

        Both have shape (kinds,).
        """
        kinds, _ = self._uses
        members = kinds.sum(1)  # |S|, (kinds,)
        asked = []
        for j in range(self._depth + 1):
            order = np.minimum(members + j, self.work.order)
            asked.append((members + j <= self.work.order, order - 1))
        return asked

    def _leaked(self, weights: Floats) -> Floats:
        """Elementary symmetric polynomials of weight (H - K)/K over the attributes outside S.

        Returns:
            Of orders 0, 1, ... for each kind of S, (orders, kinds).
        """
        kinds, _ = self._uses
        deepest = min(self._depth, self.work.order - 1)
        sums = np.zeros((self.work.order, len(kinds)))
        sums[0] = 1.0
        for column, leak, outside in self._leaking:
            gain = weights[column] * leak
            for is_outside in outside:
                for j in reversed(range(deepest)):
                    sums[j + 1] += is_outside * gain * sums[j]
        return sums

    def error(self, times: Floats, weights: Floats) -> float:
        """E times the people per ticket: the squared error of one person in all, 1/kappa^2 = 1."""
        kinds, uses = self._uses
        sums = self._leaked(weights)
        # L_S / prod over S of H = prod over S of weight  sum over j of times_(|S| + j) e_j
        level = np.zeros(len(kinds))
        for j, (is_asked, place) in enumerate(self._asked):
            level += np.where(is_asked, times[place] * sums[j], 0.0)
        level *= np.prod(np.asarray(weights) ** kinds, axis=1)
        return float((uses / level).sum() * self.tickets(times, weights))

    def tickets(self, times: Floats, weights: Floats) -> float:
        """Those of all characters together."""
        by_attribute = [weights[place] * signs for place, signs in self._signs]
        return float(np.dot(times, elementary(by_attribute, self.work.order)[1:]))

    @cached_property
    def _signs(self) -> list[tuple[int, int]]:
        """For each attribute the place of its size, and how many signs it has, H - 1."""
        places = [self.sizes.index(size) for size in self.work.sizes]
        signs = [order - 1 for order in orders(self.work.sizes)]
        return list(zip(places, signs, strict=True))

    @cached_property
    def best(self) -> tuple[Floats, Floats]:
        """(times, weights) of least error."""
        minimize = imported("scipy.optimize").minimize

        kinds, uses = self._uses
        members = kinds.sum(1)  # |S|
        count = self.work.order
        # times_r = sqrt(A_r/N_r), and equal weights
        start = []
        for order, characters in enumerate(counts(self.work), 1):
            used = max(uses[members == order].sum(), LEAST_USE)
            start.append(sqrt(used / characters))
        logs = np.log(np.array([*start, *(1.0 for _ in self.sizes)]))  # (orders + sizes,)

        def split(values: Floats) -> tuple[Floats, Floats]:
            """Times and weights; a common factor of either changes nothing."""
            free = np.clip(values - np.max(values[:count]), -STEEPEST, STEEPEST)
            return np.exp(free[:count]), np.exp(free[count:] - free[count])

        def loss(values: Floats) -> float:
            return float(np.log(self.error(*split(values))))

        with one_thread():
            found = minimize(loss, logs, method="L-BFGS-B", options={"maxiter": DESCENT_STEPS})
        return split(found.x)


@lru_cache(maxsize=64)
def allotment_of(work: Workload) -> Allotment:
    """The allotment of a workload: the same at every epsilon and for any number of people."""
    return Allotment(work)
