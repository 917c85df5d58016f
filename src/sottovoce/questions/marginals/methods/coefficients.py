"""Characters asked one by one: every person tells one sign, and tables follow by the inverse Hadamard transform."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from math import exp, log, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.oracles import PureOracle, oracle
from sottovoce.postprocessing.maximum_entropy import proportional_fit
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.families import Block, Signs
from sottovoce.protocol.families import Places as Columns
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import CLOSED_FORM, Fit, Floats, Method
from sottovoce.questions.marginals.methods.views import unknown_variances
from sottovoce.questions.marginals.models.signs import hadamard, sign_count, sign_family, sign_shares
from sottovoce.questions.marginals.models.structure import TRIPLE_TIE, spread, squared_mass
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_COEFFICIENTS = 1 << 26  # that are kept in memory
MOST_VALUES = 4096  # of one attribute, whose Hadamard matrix is kept in memory
ENTROPY_WORK = 1 << 31  # cells times tables times rounds that one reconstruction may take


class Coefficients:
    """The mean of every character asked for, by its cohort, and the variance of what is known of it.

    A character that nobody was asked for has mean 0 and variance 1: the means of signs lie between -1 and 1.
    """

    def __init__(self, aggregate: Aggregate) -> None:
        family: Any = aggregate.plan.cohorts
        assert isinstance(family, Signs)
        self.family = family
        self.people = aggregate.people
        cohorts, answers, people = aggregate.counts.answers  # type: ignore[attr-defined]
        respondents = np.bincount(cohorts, people, len(family))
        sums = np.bincount(cohorts, people * (1 - 2 * answers), len(family))
        kappa = family.oracles[0].gap
        asked = np.maximum(respondents, 1)
        self.is_answered = respondents > 0
        # c_a = mean of its respondents' signs / (p - q)    cormode2018marginal, algorithm 2, corrected, see docs/errata
        self.means: Floats = sums / (asked * kappa)
        # Var[c_a] = (1 / kappa^2 - c^2) / n_a, with c^2 from E[n c_a^2 - 1 / kappa^2] = (n - 1) c^2
        squares = (asked * self.means**2 - 1 / kappa**2) / np.maximum(asked - 1, 1)
        squares = np.where(asked > 1, np.minimum(squares, 1), 0)  # may be negative, or the mean would be too large
        self.variances: Floats = np.where(self.is_answered, (1 / kappa**2 - squares) / asked, 1.0)
        self._cohorts: dict[Places, Columns] = {}

    def cohorts(self, places: Places) -> Columns:
        """The cohorts of all characters that touch just these attributes, an axis of masks for each."""
        if places not in self._cohorts:
            shape = tuple(self.family.masks[place] for place in places)
            masks = np.indices(shape).reshape(len(places), -1).T + 1
            members = np.broadcast_to(np.array(places, np.int64), masks.shape)
            found = self.family.cohorts_of(len(places) - 1, np.ascontiguousarray(members), np.ascontiguousarray(masks))
            self._cohorts[places] = found.reshape(shape)
        return self._cohorts[places]


class LinearFit(Fit):
    """Tables that are linear in coefficients of independent errors, an axis of H coefficients for each attribute.

    A table is its coefficients (1, or those that touch some of its attributes) times a matrix along every axis; its
    variances are theirs times the squared matrices, less f (1 - f)/n, since the people asked are all there are.
    Sets larger than the workload's are the tables of maximum entropy that agree with the largest ones asked for.
    """

    errors: ClassVar[str] = CLOSED_FORM

    def __init__(self, work: Workload, coefficients: Coefficients) -> None:
        self._work = work
        self._coefficients = coefficients
        self._axes = [self.axis(size) for size in work.sizes]

    @staticmethod
    @abstractmethod
    def axis(size: int) -> Floats:
        """What each coefficient of an attribute (columns) adds to each of its values (rows)."""

    @abstractmethod
    def means(self, places: Places) -> Floats:
        """The coefficients that touch just these attributes."""

    @abstractmethod
    def noise(self, places: Places) -> Floats:
        """The variances of those coefficients."""

    @abstractmethod
    def covariances(self, places: Places) -> Floats | float:
        """What covariances of coefficients add to the variances of a table's cells."""

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        return [self._table(each) if len(each) <= self._work.order else self._reconstructed(each) for each in sets]

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        return [self._errors(each) if len(each) <= self._work.order else self._guess(each) for each in sets]

    def is_unbiased(self, places: Places) -> bool:
        if len(places) > self._work.order:
            return False
        return all(
            bool(self._coefficients.is_answered[self._coefficients.cohorts(part)].all()) for part in parts(places)
        )

    def is_reconstructed(self, places: Places) -> bool:
        return len(places) > self._work.order

    def is_heard(self, part: Places) -> bool:
        if len(part) > self._work.order:
            return False
        return bool(self._coefficients.is_answered[self._coefficients.cohorts(part)].any())

    def heard_share(self, part: Places) -> float:
        if len(part) > self._work.order:
            return 0.0
        return float(self._coefficients.is_answered[self._coefficients.cohorts(part)].mean())

    def _table(self, places: Places) -> Floats:
        whole = self._gathered(places, self.means, 1.0)
        return along(whole, [self._axes[place] for place in places]).ravel()

    def _errors(self, places: Places) -> Floats:
        whole = self._gathered(places, self.noise, 0.0)
        total = (along(whole, [self._axes[place] ** 2 for place in places]) + self.covariances(places)).ravel()
        if not self.is_unbiased(places):
            return total  # a coefficient that nobody told is not a sample of the people
        share = np.clip(self._table(places), 0, 1)
        return np.maximum(total - share * (1 - share) / self._coefficients.people, 0.0)

    def _gathered(self, places: Places, block: Any, constant: float) -> Floats:
        """The coefficients of a table and of all its sums, 0 standing for an attribute that is not touched."""
        out = np.zeros([self._axes[place].shape[1] for place in places])
        out.flat[0] = constant
        for part in parts(places):
            out[tuple(slice(1, None) if place in part else 0 for place in places)] = block(part)
        return out

    def _largest(self, places: Places) -> list[Places]:
        return list(combinations(places, self._work.order))

    def _reconstructed(self, places: Places) -> Floats:
        constraints = [
            (tuple(places.index(place) for place in part), norm_sub(self._table(part)))
            for part in self._largest(places)
        ]
        rounds = ENTROPY_WORK // (self._work.cells(places) * len(constraints))
        shape = self._work.shape(places)
        return proportional_fit(shape, constraints, rounds=min(max(rounds, 5), 200)).ravel()

    def _guess(self, places: Places) -> Floats:
        """The mean variance of a cell from the coefficients asked for, and typical squares of those never asked for."""
        squares = [(self._axes[place] ** 2).mean(0) for place in places]
        total, known = 0.0, 1
        for part in parts(places, self._work.order):
            rest = prod(float(own[0]) for own, place in zip(squares, places, strict=True) if place not in part)
            own = [own[None, 1:] for own, place in zip(squares, places, strict=True) if place in part]
            total += rest * float(along(self.noise(part), own).sum())
            known += prod(self._work.sizes[place] - 1 for place in part)
        cells = self._work.cells(places)
        if self._work.order < 2:  # nobody was asked how attributes go together
            pairs = list(combinations(places, 2))
            return total + unknown_variances(self._work, places, self._reconstructed(places), pairs)
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


def elementary(values: Sequence[Any], most: int) -> list[Any]:
    """Elementary symmetric polynomials of orders 0 to ``most``.

    >>> elementary([1, 2, 3], 2)
    [1, 6, 11]
    """
    sums: list[Any] = [1] + [0] * most
    for value in values:
        for order in reversed(range(most)):
            sums[order + 1] = sums[order + 1] + value * sums[order]
    return sums


def inverse_mean(expected: float) -> float:
    """E[1/N; N > 0] for the number N of a character's respondents, of whom ``expected`` are expected (Poisson)."""
    if expected > 40:
        return 1 / expected + 1 / expected**2 + 2 / expected**3
    expi = imported("scipy.special").expi

    # sum over j > 0 of e^-x x^j / (j! j) = e^-x (Ei(x) - ln x - gamma)
    return float(exp(-expected) * (expi(expected) - log(expected) - np.euler_gamma))


def orders(sizes: Sequence[int]) -> list[int]:
    """H for each attribute: the smallest power of two that is at least its size."""
    return [1 << (size - 1).bit_length() for size in sizes]


def counts(work: Workload) -> list[int]:
    """How many characters touch 1, 2, ... attributes, up to the workload's order."""
    return elementary([order - 1 for order in orders(work.sizes)], work.order)[1:]


def too_many(work: Workload, people: int) -> str | None:
    """Why so many characters cannot be asked for; None if they can."""
    if max(work.sizes) > MOST_VALUES:
        return f"an attribute has {max(work.sizes):,} values, more than the {MOST_VALUES:,} of the largest matrix"
    total = sum(counts(work))
    if total > people:
        return f"it asks for {total:,} coefficients, more than the {people:,} people"
    if total > MOST_COEFFICIENTS:
        return f"it asks for {total:,} coefficients, more than the {MOST_COEFFICIENTS:,} that are kept in memory"
    return None


def debias(epsilon: Decimal) -> float:
    """1 / kappa^2 with kappa = p - q of randomized response: the variance of one debiased sign, at a mean of 0."""
    coin = oracle("rr", size=2, epsilon=epsilon)
    assert isinstance(coin, PureOracle)
    return 1 / coin.gap**2


class HadamardFit(LinearFit):
    """Tables by the inverse Hadamard transform on the bits of the codes."""

    @staticmethod
    def axis(size: int) -> Floats:
        # cell = 2^-b sum over a of (-1)^<a, cell> c_a      cormode2018marginal, algorithm 2, corrected, see docs/errata
        matrix = hadamard(size)
        return matrix[:size] / len(matrix)

    def means(self, places: Places) -> Floats:
        return self._coefficients.means[self._coefficients.cohorts(places)]

    def noise(self, places: Places) -> Floats:
        return self._coefficients.variances[self._coefficients.cohorts(places)]

    def covariances(self, places: Places) -> float:
        return 0.0


class InputHadamard(Method):
    """Every character of at most ``up_to`` attributes is asked for equally often; categories are ceil(log2) bits."""

    name: ClassVar[str] = "inp-ht"
    about: ClassVar[str] = "one Hadamard coefficient of the record each"
    source: ClassVar[str] = "cormode2018marginal, sections 4.2 and 6.3"

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        return too_many(work, terms.people)

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> Signs:
        blocks = [Block("parity", order) for order in range(1, work.order + 1)]
        return sign_family(schema, work.names, [1] * len(work.names), blocks, epsilon)

    def fit(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> HadamardFit:
        return HadamardFit(work, Coefficients(aggregate))

    def shares(self, work: Workload, options: Mapping[str, Any], parts: Sequence[Places]) -> list[float]:
        blocks = [Block("parity", order) for order in range(1, work.order + 1)]
        return sign_shares(work.sizes, [1] * len(work.sizes), blocks, parts)

    def coefficients(self, work: Workload, part: Places) -> int:
        return sign_count(work.sizes, part)

    def predict(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
        expected = terms.people / sum(counts(work))
        inverse = inverse_mean(expected)
        unasked = exp(-expected)
        single = debias(terms.epsilon)
        total = 0.0
        for places in work.sample:
            # the sum over cells of 4^-b sum over a of (1 / kappa^2 - c_a^2) / n_a, less f (1 - f) / n
            cells, padded = work.cells(places), prod(orders(work.shape(places)))
            structure = spread(work, places)
            noise = inverse * (single * cells * (padded - 1) / padded**2 - structure)
            total += noise + unasked * structure - (1 - squared_mass(work, places)) / terms.people
        return total / len(work.sample)

    def reason(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> str:
        total = sum(counts(work))
        return f"{total:,} coefficients of {terms.people / total:,.0f} people each"
