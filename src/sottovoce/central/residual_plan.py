"""How much noise each residual gets: the least error of all tables for a given privacy.

The table of the attributes A is a sum of residuals, one for each set B of these attributes: what
the table of B says beyond those of fewer attributes, spread evenly over the others. Residuals are
orthogonal, so each is measured once, with noise of variance s_B^2 on the cells of B, and serves
every table that has it. With n_i the number of values of attribute i, and P_B = prod (1 - 1/n_i),

    mu^2        = sum over B of P_B / s_B^2
    Var of cell = sum over B in A of s_B^2 P_B prod over A\\B of n_j^-2        xiao2023optimal

so the least sum of w_A Var_A has s_B^2 = lam sqrt(P_B / V_B), where V_B = P_B sum over A of
w_A prod over A\\B of n_j^-2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, combinations_with_replacement, product
from math import comb, prod
from typing import Literal

from sottovoce.accounting import GaussianStep, Neighbours, mu_of, rounded_variance
from sottovoce.central.domains import Places, symmetric_sums
from sottovoce.central.method import ReleaseTerms
from sottovoce.ground.errors import InvalidInput

Shape = tuple[int, ...]  # the sizes of some attributes, increasing
Equal = Literal["counts", "tables"]
EQUALS: tuple[Equal, ...] = ("counts", "tables")

REFINEMENT = 1 << 10  # the noise costs so many times more than its lattice
_ROUNDING = 1e-9
_MOST_REPLACEMENTS = 1 << 13  # (case, shape) pairs that are compared
_SHARE_DIGITS = 8  # binary ones of a residual's share of the noise: near enough to the best


@dataclass(frozen=True)
class ResidualPlan:
    """The noise of every residual of up to ``order`` attributes, from public facts alone.

    All attributes of one size are treated alike, so the noise of a residual depends on the sizes of
    its attributes.

    Attributes:
        sizes: of the attributes.
        order: how many attributes the largest tables have.
        neighbours: whom the guarantee compares.
        shares: of each shape, s_B^2 / ``scale``.
        scale: a variance, common to all.

    >>> from decimal import Decimal
    >>> plan = ResidualPlan.of((2, 2, 2), ReleaseTerms(Decimal(1), Decimal("1e-6"), 1))
    >>> round(math.sqrt(plan.squared_mu), 3)
    0.237
    """

    sizes: tuple[int, ...]
    order: int
    neighbours: Neighbours
    shares: tuple[tuple[Shape, Fraction], ...]
    scale: Fraction

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        terms: ReleaseTerms,
        weights: Sequence[float] | None = None,
        equal: Equal = "counts",
    ) -> ResidualPlan:
        """The plan of least error.

        Args:
            sizes: of the attributes.
            terms: the privacy that is promised, and how many attributes tables have.
            weights: for 1, 2, ... attributes what the mean variance of a count of so many is worth;
                equal by default.
            equal: what weighs the same among tables of as many attributes: every count, or every
                table.
        """
        order = terms.up_to
        worth = checked_weights(weights, order)
        relative = {}
        for shape in _shapes(sizes, order):
            gain = _gain(sizes, shape, worth, equal)
            cost = squared_sensitivity(shape, terms.neighbours) / kept_share(shape)
            if cost > 0:
                relative[shape] = math.sqrt(cost / gain)
        largest = max(relative.values())
        shares = tuple((shape, _coarse(each / largest)) for shape, each in relative.items())
        made = cls(tuple(sizes), order, terms.neighbours, shares, Fraction(1))
        promised = float(terms.epsilon), float(terms.delta)
        return replace(made, scale=scale_for(*promised, made.squared_mu, made.lattice_loss))

    @cached_property
    def _share_of(self) -> dict[Shape, Fraction]:
        return dict(self.shares)

    def variance(self, places: Places) -> Fraction:
        """s_B^2, of the noise on every cell before what is no residual is taken off; 0 for what
        is known without noise.
        """
        return self.scale * self._share_of.get(self._shape(places), Fraction(0))

    def cell_variance(self, places: Places) -> Fraction:
        """Of the noise of every count of the table of these attributes."""
        return self._cell_variance(self._shape(places))

    def _cell_variance(self, table: Shape) -> Fraction:
        # sum over B in A of s_B^2 P_B prod over A\B of n_j^-2
        total = Fraction(0)
        for own in _parts(table):
            others = prod(table) // prod(own)
            share = self._share_of.get(own, Fraction(0))
            total += self.scale * share * kept_share(own) / others**2
        return total

    def mean_variance(self, order: int) -> float:
        """The mean over all counts of so many attributes together."""
        total = 0.0
        cells = 0
        for shape, count in _shapes(self.sizes, order).items():
            if len(shape) == order:
                total += count * prod(shape) * float(self._cell_variance(shape))
                cells += count * prod(shape)
        return total / cells

    def table_noise(self, order: int) -> float:
        """The mean over tables of so many attributes of the variances of all their counts, summed;
        of more attributes than were measured, as if residuals that were not were 0.
        """
        total = 0.0
        tables = 0
        for shape, count in _shapes(self.sizes, order).items():
            if len(shape) == order:
                total += count * prod(shape) * self._float_variance(shape)
                tables += count
        return total / tables

    def _float_variance(self, table: Shape) -> float:
        """As ``_cell_variance``, for predictions: without exact fractions."""
        total = 0.0
        for own in _parts(table):
            others = prod(table) // prod(own)
            total += self._float_shares.get(own, 0.0) / others**2
        return total

    @cached_property
    def _float_shares(self) -> dict[Shape, float]:
        """s_B^2 P_B of each shape."""
        return {
            shape: float(self.scale * share * kept_share(shape)) for shape, share in self.shares
        }

    @cached_property
    def squared_mu(self) -> Fraction:
        """What all residuals cost together, exactly."""
        return sum((step.squared_mu for step in self.steps), Fraction(0))

    @property
    def lattice_loss(self) -> Fraction:
        """What the noise's lattice costs beside ``squared_mu``: see accounting.steps."""
        return sum((step.lattice_loss or Fraction(0) for step in self.steps), Fraction(0))

    def steps_per_unit(self, places: Places) -> int:
        """How many steps of the noise's lattice make a count of the table of these attributes.

        One person moves a residual by multiples of 1/(cells of its table), so these must lie on it.
        """
        return lattice_steps(self._shape(places))

    @property
    def steps(self) -> tuple[GaussianStep, ...]:
        """What a ledger holds.

        A residual divided by the square root of its share has noise of variance ``scale``. Where
        people come or go, everybody costs the same, and there is a step for the residuals of each
        number of attributes. Where a person is replaced, no two records are farthest apart in all
        residuals at once, and there is one step.
        """
        counts = _shapes(self.sizes, self.order)
        costs = [Fraction(0)] * (self.order + 1)
        losses = [Fraction(0)] * (self.order + 1)
        for shape, share in self.shares:
            times = counts[shape] / (share * self.scale)
            costs[len(shape)] += times * self.scale * kept_share(shape)
            losses[len(shape)] += times * lattice_move(shape, self.neighbours)
        if self.neighbours == "replace-one":
            cost = largest_replacement(self.sizes, self.order, self._share_of)
            purpose = "tables of known domains"
            return (GaussianStep("residuals", purpose, cost, self.scale, sum(losses, Fraction(0))),)
        steps = []
        for count, (cost, loss) in enumerate(zip(costs, losses, strict=True)):
            purpose = f"what tables of {count} attributes say beyond those of fewer"
            if count == 0:
                purpose = "the number of people"
            steps.append(GaussianStep(f"residuals of {count}", purpose, cost, self.scale, loss))
        return tuple(steps)

    def _shape(self, places: Places) -> Shape:
        return tuple(sorted(self.sizes[place] for place in places))


def _gain(sizes: Sequence[int], shape: Shape, worth: Sequence[float], equal: Equal) -> float:
    """V_B / P_B: what less noise on a residual is worth, over all tables that have it."""
    order = len(worth)
    # sum over A of w_A prod over A\\B of n_j^-2, where w_A ~ n_A, or is the same for all tables
    by_counts = equal == "counts"
    tables = symmetric_sums(sizes if by_counts else [1] * len(sizes), order)
    inverse = [1 / size if by_counts else 1 / size**2 for size in _rest(sizes, shape)]
    others = symmetric_sums(inverse, order - len(shape))
    total = 0.0
    for count in range(max(1, len(shape)), order + 1):
        total += worth[count - 1] / tables[count] * others[count - len(shape)]
    return total * (prod(shape) if by_counts else 1)


def kept_share(shape: Shape) -> Fraction:
    """P_B: what is left of one cell's square once all that is no residual is taken off.

    >>> kept_share((2, 3)), kept_share(())
    (Fraction(1, 3), Fraction(1, 1))
    """
    return prod((Fraction(size - 1, size) for size in shape), start=Fraction(1))


def squared_sensitivity(shape: Shape, neighbours: Neighbours) -> Fraction:
    """The largest squared distance that one person moves a residual.

    Args:
        shape: the sizes of its attributes.
        neighbours: whether the person comes or goes, or has other values.

    >>> squared_sensitivity((2, 3), "add-remove"), squared_sensitivity((2, 3), "replace-one")
    (Fraction(1, 3), Fraction(4, 3))
    """
    kept = kept_share(shape)
    if neighbours == "add-remove":
        return kept
    if not shape:
        return Fraction(0)  # the number of people stays
    # |a - b|^2 = 2 P - 2 a.b, and a.b is a product of 1 - 1/n where values are equal and of -1/n
    # where they differ: least if they differ in one attribute, that of the fewest values
    fewest: int = min(shape)
    return 2 * kept * Fraction(fewest, fewest - 1)


def lattice_steps(shape: Shape) -> int:
    """How many steps of the noise's lattice make a count: a multiple of a table's cells, and so
    many that the lattice costs a small part of what the noise does.

    >>> lattice_steps((2,)) // REFINEMENT, lattice_steps((100, 100, 10))
    (2, 100000)
    """
    cells = prod(shape)
    # |v|_1 / |v|_2^2 = 2^|B| / steps
    finer = -(-(REFINEMENT << len(shape)) // cells)  # rounded up
    return cells * finer


def lattice_move(shape: Shape, neighbours: Neighbours) -> Fraction:
    """|v|_1 / R^2: how far a person moves a residual in all cells together, where R steps of the
    noise's lattice make a count and v is the move in such steps.

    >>> lattice_move((2, 2), "add-remove") * REFINEMENT
    Fraction(1, 4)
    """
    # |Q e|_1 = prod of 2 (1 - 1/n), in counts
    moved = kept_share(shape) * (1 << len(shape))
    if neighbours == "replace-one":
        moved *= 2
    return moved / lattice_steps(shape)


@lru_cache(maxsize=256)
def scale_for(
    epsilon: float, delta: float, squared_mu: Fraction, lattice_loss: Fraction
) -> Fraction:
    """The least variance that keeps a promise, rounded up.

    Args:
        epsilon: what is promised.
        delta: what is promised.
        squared_mu: what noise of variance 1 would cost.
        lattice_loss: what its lattice would cost.
    """
    first = squared_mu / Fraction(mu_of(epsilon, delta)) ** 2
    # more variance makes the lattice cost less than it does here
    left = epsilon - float(lattice_loss / first) * (1 + _ROUNDING)
    if left <= 0:
        raise InvalidInput(f"epsilon ({epsilon}) is too small for noise on a lattice")
    return rounded_variance(squared_mu / Fraction(mu_of(left, delta)) ** 2)


def largest_replacement(
    sizes: Sequence[int], order: int, shares: Mapping[Shape, Fraction]
) -> Fraction:
    """The largest squared distance that all residuals move together if a person is replaced.

    Each residual counts by the inverse of its share. Records may differ in any attributes, and of
    those of one size it only matters how many. Where that leaves too many cases, the sum of what
    moves each residual most is taken, which is no less.

    Args:
        sizes: of the attributes.
        order: how many attributes residuals have at most.
        shares: of each shape, its share of the noise.

    >>> largest_replacement((2, 2), 1, {(2,): Fraction(1)})
    Fraction(4, 1)
    """
    counts = _shapes(sizes, order)
    bound = Fraction(0)
    for shape, share in shares.items():
        bound += counts[shape] * squared_sensitivity(shape, "replace-one") / share
    distinct = sorted(set(sizes))
    available = [list(sizes).count(size) for size in distinct]
    cases = prod(count + 1 for count in available)
    if cases * len(shares) > _MOST_REPLACEMENTS:
        return bound
    same = _products(distinct, available, [0] * len(distinct), order)
    largest = Fraction(0)
    for differing in product(*(range(count + 1) for count in available)):
        # |a - b|^2 = 2 P - 2 a.b, summed over all sets of a shape
        other = _products(distinct, available, differing, order)
        moved = Fraction(0)
        for shape, share in shares.items():
            own, their = Fraction(1), Fraction(1)
            for place, size in enumerate(distinct):
                own *= same[place][shape.count(size)]
                their *= other[place][shape.count(size)]
            moved += 2 * (own - their) / share
        largest = max(largest, moved)
    return min(bound, largest)


def _products(
    distinct: Sequence[int], available: Sequence[int], differing: Sequence[int], order: int
) -> list[list[Fraction]]:
    """For each size, the sums over sets of 0, 1, ... attributes of prod (1 - 1/n, or -1/n where two
    records differ).
    """
    found = []
    for size, count, apart in zip(distinct, available, differing, strict=True):
        equal = [Fraction(size - 1, size)] * (count - apart)
        unequal = [Fraction(-1, size)] * apart
        found.append(symmetric_sums([*equal, *unequal], order))
    return found


def checked_weights(weights: Sequence[float] | None, order: int) -> list[float]:
    """A weight above 0 for each number of attributes."""
    if weights is None:
        return [1.0] * order
    try:
        worth = [float(each) for each in weights]
    except (TypeError, ValueError):
        raise InvalidInput("weights must be numbers, one for each number of attributes") from None
    if len(worth) != order:
        raise InvalidInput(f"weights ({len(worth)} of them) must be as many as up_to ({order})")
    if not all(0 < each < math.inf for each in worth):
        raise InvalidInput("weights must be finite and greater than 0")
    return worth


def _coarse(share: float) -> Fraction:
    """A number above 0 with few digits, so that sums of its inverses stay short."""
    mantissa, exponent = math.frexp(share)
    steps = max(1, round(mantissa * (1 << _SHARE_DIGITS)))
    return Fraction(steps, 1 << _SHARE_DIGITS) * Fraction(2) ** exponent


def _shapes(sizes: Sequence[int], order: int) -> dict[Shape, int]:
    """The shapes of all sets of up to ``order`` attributes, and how many sets have each."""
    distinct = sorted(set(sizes))
    available = {size: list(sizes).count(size) for size in distinct}
    found = {}
    for count in range(order + 1):
        for shape in combinations_with_replacement(distinct, count):
            ways = prod(comb(available[size], shape.count(size)) for size in set(shape))
            if ways:
                found[shape] = ways
    return found


def _rest(sizes: Sequence[int], shape: Shape) -> list[int]:
    """The sizes of the attributes that are not in a set of this shape."""
    left = list(sizes)
    for size in shape:
        left.remove(size)
    return left


def _parts(shape: Shape) -> list[Shape]:
    """The shapes of all subsets of a set, as often as they occur."""
    return [own for count in range(len(shape) + 1) for own in combinations(shape, count)]
