"""Characters asked one by one: every person reports one sign, and tables are an inverse transform.

A character of mask a is chi_a(x) = (-1)^<a, x>, a sign for every record x in bits. Its mean over
the people is the coefficient c_a, and the table of any attributes is the inverse Hadamard transform
of the coefficients whose masks touch no other attribute.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import combinations
from math import exp, log, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.oracles import PureOracle, oracle
from sottovoce.postprocessing.maximum_entropy import proportional_fit
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.families import Block, Family, Signs
from sottovoce.protocol.families import Places as Columns
from sottovoce.protocol.families.choices import elementary
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit, Floats, MarginalMethod
from sottovoce.questions.marginals.models.signs import (
    hadamard,
    sign_count,
    sign_family,
    sign_shares,
)
from sottovoce.questions.marginals.models.structure import TRIPLE_TIE, spread, squared_mass
from sottovoce.questions.marginals.models.ties import unknown_variances
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Options
from sottovoce.results.words import CLOSED_FORM
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate


MAX_COEFFICIENTS = 1 << 26  # that are kept in memory
MAX_HADAMARD_VALUES = 4096  # of one attribute, whose Hadamard matrix is kept in memory
ENTROPY_WORK = 1 << 31  # cells x constraints x rounds that one reconstruction may take
MIN_ENTROPY_ROUNDS = 5
MAX_ENTROPY_ROUNDS = 200


class CoefficientMeans(ABC):
    """The mean of every character asked for, by its cohort, and the variance of its error.

    A character that nobody was asked for has mean 0 and variance 1: means of signs lie in [-1, 1].

    Attributes:
        people: Everybody who reported.
        means: The debiased means c_a, (cohorts,).
        variances: Those of their errors, (cohorts,).
        is_answered: Whether anybody was asked, (cohorts,).
    """

    def __init__(self, people: int, respondents: Floats, sums: Floats, kappa: float) -> None:
        """From the people and the summed signs of each cohort, (cohorts,); kappa is p - q."""
        self.people = people
        self.is_answered = respondents > 0
        n = np.maximum(respondents, 1)  # never divided by 0; unanswered ones are set apart below
        # c_a = sum of its respondents' signs / (n_a kappa)
        #                            cormode2018marginal, algorithm 2, corrected, docs/errata (17)
        self.means: Floats = sums / (n * kappa)
        # Var[c_a] = (1/kappa^2 - c^2) / n_a, with c^2 from E[n c_a^2 - 1/kappa^2] = (n - 1) c^2.
        # The estimate of c^2 may be negative: if it were cut at 0, its mean would be too large.
        squares = (n * self.means**2 - 1 / kappa**2) / np.maximum(n - 1, 1)
        squares = np.where(n > 1, np.minimum(squares, 1), 0)
        self.variances: Floats = np.where(self.is_answered, (1 / kappa**2 - squares) / n, 1.0)
        self._cohorts: dict[Places, Columns] = {}

    def cohorts(self, places: Places) -> Columns:
        """The cohorts of all characters that touch just these attributes.

        Returns:
            Numbers of cohorts, with an axis of the H - 1 non-zero masks for each attribute.
        """
        if places not in self._cohorts:
            self._cohorts[places] = self._numbered(places)
        return self._cohorts[places]

    @abstractmethod
    def _numbered(self, places: Places) -> Columns:
        """The same, computed."""


class Coefficients(CoefficientMeans):
    """Those of a family of signs."""

    def __init__(self, aggregate: Aggregate) -> None:
        family: Any = aggregate.plan.cohorts
        assert isinstance(family, Signs)
        self.family = family
        # one row for each different (cohort, answer) and how many people gave it
        aggregate.require_counts("a mean of signs")
        cohorts, answers, people = aggregate.answers
        signs = 1 - 2 * answers
        respondents: Floats = np.bincount(cohorts, people, len(family)).astype(float)  # (cohorts,)
        sums: Floats = np.bincount(cohorts, people * signs, len(family)).astype(float)  # (cohorts,)
        super().__init__(aggregate.people, respondents, sums, family.oracles[0].gap)

    def _numbered(self, places: Places) -> Columns:
        shape = tuple(self.family.masks[place] for place in places)
        # every combination of masks 1, 2, ..., one row each
        masks = np.indices(shape).reshape(len(places), -1).T + 1  # (characters, attributes)
        members = np.broadcast_to(np.array(places, np.int64), masks.shape)
        numbers = self.family.cohorts_of(
            len(places) - 1,  # blocks are of 1, 2, ... attributes
            np.ascontiguousarray(members),
            np.ascontiguousarray(masks),
        )
        return numbers.reshape(shape)


class LinearFit(Fit):
    """Tables that are linear in coefficients of independent errors.

    A table of attributes of orders H_1, H_2, ... has an array of H_1 x H_2 x ... coefficients.
    Index 0 on an axis stands for an attribute not touched, so [0, 0, ...] is the constant 1.
    The table is that array times a matrix along every axis. Its variances are the coefficients'
    variances times the squared matrices, less f (1 - f)/n: the people asked are all there are.
    Sets larger than the workload's are the tables of maximum entropy that agree with the largest
    ones asked for.
    """

    errors: ClassVar[str] = CLOSED_FORM

    def __init__(self, work: Workload, coefficients: CoefficientMeans) -> None:
        self._work = work
        self._coefficients = coefficients
        self._axes = [self.axis(size) for size in work.sizes]

    @staticmethod
    @abstractmethod
    def axis(size: int) -> Floats:
        """What each coefficient of an attribute adds to each of its values: (size, H)."""

    @abstractmethod
    def means(self, places: Places) -> Floats:
        """The coefficients that touch just these attributes, (H_1 - 1, H_2 - 1, ...)."""

    @abstractmethod
    def noise(self, places: Places) -> Floats:
        """The variances of those coefficients, (H_1 - 1, H_2 - 1, ...)."""

    @abstractmethod
    def covariances(self, places: Places) -> Floats | float:
        """What covariances of coefficients add to the variances of a table's cells.

        Returns:
            One number for all cells, or an array of the table's shape.
        """

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        out = []
        for places in sets:
            is_asked = len(places) <= self._work.order
            out.append(self._table(places) if is_asked else self._reconstructed(places))
        return out

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        out = []
        for places in sets:
            is_asked = len(places) <= self._work.order
            out.append(self._errors(places) if is_asked else self._guess(places))
        return out

    def is_unbiased(self, places: Places) -> bool:
        if len(places) > self._work.order:
            return False
        return all(bool(self._answered(part).all()) for part in parts(places))

    def is_reconstructed(self, places: Places) -> bool:
        return len(places) > self._work.order

    def is_heard(self, part: Places) -> bool:
        if len(part) > self._work.order:
            return False
        return bool(self._answered(part).any())

    def heard_share(self, part: Places) -> float:
        if len(part) > self._work.order:
            return 0.0
        return float(self._answered(part).mean())

    def _answered(self, part: Places) -> NDArray[np.bool_]:
        """Whether anybody was asked for each character that touches just these attributes."""
        return self._coefficients.is_answered[self._coefficients.cohorts(part)]

    def _table(self, places: Places) -> Floats:
        """The unbiased table, (cells,)."""
        coefficients = self._gathered(places, self.means, 1.0)  # (H_1, H_2, ...)
        matrices = [self._axes[place] for place in places]
        return along(coefficients, matrices).ravel()

    def _errors(self, places: Places) -> Floats:
        """The variances of its errors, (cells,)."""
        noise = self._gathered(places, self.noise, 0.0)  # (H_1, H_2, ...); the constant is known
        squares = [self._axes[place] ** 2 for place in places]
        total = (along(noise, squares) + self.covariances(places)).ravel()
        if not self.is_unbiased(places):
            return total  # a coefficient that nobody reported is not a sample of the people
        # the people are fixed, and their own spread is no error: less f (1 - f)/n
        share = np.clip(self._table(places), 0, 1)
        return np.maximum(total - share * (1 - share) / self._coefficients.people, 0.0)

    def sum_variance(self, places: Places, cells: NDArray[np.int64]) -> float | None:
        if not self.is_unbiased(places) or isinstance(self.covariances(places), np.ndarray):
            return None
        noise = self._gathered(places, self.noise, 0.0)  # (H_1, H_2, ...)
        is_summed = np.zeros(self._work.cells(places))
        is_summed[cells] = 1.0
        # what each coefficient adds to the sum, (H_1, H_2, ...)
        matrices = [self._axes[place].T for place in places]
        added = along(is_summed.reshape(self._work.shape(places)), matrices)
        share = min(max(float(self._table(places)[cells].sum()), 0.0), 1.0)
        # the people are fixed, as for a cell: less f (1 - f)/n
        people_spread = share * (1 - share) / self._coefficients.people
        return max(float((noise * added**2).sum()) - people_spread, 0.0)

    def _gathered(
        self,
        places: Places,
        block: Callable[[Places], Floats],
        constant: float,
    ) -> Floats:
        """The coefficients of a table and of all its sums, or anything else there is for each.

        Args:
            places: The attributes of the table.
            block: What there is for the coefficients that touch just some attributes,
                (H_1 - 1, H_2 - 1, ...).
            constant: The same for the coefficient that touches none.

        Returns:
            An array (H_1, H_2, ...); 0 on an axis stands for an attribute that is not touched.
        """
        out = np.zeros([self._axes[place].shape[1] for place in places])
        out.flat[0] = constant
        for part in parts(places):
            touched = tuple(slice(1, None) if place in part else 0 for place in places)
            out[touched] = block(part)
        return out

    def _largest(self, places: Places) -> list[Places]:
        """The largest sets within a set that were asked for."""
        return list(combinations(places, self._work.order))

    def _reconstructed(self, places: Places) -> Floats:
        """The table of maximum entropy, (cells,), that agrees with all of the largest asked for."""
        constraints = []
        for part in self._largest(places):
            axes = tuple(places.index(place) for place in part)
            constraints.append((axes, norm_sub(self._table(part))))
        shape = self._work.shape(places)
        affordable = ENTROPY_WORK // (self._work.cells(places) * len(constraints))
        rounds = min(max(affordable, MIN_ENTROPY_ROUNDS), MAX_ENTROPY_ROUNDS)
        return proportional_fit(shape, constraints, rounds=rounds).ravel()

    def _guess(self, places: Places) -> Floats:
        """The variances of a reconstructed table's cells, (cells,).

        The mean variance of a cell from the coefficients asked for, and typical squares of those
        that were never asked for.
        """
        # for each attribute, what a coefficient's variance adds to a cell's, in the mean: (H,)
        squares = {place: (self._axes[place] ** 2).mean(0) for place in places}
        total = 0.0
        known = 1  # degrees of freedom that were asked for, of the table's ``cells``
        for part in parts(places, self._work.order):
            untouched = prod(float(squares[place][0]) for place in places if place not in part)
            rows = [squares[place][None, 1:] for place in places if place in part]  # (1, H - 1)
            total += untouched * float(along(self.noise(part), rows).sum())
            known += prod(self._work.sizes[place] - 1 for place in part)
        cells = self._work.cells(places)
        if self._work.order < 2:  # nobody was asked how attributes go together
            pairs = list(combinations(places, 2))
            table = self._reconstructed(places)
            return total + unknown_variances(self._work, places, table, pairs)
        total += TRIPLE_TIE**2 * (1 - known / cells) / cells
        return np.full(cells, total)


def parts(places: Places, most: int | None = None) -> list[Places]:
    """The sets within a set but the empty one, of at most so many members.

    >>> parts((0, 2))
    [(0,), (2,), (0, 2)]
    """
    sizes = range(1, min(len(places), most or len(places)) + 1)
    return [part for size in sizes for part in combinations(places, size)]


def along(table: Floats, matrices: Sequence[Floats]) -> Floats:
    """A table multiplied by a matrix along every axis.

    Args:
        table: One axis for each matrix, (columns of matrix 0, columns of matrix 1, ...).
        matrices: Each (rows, columns).

    Returns:
        The image, (rows of matrix 0, rows of matrix 1, ...).
    """
    for matrix in matrices:
        # the first axis leaves and its image comes last, so that the next axis is first
        table = np.tensordot(table, matrix, axes=(0, 1))
    return table


def along_rows(rows: Floats, shape: Sequence[int], matrices: Sequence[Floats]) -> Floats:
    """The same for many flat tables of one shape at once.

    Args:
        rows: The tables, (tables, cells); their cells have the axes ``shape``.
        shape: One axis for each matrix, as long as it has columns.
        matrices: Each (rows, columns).

    Returns:
        The images, flat again, (tables, product of the matrices' rows).
    """
    last = len(shape) - 1
    table = np.moveaxis(rows.reshape(len(rows), *shape), 0, -1)  # (*shape, tables)
    for matrix in matrices:
        image = np.tensordot(matrix, table, axes=(1, 0))  # the first axis's image comes first
        table = np.moveaxis(image, 0, last)  # and goes behind the others, before the tables
    return np.moveaxis(table, -1, 0).reshape(len(rows), -1)


def inverse_mean(expected: float) -> float:
    """E[1/N; N > 0] for the number N of a character's respondents.

    Args:
        expected: The mean of N, which is Poisson; greater than 0.
    """
    # sum over j > 0 of e^-x x^j / (j! j) = e^-x (Ei(x) - ln x - gamma)
    if expected > 40:  # the asymptotic series is exact enough, and Ei overflows at large x
        return 1 / expected + 1 / expected**2 + 2 / expected**3
    expi = imported("scipy.special").expi
    return float(exp(-expected) * (expi(expected) - log(expected) - np.euler_gamma))


def orders(sizes: Sequence[int]) -> list[int]:
    """H for each attribute: the smallest power of two that is at least its size."""
    return [1 << (size - 1).bit_length() for size in sizes]


def counts(work: Workload) -> list[int]:
    """How many characters touch 1, 2, ... attributes, up to the workload's order."""
    masks = [order - 1 for order in orders(work.sizes)]  # non-zero masks of each attribute
    return elementary(masks, work.order)[1:]


def too_many(work: Workload, people: int) -> str | None:
    """Why so many characters cannot be asked for; None if they can."""
    largest = max(work.sizes)
    if largest > MAX_HADAMARD_VALUES:
        limit = f"the {MAX_HADAMARD_VALUES:,} of the largest matrix"
        return f"an attribute has {largest:,} values, more than {limit}"
    total = sum(counts(work))
    if total > people:
        return f"it asks for {total:,} coefficients, more than the {people:,} people"
    if total > MAX_COEFFICIENTS:
        limit = f"the {MAX_COEFFICIENTS:,} that are kept in memory"
        return f"it asks for {total:,} coefficients, more than {limit}"
    return None


def debias(epsilon: Decimal) -> float:
    """1 / kappa^2 with kappa = p - q of randomized response.

    This is the variance of one debiased sign, at a mean of 0.
    """
    coin = oracle("rr", size=2, epsilon=epsilon)
    assert isinstance(coin, PureOracle)
    return 1 / coin.gap**2


class HadamardFit(LinearFit):
    """Tables by the inverse Hadamard transform on the bits of the codes."""

    @staticmethod
    def axis(size: int) -> Floats:
        # cell = 2^-b sum over a of (-1)^<a, cell> c_a
        #                            cormode2018marginal, algorithm 2, corrected, docs/errata (17)
        matrix = hadamard(size)  # (H, H), H = 2^b
        return matrix[:size] / len(matrix)  # codes from ``size`` on are nobody's

    def means(self, places: Places) -> Floats:
        return self._coefficients.means[self._coefficients.cohorts(places)]

    def noise(self, places: Places) -> Floats:
        return self._coefficients.variances[self._coefficients.cohorts(places)]

    def covariances(self, places: Places) -> float:
        return 0.0


class InputHadamard(MarginalMethod):
    """Every character of at most ``up_to`` attributes is asked for equally often.

    Categories are written in ceil(log2) bits.
    """

    name: ClassVar[str] = "inp-ht"
    about: ClassVar[str] = "one Hadamard coefficient of the record each"
    source: ClassVar[str] = "cormode2018marginal, sections 4.2 and 6.3"

    def total(self, work: Workload) -> int:
        """How many coefficients are asked for, all equally often."""
        return sum(counts(work))

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        return too_many(work, terms.people)

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        weights = [1] * len(work.names)
        return sign_family(schema, work.names, weights, self._blocks(work), epsilon)

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> HadamardFit:
        return HadamardFit(work, Coefficients(aggregate))

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        weights = [1] * len(work.sizes)
        return sign_shares(work.sizes, weights, self._blocks(work), parts)

    @staticmethod
    def _blocks(work: Workload) -> list[Block]:
        """Parities of 1, 2, ... attributes, up to the workload's order."""
        return [Block("parity", order) for order in range(1, work.order + 1)]

    def coefficients(self, work: Workload, part: Places) -> int:
        return sign_count(work.sizes, part)

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        respondents = terms.people / self.total(work)  # of one coefficient, expected
        inverse = inverse_mean(respondents)  # E[1/n_a; n_a > 0]
        unasked = exp(-respondents)  # P[n_a = 0]
        sign_variance = debias(terms.epsilon)  # 1 / kappa^2
        total = 0.0
        for places in work.sample:
            # sum over cells of 4^-b sum over a of (1/kappa^2 - c_a^2) / n_a, less f (1 - f)/n
            cells = work.cells(places)
            padded = prod(orders(work.shape(places)))  # 2^b
            structure = spread(work, places)  # what all c_a^2 are worth, in a typical table
            noise = inverse * (sign_variance * cells * (padded - 1) / padded**2 - structure)
            people_spread = (1 - squared_mass(work, places)) / terms.people
            total += noise + unasked * structure - people_spread
        return total / len(work.sample)

    def reason(self, work: Workload, terms: Terms, options: Options) -> str:
        total = self.total(work)
        return f"{total:,} coefficients of {terms.people / total:,.0f} people each"
