"""Signs decoded by the Efron-Stein decomposition: a table as a sum of orthogonal components.

There is a component for each set of the table's attributes. For an attribute of K values let H be
the smallest power of two that holds them, and h_r the rows r = 1 .. H - 1 of the Hadamard matrix on
its first K columns, with means m_r and centred rows c_r = h_r - m_r. Three sums carry everything:

    sum c_r c_r' = H (I - J/K)        sum c_r m_r = 0        sum m_r^2 = (H - K)/K

The centred rows are a tight frame of the K - 1 dimensions of functions of mean zero. A person of
cohort (B, r) tells the product of her signs, whose mean is theta_B(r) = sum over S within B of
(prod over B - S of m_r) <c_r on S, f_S>, with f_S the component of the table over S: a sign of more
attributes tells of fewer as well. With w_B people for each character of B, least squares over
everybody is diagonal in S, because of the second sum:

    f_S = (1/L_S) sum over r on S of c_r phi_S(r)
    phi_S(r) = sum over B containing S and r on B - S of w_B (prod over B - S of m_r) theta_B(r)
    L_S = (prod over S of H) sum over B containing S of w_B prod over B - S of (H - K)/K

By Gauss and Markov no unbiased linear decoding of the same reports has less variance, the inverse
Hadamard transform included; for powers of two the two are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from itertools import combinations, product
from math import exp, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import MOST_TICKETS, Block, Signs
from sottovoce.protocol.families.choices import elementary
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Floats, MarginalMethod
from sottovoce.questions.marginals.methods.allotment import (
    allotment_of,
    depth_of,
    leaks,
    sign_tickets,
)
from sottovoce.questions.marginals.methods.coefficients import (
    Coefficients,
    LinearFit,
    along,
    counts,
    debias,
    inverse_mean,
    parts,
    too_many,
)
from sottovoce.questions.marginals.models.signs import (
    hadamard,
    sign_count,
    sign_family,
    sign_shares,
)
from sottovoce.questions.marginals.models.structure import spread, squared_mass
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

# pairs of components of a table whose covariance is worked out; it is 0 in the mean
MOST_PRODUCTS = 1024
COHORT_CHUNK = 1 << 17  # cohorts whose signs are pooled at once
FINENESSES = (20, 10, 5, 2, 1)  # steps of an attribute's weight, as many as tickets allow
SHARES = 200  # the least of the orders' tickets, for which rounding is half a per cent at most


class EfronSteinFit(LinearFit):
    """Tables as sums of components, each from the signs that tell of it."""

    def __init__(self, work: Workload, coefficients: Coefficients, options: Options) -> None:
        super().__init__(work, coefficients)
        self._signs = coefficients
        self._weights = [float(each) for each in options["weights"]]
        self._times = [0.0, *(float(each) for each in options["times"])]
        self._depth = depth_of(work)
        self._rows = [hadamard(size)[1:, :size] for size in work.sizes]
        self._levels: dict[Places, float] = {}

    @staticmethod
    def axis(size: int) -> Floats:
        """1/K for what does not touch the attribute, else the centred rows.

        Returns:
            What each mask adds to each value, (K, H): masks 0, 1, ..., H - 1 in columns.
        """
        rows = hadamard(size)[1:, :size]  # h_r, (H - 1, K)
        centred = rows - rows.mean(1, keepdims=True)  # c_r
        untouched = np.full((size, 1), 1 / size)
        return np.concatenate([untouched, centred.T], axis=1)

    def level(self, places: Places) -> float:
        """L_S of a set S of attributes."""
        if places not in self._levels:
            self._levels[places] = self._level(places)
        return self._levels[places]

    def _level(self, places: Places) -> float:
        # w_B = times_|B| prod over B of weight, so that with |B| = |S| + j
        # L_S = (prod over S of weight H) sum over j of times_(|S| + j) e_j,
        # e_j the elementary symmetric polynomial of  weight (H - K)/K  over all attributes not in S
        own = prod(self._weights[place] * (len(self._rows[place]) + 1) for place in places)
        leak = leaks(self._work)
        outside = [place for place in range(len(self._weights)) if place not in places]
        most = min(self._depth, self._work.order - len(places))
        sums = elementary([self._weights[place] * leak[place] for place in outside], most)
        level: float = own * sum(self._times[len(places) + j] * sums[j] for j in range(most + 1))
        return level

    @cached_property
    def _pooled(self) -> tuple[Floats, Floats, Floats]:
        """By cohort (S, r): phi_S(r), its variance, and how many of its signs nobody told.

        Returns:
            Three arrays of shape (cohorts,).
        """
        source = self._signs
        totals = np.zeros((3, len(source.means)))
        starts = source.family.starts  # blocks are of 1, 2, ... attributes
        for block in range(self._work.order):
            for first in range(starts[block], starts[block + 1], COHORT_CHUNK):
                last = min(first + COHORT_CHUNK, starts[block + 1])
                self._pool(block, np.arange(first, last), totals)
        return totals[0], totals[1], totals[2]

    def _pool(self, block: int, cohorts: NDArray[np.int64], totals: Floats) -> None:
        """Add what some cohorts (B, r) of one block tell of every S within B.

        Args:
            block: Its number; B has one attribute more.
            cohorts: The cohorts' numbers, (n,).
            totals: What is added to, (3, cohorts): see :meth:`_pooled`.
        """
        source = self._signs
        members, masks = source.family.reach(block, cohorts)  # both (n, |B|)
        weights = np.array(self._weights)[members]  # (n, |B|)
        shares = self._times[block + 1] * weights.prod(axis=1)  # w_B, (n,)
        means = self._means[members, masks]  # m_r, (n, |B|)
        for kept in self._kept(block + 1):
            # w_B prod over B - S of m_r: what the sign counts in phi_S(r)
            dropped = [slot for slot in range(block + 1) if slot not in kept]
            factor = shares * means[:, dropped].prod(axis=1)  # (n,)
            used = np.flatnonzero(factor)  # others leave S as it is
            target = source.family.cohorts_of(
                len(kept) - 1,
                np.ascontiguousarray(members[used][:, kept]),
                np.ascontiguousarray(masks[used][:, kept]),
            )
            told = cohorts[used]
            np.add.at(totals[0], target, factor[used] * source.means[told])
            np.add.at(totals[1], target, factor[used] ** 2 * source.variances[told])
            np.add.at(totals[2], target, (~source.is_answered[told]).astype(float))

    @cached_property
    def _means(self) -> Floats:
        """m_r of each attribute's rows, (attributes, largest H): masks in columns, 0 for none."""
        widest = max(len(rows) for rows in self._rows)
        means = np.zeros((len(self._rows), widest + 1))
        for place, rows in enumerate(self._rows):
            means[place, 1 : len(rows) + 1] = rows.mean(1)
        return means

    def _kept(self, order: int) -> list[list[int]]:
        """The slots of S within B, for every S that a sign of ``order`` attributes is used for."""
        fewest = max(1, order - self._depth)
        return [
            list(slots)
            for size in range(fewest, order + 1)
            for slots in combinations(range(order), size)
        ]

    def means(self, places: Places) -> Floats:
        return self._pooled[0][self._coefficients.cohorts(places)] / self.level(places)

    def noise(self, places: Places) -> Floats:
        return self._pooled[1][self._coefficients.cohorts(places)] / self.level(places) ** 2

    def is_unbiased(self, places: Places) -> bool:
        if len(places) > self._work.order:
            return False
        return not any(
            bool(self._pooled[2][self._coefficients.cohorts(part)].any()) for part in parts(places)
        )

    def covariances(self, places: Places) -> Floats | float:
        """What the components' covariances add to the variances of a table's cells.

        Components S and T share the signs of all B that contain both, with c_r m_r where only one
        has the attribute. They are independent if every character has as many respondents, since
        sum c_r m_r = 0; left out (0) beyond MOST_PRODUCTS pairs.

        Returns:
            An array of the table's shape, an axis for each of ``places``.
        """
        leak = leaks(self._work)
        leaking = [place for place in places if leak[place] > 0]
        if not leaking or self._depth < self._work.order - 1:
            return 0.0
        if 4 ** len(leaking) * 2 ** (len(places) - len(leaking)) > MOST_PRODUCTS:
            return 0.0
        total = np.zeros(self._work.shape(places))
        for union in parts(places):
            shared = self._pooled[1][self._coefficients.cohorts(union)]
            # an attribute of the union is in both components, or in one if its rows leak
            choices = [
                ("both", "one", "other") if leak[place] > 0 else ("both",) for place in union
            ]
            for states in product(*choices):
                state = dict(zip(union, states, strict=True))
                one = tuple(place for place in union if state[place] != "other")
                other = tuple(place for place in union if state[place] != "one")
                if one and other and one != other:
                    matrices = [self._squared(place, state[place]) for place in union]
                    added = along(shared, matrices) / (self.level(one) * self.level(other))
                    # attributes of neither component: 1/K of each, in both
                    untouched = prod(1 / self._work.sizes[p] ** 2 for p in places if p not in state)
                    shape = [self._work.sizes[p] if p in state else 1 for p in places]
                    total += untouched * added.reshape(shape)
        return total

    def _squared(self, place: int, state: str) -> Floats:
        """What a sign's variance adds to each value of an attribute.

        Args:
            place: The attribute.
            state: Whether it is in ``both`` components or in one of them.

        Returns:
            c_r^2, or c_r m_r / K, (K, H - 1).
        """
        centred = self._axes[place][:, 1:]  # c_r, (K, H - 1)
        if state == "both":
            return centred**2
        means: Floats = self._rows[place].mean(1)  # m_r, (H - 1,)
        return centred * means / self._work.sizes[place]


class EfronStein(MarginalMethod):
    """One sign each, as often as the workload uses it; categories by orthogonal components.

    People are shared out over orders and attributes by :class:`Allotment`.
    """

    name: ClassVar[str] = "efron-stein"
    about: ClassVar[str] = "one sign each, decoded by orthogonal components"
    source: ClassVar[str] = "cormode2018marginal, section 6.3, the decomposition it conjectures"

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        return too_many(work, terms.people)

    def settle(self, work: Workload, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        allotment = allotment_of(work)
        times, weights = allotment.best  # (orders,), (sizes,)
        for fineness in FINENESSES:  # until the tickets are few enough to be numbered
            steps = np.ones(1)  # whole weights, (sizes,)
            if len(weights) > 1:
                steps = np.maximum(1, np.round(weights / weights.max() * fineness))
            # a step stands for so much of a weight, by which an order r's tickets shrink r times
            scale = weights[0] / steps[0]
            exact = np.array([times[r - 1] * scale**r for r in range(1, len(times) + 1)])
            whole = np.maximum(1, np.round(exact / exact.min() * SHARES))  # whole times, (orders,)
            if allotment.tickets(whole, steps) < MOST_TICKETS / 4 and whole.max() < 1 << 53:
                break
        by_size = {size: int(step) for size, step in zip(allotment.sizes, steps, strict=True)}
        return {
            "weights": [by_size[size] for size in work.sizes],
            "times": [int(each) for each in whole],
        }

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Signs:
        if len(options["times"]) != work.order:
            raise InvalidInput(f"times must be {work.order} numbers, one for each order")
        blocks = _blocks(options["times"])
        return sign_family(schema, work.names, options["weights"], blocks, epsilon)

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> EfronSteinFit:
        return EfronSteinFit(work, Coefficients(aggregate), options)

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        blocks = _blocks(options["times"])
        return sign_shares(work.sizes, options["weights"], blocks, parts)

    def coefficients(self, work: Workload, part: Places) -> int:
        return sign_count(work.sizes, part)

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        allotment = allotment_of(work)
        times = np.array(options["times"], float)  # (orders,)
        by_size = dict(zip(work.sizes, options["weights"], strict=True))
        weights = np.array([by_size[size] for size in allotment.sizes], float)  # (sizes,)
        total = allotment.tickets(times, weights)

        # so many people for each character of an order, in the mean over them; some get nobody
        tickets = sign_tickets(work, options["weights"])
        people = []  # of orders 1, 2, ...
        for own_times, own, characters in zip(times, tickets, counts(work), strict=True):
            people.append(own_times * own / characters * terms.people / total)
        # N of them err as 1/E[1/N] everywhere would, which is this share of E[N]
        heard = np.array([1 / (expected * inverse_mean(expected)) for expected in people])
        told = allotment.error(times * heard, weights) * total
        error = told / allotment.tickets(times * heard, weights)

        structure = float(np.mean([spread(work, places) for places in work.sample]))
        mass = float(np.mean([squared_mass(work, places) for places in work.sample]))
        noise = error * debias(terms.epsilon) / terms.people
        # a character that nobody tells, with chance e^-E[N], leaves out its structure
        unheard = exp(-people[-1]) * structure
        # the people asked are all there are: less the variance of a sample, sum of f(1 - f)/n
        sampled = (1 - mass) / terms.people
        return noise + unheard - sampled

    def reason(self, work: Workload, terms: Terms, options: Options) -> str:
        shares = ", ".join(f"{share:.0%}" for share in people_shares(work, options))
        return (
            f"{sum(counts(work)):,} signs; of the people {shares} tell one of 1, 2, ... attributes"
        )


def _blocks(times: Sequence[int]) -> list[Block]:
    """Parities of 1, 2, ... attributes, each block as often as its order counts."""
    return [Block("parity", order, often) for order, often in enumerate(times, 1)]


def people_shares(work: Workload, options: Options) -> list[float]:
    """The share of the people who tell signs of 1, 2, ... attributes."""
    tickets = sign_tickets(work, options["weights"])
    parts = [often * own for often, own in zip(options["times"], tickets, strict=True)]
    total = sum(parts)
    return [part / total for part in parts]
