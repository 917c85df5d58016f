"""Signs decoded by the Efron-Stein decomposition: a table is a sum of orthogonal components, one
for each set in it.

For an attribute of K values let H be the smallest power of two that holds them, and h_r the rows r
= 1 .. H - 1 of the Hadamard matrix on its first K columns, with means m_r and centred rows c_r =
h_r - m_r. Three sums carry everything:

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

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import comb, exp, prod, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.protocol.families import MOST_TICKETS, Block, Signs
from sottovoce.protocol.families.choices import elementary
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Floats, Method
from sottovoce.questions.marginals.methods.coefficients import (
    Coefficients,
    LinearFit,
    along,
    counts,
    debias,
    inverse_mean,
    orders,
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
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

# characters times their parts up to which signs of more attributes are used for fewer
POOLING_WORK = 1 << 28
# pairs of components of a table whose covariance is worked out; it is 0 in the mean
MOST_PRODUCTS = 1024
COHORT_CHUNK = 1 << 17
FINENESS = 20  # steps of an attribute's weight
SHARES = 200  # the least of the orders' tickets, for which rounding is half a per cent at most


def depth_of(work: Workload) -> int:
    """How many attributes a sign may have beyond those it is used for."""
    return work.order - 1 if sum(counts(work)) << work.order <= POOLING_WORK else 0


def leaks(work: Workload) -> list[float]:
    """The sum of squared means of each attribute's rows, (H - K)/K."""
    return [
        (order - size) / size for order, size in zip(orders(work.sizes), work.sizes, strict=True)
    ]


class EfronSteinFit(LinearFit):
    """Tables as sums of components, each from the signs that tell of it."""

    def __init__(
        self, work: Workload, coefficients: Coefficients, options: Mapping[str, Any]
    ) -> None:
        super().__init__(work, coefficients)
        self._weights = [float(each) for each in options["weights"]]
        self._times = [0.0, *(float(each) for each in options["times"])]
        self._depth = depth_of(work)
        self._rows = [hadamard(size)[1:, :size] for size in work.sizes]
        self._levels: dict[Places, float] = {}

    @staticmethod
    def axis(size: int) -> Floats:
        """1/K for what does not touch the attribute, else the centred rows."""
        rows = hadamard(size)[1:, :size]
        return np.concatenate(
            [np.full((size, 1), 1 / size), (rows - rows.mean(1, keepdims=True)).T], axis=1
        )

    def level(self, places: Places) -> float:
        """L_S."""
        if places not in self._levels:
            own = prod(self._weights[place] * (len(self._rows[place]) + 1) for place in places)
            leak = leaks(self._work)
            others = [
                self._weights[place] * leak[place]
                for place in range(len(self._weights))
                if place not in set(places)
            ]
            most = min(self._depth, self._work.order - len(places))
            sums = elementary(others, most)
            self._levels[places] = own * sum(
                self._times[len(places) + more] * sums[more] for more in range(most + 1)
            )
        return self._levels[places]

    @cached_property
    def _pooled(self) -> tuple[Floats, Floats, Floats]:
        """By cohort (S, r): phi_S(r), its variance, and how many of its signs nobody told."""
        source = self._coefficients
        missing = (~source.is_answered).astype(float)
        totals = np.zeros((3, len(source.means)))
        widest = max(len(rows) for rows in self._rows)
        means = np.zeros((len(self._rows), widest + 1))
        for place, rows in enumerate(self._rows):
            means[place, 1 : len(rows) + 1] = rows.mean(1)
        starts = source.family.starts
        for number in range(self._work.order):
            for first in range(starts[number], starts[number + 1], COHORT_CHUNK):
                column = np.arange(first, min(first + COHORT_CHUNK, starts[number + 1]))
                members, masks = source.family.reach(number, column)
                weights = self._times[number + 1] * np.array(self._weights)[members].prod(axis=1)
                leak = means[members, masks]
                for kept in self._kept(number + 1):
                    dropped = [slot for slot in range(number + 1) if slot not in kept]
                    factor = weights * leak[:, dropped].prod(axis=1)
                    used = np.flatnonzero(factor)
                    own = (
                        np.ascontiguousarray(members[used][:, kept]),
                        np.ascontiguousarray(masks[used][:, kept]),
                    )
                    target = source.family.cohorts_of(len(kept) - 1, *own)
                    told = column[used]
                    np.add.at(totals[0], target, factor[used] * source.means[told])
                    np.add.at(totals[1], target, factor[used] ** 2 * source.variances[told])
                    np.add.at(totals[2], target, missing[told])
        return totals[0], totals[1], totals[2]

    def _kept(self, order: int) -> list[list[int]]:
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
        """Components S and T share the signs of all B that contain both, with c_r m_r where only
        one has the attribute.

        They are independent if every character has as many respondents, since sum c_r m_r = 0; left
        out beyond MOST_PRODUCTS pairs.
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
            choices = [
                ("both", "one", "other") if leak[place] > 0 else ("both",) for place in union
            ]
            for states in product(*choices):
                pair = dict(zip(union, states, strict=True))
                one, other = (
                    tuple(p for p in union if pair[p] in ("both", side))
                    for side in ("one", "other")
                )
                if one and other and one != other:
                    matrices = [self._squared(place, pair.get(place)) for place in places]
                    inside = [
                        matrix
                        for place, matrix in zip(places, matrices, strict=True)
                        if place in pair
                    ]
                    added = along(shared, inside) / (self.level(one) * self.level(other))
                    outside = prod(
                        float(m[0, 0])
                        for p, m in zip(places, matrices, strict=True)
                        if p not in pair
                    )
                    total += outside * added.reshape(
                        [self._work.sizes[p] if p in pair else 1 for p in places]
                    )
        return total

    def _squared(self, place: int, state: str | None) -> Floats:
        """What a sign's variance adds to each value: of both components, of one, or of neither."""
        size = self._work.sizes[place]
        centred = self._axes[place][:, 1:]
        if state is None:
            return np.full((size, 1), 1 / size**2)
        if state == "both":
            return centred**2
        leaked: Floats = self._rows[place].mean(1)
        return centred * leaked / size


@dataclass(frozen=True)
class Allotment:
    """How many people each character gets, and the error; attributes of one size are alike.

    A character of S, |S| = r attributes, has times_r prod over S of weight tickets, and in
    proportion w_S people. Over the tables A of the workload and S within A the squared error is

        E = sum of a_S(A)/L_S,    a_S(A) = prod over S of (K - 1) prod over A - S of 1/K,

    at the cost of sum over S of w_S prod over S of (H - 1) people. Without leaks (H = K), L_S = w_S
    prod over S of H, and for equal weights E is least for

        times_r proportional to sqrt(A_r/N_r),    A_r = sum over A and |S| = r of a_S(A)/prod over S
        of H,

    with N_r characters of order r: the square root of how often the workload uses one. From there a
    descent settles the leaks and the weights of attributes of other sizes.
    """

    work: Workload

    @cached_property
    def sizes(self) -> list[int]:
        return sorted(set(self.work.sizes))

    @cached_property
    def _uses(self) -> tuple[Any, Floats]:
        """(how many attributes of each size a set S has, the mean over tables of a_S / prod H)."""
        tables = Counter(self._kind(places) for places in self.work.sample)
        ways: Counter[tuple[int, ...]] = Counter()
        inside = [
            (size - 1) / order for size, order in zip(self.sizes, orders(self.sizes), strict=True)
        ]
        for table, often in tables.items():
            for kind in product(*(range(most + 1) for most in table)):
                if any(kind):
                    value = float(often)
                    for own, most, gain, size in zip(kind, table, inside, self.sizes, strict=True):
                        value *= comb(most, own) * gain**own / float(size) ** (most - own)
                    ways[kind] += value / len(self.work.sample)  # type: ignore[assignment]
        return np.array(list(ways)), np.array(list(ways.values()))

    def _kind(self, places: Places) -> tuple[int, ...]:
        return tuple(sum(self.work.sizes[place] == size for place in places) for size in self.sizes)

    def error(self, times: Floats, weights: Floats) -> float:
        """E times the people per ticket: the squared error of one person in all, 1/kappa^2 = 1."""
        kinds, uses = self._uses
        depth = depth_of(self.work)
        leak = dict(zip(self.work.sizes, leaks(self.work), strict=True))
        sums = np.zeros((self.work.order, len(kinds)))
        sums[0] = 1.0
        for column, (size, weight) in enumerate(zip(self.sizes, weights, strict=True)):
            if leak[size] > 0:
                for number in range(self.work.sizes.count(size)):  # of the attributes outside S
                    outside = number >= kinds[:, column]
                    for more in reversed(range(min(depth, self.work.order - 1))):
                        sums[more + 1] += outside * (weight * leak[size]) * sums[more]
        own = kinds.sum(1)
        level = np.zeros(len(kinds))
        for more in range(depth + 1):
            reached = own + more <= self.work.order
            level += np.where(
                reached, times[np.minimum(own + more, self.work.order) - 1] * sums[more], 0.0
            )
        level *= np.prod(np.asarray(weights) ** kinds, axis=1)
        return float((uses / level).sum() * self.tickets(times, weights))

    def tickets(self, times: Floats, weights: Floats) -> float:
        own = [
            weights[self.sizes.index(size)] * (order - 1)
            for size, order in zip(self.work.sizes, orders(self.work.sizes), strict=True)
        ]
        return float(np.dot(times, elementary(own, self.work.order)[1:]))

    def best(self) -> tuple[Floats, Floats]:
        """(times, weights by size) of least error."""
        minimize = imported("scipy.optimize").minimize

        kinds, uses = self._uses
        own = kinds.sum(1)
        order = self.work.order
        start = [
            sqrt(max(uses[own == size].sum(), 1e-12) / count)
            for size, count in zip(range(1, order + 1), counts(self.work), strict=True)
        ]
        logs = np.log(np.array([*start, *(1.0 for _ in self.sizes)]))

        def split(values: Floats) -> tuple[Floats, Floats]:
            free = np.clip(values - np.max(values[:order]), -12, 12)
            return np.exp(free[:order]), np.exp(free[order:] - free[order])

        def loss(values: Floats) -> float:
            return float(np.log(self.error(*split(values))))

        found = minimize(loss, logs, method="L-BFGS-B", options={"maxiter": 60})
        return split(found.x)


@lru_cache(maxsize=64)
def _allotted(work: Workload) -> tuple[Floats, Floats]:
    """The best allotment, which is the same at every epsilon and for any number of people."""
    return Allotment(work).best()


class EfronStein(Method):
    """One sign each, as often as the workload uses it; categories by orthogonal components.

    People are shared out over orders and attributes by :class:`Allotment`.
    """

    name: ClassVar[str] = "efron-stein"
    about: ClassVar[str] = "one sign each, decoded by orthogonal components"
    source: ClassVar[str] = "cormode2018marginal, section 6.3, the decomposition it conjectures"

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        return too_many(work, terms.people)

    def settle(self, work: Workload, terms: Terms, **options: Any) -> dict[str, Any]:
        super().settle(work, terms, **options)
        allotment = Allotment(work)
        times, weights = _allotted(work)
        for fineness in (FINENESS, 10, 5, 2, 1):
            steps = (
                np.maximum(1, np.round(weights / weights.max() * fineness))
                if len(weights) > 1
                else np.ones(1)
            )
            # of a weight, by which an order r's tickets shrink r times
            scale = weights[0] / steps[0]
            exact = np.array([each * scale ** (place + 1) for place, each in enumerate(times)])
            whole = np.maximum(1, np.round(exact / exact.min() * SHARES))
            if allotment.tickets(whole, steps) < MOST_TICKETS / 4 and whole.max() < 1 << 53:
                break
        by_size = {size: int(step) for size, step in zip(allotment.sizes, steps, strict=True)}
        return {
            "weights": [by_size[size] for size in work.sizes],
            "times": [int(each) for each in whole],
        }

    def cohorts(
        self, schema: Schema, work: Workload, epsilon: Decimal, options: Mapping[str, Any]
    ) -> Signs:
        if len(options["times"]) != work.order:
            raise InvalidInput(f"times must be {work.order} numbers, one for each order")
        blocks = [Block("parity", order + 1, times) for order, times in enumerate(options["times"])]
        return sign_family(schema, work.names, options["weights"], blocks, epsilon)

    def fit(
        self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]
    ) -> EfronSteinFit:
        return EfronSteinFit(work, Coefficients(aggregate), options)

    def shares(
        self, work: Workload, options: Mapping[str, Any], parts: Sequence[Places]
    ) -> list[float]:
        blocks = [Block("parity", order + 1, times) for order, times in enumerate(options["times"])]
        return sign_shares(work.sizes, options["weights"], blocks, parts)

    def coefficients(self, work: Workload, part: Places) -> int:
        return sign_count(work.sizes, part)

    def predict(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
        allotment = Allotment(work)
        times = np.array(options["times"], float)
        by_size = dict(zip(work.sizes, options["weights"], strict=True))
        weights = np.array([by_size[size] for size in allotment.sizes], float)
        total = allotment.tickets(times, weights)
        # so many people for each character of an order, in the mean over them; some get nobody
        own = [
            weight * (order - 1)
            for weight, order in zip(options["weights"], orders(work.sizes), strict=True)
        ]
        mean = [
            each * tickets / number * terms.people / total
            for each, tickets, number in zip(
                times, elementary(own, work.order)[1:], counts(work), strict=True
            )
        ]
        heard = np.array([1 / (each * inverse_mean(each)) for each in mean])
        error = (
            allotment.error(times * heard, weights)
            * total
            / allotment.tickets(times * heard, weights)
        )
        structure = float(np.mean([spread(work, places) for places in work.sample]))
        mass = float(np.mean([squared_mass(work, places) for places in work.sample]))
        return (
            error * debias(terms.epsilon) / terms.people
            + exp(-mean[-1]) * structure
            - (1 - mass) / terms.people
        )

    def reason(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> str:
        shares = ", ".join(f"{share:.0%}" for share in people_shares(work, options))
        return (
            f"{sum(counts(work)):,} signs; of the people {shares} tell one of 1, 2, ... attributes"
        )


def people_shares(work: Workload, options: Mapping[str, Any]) -> list[float]:
    """The share of the people who tell signs of 1, 2, ... attributes."""
    own = [
        weight * (order - 1)
        for weight, order in zip(options["weights"], orders(work.sizes), strict=True)
    ]
    tickets: Sequence[Any] = elementary(own, work.order)[1:]
    each = [times * count for times, count in zip(options["times"], tickets, strict=True)]
    return [one / sum(each) for one in each]
