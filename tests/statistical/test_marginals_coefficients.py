"""Coefficients asked one by one: exact on exact ones, unbiased with the variance stated, decoded as
well as can be.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.protocol.families import Signs
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods.allotment import Allotment
from sottovoce.questions.marginals.methods.coefficients import (
    Coefficients,
    HadamardFit,
    InputHadamard,
    LinearFit,
    debias,
    inverse_mean,
)
from sottovoce.questions.marginals.methods.efron_stein import (
    EfronStein,
    EfronSteinFit,
    people_shares,
)
from sottovoce.questions.marginals.workload import Workload
from tests.statistics import ALPHA, NO_COINS, z_limit

METHODS: dict[str, Any] = {"inp-ht": InputHadamard(), "efron-stein": EfronStein()}
both = pytest.mark.parametrize("name", list(METHODS))


def schema_of(sizes: tuple[int, ...]) -> sv.Schema:
    return sv.Schema(
        **{f"x{place}": sv.Categorical(range(size)) for place, size in enumerate(sizes)}
    )


def work_of(sizes: tuple[int, ...], order: int) -> Workload:
    return Workload.of(schema_of(sizes), None, order)


def some_joint(sizes: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(sizes)), 0.5)).reshape(sizes)


def marginal(joint: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    return joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in places)).ravel()


def characters(family: Signs, sizes: tuple[int, ...]) -> np.ndarray:
    """The sign of each character (rows) in each cell of the whole joint table, record by record."""
    rows = []
    for cohort in family:
        encoding = cohort.asks[0].encoding
        signs = [
            1 - 2 * encoding.encode({f"x{axis}": code for axis, code in enumerate(cell)}, NO_COINS)
            for cell in np.ndindex(sizes)
        ]
        rows.append(signs)
    return np.array(rows, float)


class Known(Coefficients):
    """Coefficients that are given instead of heard."""

    def __init__(
        self, family: Signs, means: np.ndarray, variances: np.ndarray | None = None
    ) -> None:
        self.family, self.people = family, 10**12
        self.means, self.variances = means, np.ones(len(means)) if variances is None else variances
        self.is_answered = np.ones(len(means), bool)
        self._cohorts = {}


def settled(name: str, work: Workload, **changes: Any) -> tuple[Signs, dict[str, Any]]:
    method = METHODS[name]
    options = method.settle(work, Terms(Decimal(1), 10**6)) | changes
    return method.cohorts(schema_of(work.sizes), work, Decimal(1), options), options


def fitted(name: str, work: Workload, source: Coefficients, options: dict[str, Any]) -> LinearFit:
    return HadamardFit(work, source) if name == "inp-ht" else EfronSteinFit(work, source, options)


SMALL = [((2, 3, 3), 2), ((2, 3, 5), 3), ((3, 4, 2, 5), 2), ((2, 2, 2), 3), ((5,), 1), ((3, 2), 1)]


@both
@pytest.mark.parametrize(("sizes", "order"), SMALL)
def test_true_coefficients_give_the_true_tables(
    name: str, sizes: tuple[int, ...], order: int
) -> None:
    work = work_of(sizes, order)
    family, options = settled(name, work)
    joint = some_joint(sizes)
    fit = fitted(name, work, Known(family, characters(family, sizes) @ joint.ravel()), options)
    for count in range(1, order + 1):
        for places in combinations(range(len(sizes)), count):
            assert fit.tables([places])[0] == pytest.approx(marginal(joint, places), abs=1e-12)
            assert fit.is_unbiased(places)
            assert not fit.is_reconstructed(places)


def components(sizes: tuple[int, ...], order: int) -> np.ndarray:
    """An orthonormal basis of all tables that are sums of components of 1 to ``order``
    attributes.
    """
    total = np.zeros((int(np.prod(sizes)),) * 2)
    for count in range(1, order + 1):
        for part in combinations(range(len(sizes)), count):
            factors = [
                np.eye(size) - 1 / size if axis in part else np.full((size, size), 1 / size)
                for axis, size in enumerate(sizes)
            ]
            total += reduce(np.kron, factors)
    values, vectors = np.linalg.eigh(total)
    return vectors[:, values > 0.5]


@pytest.mark.parametrize(("sizes", "order"), SMALL)
@pytest.mark.parametrize("times", [None, (5, 2, 9)])
def test_components_are_least_squares_over_everybody(
    sizes: tuple[int, ...], order: int, times: tuple[int, ...] | None
) -> None:
    work = work_of(sizes, order)
    changes = (
        {}
        if times is None
        else {"times": list(times[:order]), "weights": [3, 1, 2, 1][: len(sizes)]}
    )
    family, options = settled("efron-stein", work, **changes)
    matrix = characters(family, sizes)
    told = np.random.default_rng(3).normal(size=len(matrix))
    roots = np.sqrt([cohort.weight for cohort in family])
    basis = components(sizes, order)
    even = np.full(matrix.shape[1], 1 / matrix.shape[1])
    solved = np.linalg.lstsq(
        (matrix @ basis) * roots[:, None], (told - matrix @ even) * roots, rcond=None
    )[0]
    joint = (even + basis @ solved).reshape(sizes)
    fit = fitted("efron-stein", work, Known(family, told), options)
    for places in combinations(range(len(sizes)), order):
        assert fit.tables([places])[0] == pytest.approx(marginal(joint, places), abs=1e-9)


def operator(
    name: str, work: Workload, family: Signs, options: dict[str, Any], places: tuple[int, ...]
) -> np.ndarray:
    """What each coefficient adds to each cell of a table: the linear map, column by column."""
    zero = fitted(name, work, Known(family, np.zeros(len(family))), options).tables([places])[0]
    columns = []
    for one in np.eye(len(family)):
        columns.append(fitted(name, work, Known(family, one), options).tables([places])[0] - zero)
    return np.array(columns).T


@both
@pytest.mark.parametrize(("sizes", "order"), SMALL[:4])
def test_variances_are_those_of_the_linear_map(
    name: str, sizes: tuple[int, ...], order: int
) -> None:
    work = work_of(sizes, order)
    family, options = settled(name, work)
    # respondents are never equally many
    noise = np.random.default_rng(4).gamma(2.0, size=len(family))
    fit = fitted(name, work, Known(family, np.zeros(len(family)), noise), options)
    for places in [(0,), tuple(range(order)), tuple(range(len(sizes) - order, len(sizes)))]:
        brute = operator(name, work, family, options, places) ** 2 @ noise
        assert fit.variances([places])[0] == pytest.approx(brute, rel=1e-9)


def expected_error(name: str, work: Workload, family: Signs, options: dict[str, Any]) -> float:
    """The mean over tables of the summed variances, one person in all, each at a variance of 1."""
    weights = np.array([cohort.weight for cohort in family], float)
    tables = [
        float(
            (operator(name, work, family, options, places) ** 2 @ (weights.sum() / weights)).sum()
        )
        for places in work.sample
    ]
    return float(np.mean(tables))


@pytest.mark.parametrize(("sizes", "order"), SMALL)
def test_the_allotment_knows_its_error_and_no_other_has_less(
    sizes: tuple[int, ...], order: int
) -> None:
    work = work_of(sizes, order)
    family, options = settled("efron-stein", work)
    allotment = Allotment(work)
    weights = dict(zip(work.sizes, options["weights"], strict=True))
    own = np.array([weights[size] for size in allotment.sizes], float)
    times = np.array(options["times"], float)
    least = allotment.error(times, own)
    assert least == pytest.approx(expected_error("efron-stein", work, family, options), rel=1e-9)
    draws = np.random.default_rng(5)
    for _ in range(50):
        other = (
            times * np.exp(draws.normal(size=len(times))),
            own * np.exp(draws.normal(size=len(own)) / 2),
        )
        assert allotment.error(*other) > least * 0.999  # as far as whole tickets allow


def test_yes_or_no_attributes_get_the_square_root_of_their_uses() -> None:
    # E = sum over orders of C(k, r) 2^-k T_r / n_r with n_r people for C(d, r) characters: times^2
    # ~ C(k, r) / C(d, r)
    work = work_of((2,) * 8, 3)
    _, options = settled("efron-stein", work)
    times = np.array(options["times"], float)
    exact = np.sqrt([3 / 8, 3 / 28, 1 / 56])
    assert times / times[-1] == pytest.approx(exact / exact[-1], rel=0.01)
    assert sum(people_shares(work, options)) == pytest.approx(1)
    assert options["weights"] == [1] * 8


@pytest.mark.parametrize("sizes", [(3, 3, 3), (5, 5), (2, 3, 6), (7, 9)])
def test_orthogonal_components_beat_bits_unless_sizes_are_powers_of_two(
    sizes: tuple[int, ...],
) -> None:
    def errors(own: tuple[int, ...]) -> tuple[float, float, float]:
        work = work_of(own, 2)
        bits, none = settled("inp-ht", work)
        alike, even = settled("efron-stein", work, times=[1, 1], weights=[1] * len(own))
        shared, best = settled("efron-stein", work)
        return (
            expected_error("inp-ht", work, bits, none),
            expected_error("efron-stein", work, alike, even),
            expected_error("efron-stein", work, shared, best),
        )

    bits, alike, best = errors(sizes)
    assert alike < 0.995 * bits  # the same people, decoded better
    assert best <= alike * 1.001
    powers = tuple(1 << (size - 1).bit_length() for size in sizes)
    bits, alike, best = errors(powers)
    assert alike == pytest.approx(bits, rel=1e-9)
    assert best <= bits * 1.001
    assert best < 0.99 * bits or len(sizes) == 2  # where the one table uses all characters alike


# -- whole crowds


def crowd(sizes: tuple[int, ...], people: int) -> dict[str, np.ndarray]:
    cells = np.random.default_rng(6).choice(
        int(np.prod(sizes)), people, p=some_joint(sizes, 7).ravel()
    )
    return {f"x{axis}": column for axis, column in enumerate(np.unravel_index(cells, sizes))}


def standardised(
    name: str, sizes: tuple[int, ...], order: int, epsilon: float, people: int, runs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(errors, errors in units of their stated standard deviation, mean stated variance): runs x
    cells of all tables.

    The variances are those of the true coefficients and the people who answered each in that run.
    """
    table = crowd(sizes, people)
    schema = schema_of(sizes)
    plan = sv.plan(schema, sv.Marginals(up_to=order, method=name), epsilon=epsilon, people=people)
    work = plan.question.work(schema)  # type: ignore[attr-defined]
    family: Any = plan.cohorts
    joint = np.zeros(sizes)
    np.add.at(joint, tuple(table.values()), 1 / people)
    means = characters(family, sizes) @ joint.ravel()
    sets = list(combinations(range(len(sizes)), order))
    truth = np.concatenate([marginal(joint, places) for places in sets])
    errors, stated = [], []
    for run in range(runs):
        total = sv.Aggregate(plan).add(sv.simulate(plan, table, seed=run))
        fit = total.estimate().fit  # type: ignore[attr-defined]
        heard = np.bincount(total.answers[0], total.answers[2], len(family))
        source = Known(family, means, (1 / family.oracles[0].gap ** 2 - means**2) / heard)
        source.people = people
        exact = fitted(name, work, source, plan.question.options)  # type: ignore[attr-defined]
        errors.append(np.concatenate(fit.tables(sets)) - truth)
        stated.append(np.concatenate(exact.variances(sets)))
    return np.array(errors), np.array(errors) / np.sqrt(stated), np.mean(stated, axis=0)


RUNS = 400
# the last one has few characters and large epsilon: there it shows that the people asked are all
# there are
CASES = [((2, 3, 4), 2, 1.0, 1500), ((2, 2), 1, 4.0, 1000)]


@both
@pytest.mark.parametrize(("sizes", "order", "epsilon", "people"), CASES)
def test_tables_are_unbiased_with_the_variance_stated(
    name: str, sizes: tuple[int, ...], order: int, epsilon: float, people: int
) -> None:
    errors, standard, stated = standardised(name, sizes, order, epsilon, people, RUNS)
    cells = standard.shape[1]
    compared = len(CASES) * len(METHODS) * cells
    reach = z_limit(compared)
    assert np.abs(standard.mean(axis=0)).max() * np.sqrt(RUNS) < reach
    low, high = chi2.ppf(ALPHA / (2 * compared), RUNS), chi2.isf(ALPHA / (2 * compared), RUNS)
    squares = (standard**2).sum(axis=0)
    assert low < squares.min()
    assert squares.max() < high
    # a variance half as large again or less is told apart, and so is one that takes the people for
    # a sample
    assert (squares / 1.6).min() < low
    assert (squares * 1.6).max() > high
    if order == 1:
        joint = np.concatenate(
            [np.bincount(column) / people for column in crowd(sizes, people).values()]
        )
        sampled = stated + joint * (1 - joint) / people
        assert ((errors**2 / sampled).sum(axis=0)).min() < low


def test_17_the_printed_factor_spoils_every_table() -> None:
    """Coefficients times 2^-d, as algorithm 2 prints them, make tables uniform; without it they are
    the truth.
    """
    sizes = (2, 2, 2)
    work = work_of(sizes, 2)
    family, _ = settled("inp-ht", work)
    joint = some_joint(sizes)
    exact = characters(family, sizes) @ joint.ravel()
    truth = marginal(joint, (0, 1))
    corrected = HadamardFit(work, Known(family, exact)).tables([(0, 1)])[0]
    printed = HadamardFit(work, Known(family, exact / 8)).tables([(0, 1)])[0]
    assert corrected == pytest.approx(truth, abs=1e-12)
    assert np.abs(printed - truth).max() > 0.8 * np.abs(truth - 0.25).max()


@both
@pytest.mark.parametrize(
    ("sizes", "order", "people"), [((3,) * 5, 2, 3000), ((2,) * 7, 3, 2000), ((2, 6, 9), 2, 900)]
)
def test_predictions_are_what_crowds_show(
    name: str, sizes: tuple[int, ...], order: int, people: int
) -> None:
    """Summed squared errors of 40 crowds; within 15%, whose makings are typical instead of true
    frequencies.
    """
    table = crowd(sizes, people)
    plan = sv.plan(
        schema_of(sizes), sv.Marginals(up_to=order, method=name), epsilon=1.0, people=people
    )
    question: Any = plan.question
    work = question.work(plan.schema)
    truth = np.zeros(sizes)
    np.add.at(truth, tuple(table.values()), 1 / people)
    total = 0.0
    for run in range(40):
        values = (
            sv.Aggregate(plan)
            .add(sv.simulate(plan, table, seed=run))
            .estimate()
            .fit.tables(work.sample)
        )  # type: ignore[attr-defined]
        total += sum(
            ((v - marginal(truth, s)) ** 2).sum() for v, s in zip(values, work.sample, strict=True)
        )
    predicted = METHODS[name].predict(work, Terms(Decimal(1), people), question.options)
    assert total / 40 / work.count == pytest.approx(predicted, rel=0.15)


def test_the_mean_inverse_number_of_respondents() -> None:
    for expected in (0.3, 2.0, 30.0, 45.0):
        drawn = np.arange(1, 400)
        chances = np.exp(drawn * np.log(expected) - expected - np.cumsum(np.log(drawn)))
        assert inverse_mean(expected) == pytest.approx(float((chances / drawn).sum()), rel=1e-3)
    assert debias(Decimal(1)) == pytest.approx(((np.e + 1) / (np.e - 1)) ** 2)


# -- edges


@both
def test_characters_that_nobody_answered_are_zero_with_an_honest_variance(name: str) -> None:
    sizes = (2, 3, 5)
    plan = sv.plan(schema_of(sizes), sv.Marginals(up_to=2, method=name), epsilon=1.0, people=1000)
    few = {key: column[:5] for key, column in crowd(sizes, 1000).items()}
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, few, seed=1)).estimate()
    table = estimate.marginal("x1", "x2")
    assert not table.is_unbiased
    assert float(table.variances.min()) > 1e-3
    assert np.isfinite(table.values).all()
    alone = sv.Aggregate(plan).add(
        sv.simulate(plan, {key: column[:1] for key, column in few.items()}, seed=1)
    )
    assert float(alone.estimate().marginal("x1", "x2").variances.min()) > 1e-3
    many = sv.Aggregate(plan).add(sv.simulate(plan, crowd(sizes, 20_000), seed=1)).estimate()
    better = many.marginal("x1", "x2")
    assert better.is_unbiased
    assert better.errors == "closed form"
    assert float(better.variances.max()) < float(table.variances.min())


@both
def test_larger_sets_have_the_largest_entropy_that_the_tables_allow(name: str) -> None:
    sizes = (2, 3, 2, 3)
    work = work_of(sizes, 2)
    family, options = settled(name, work)
    # a chain: what is not said by its pairs is not there, so that the pairs give the whole table
    first, draws = np.array([0.3, 0.7]), np.random.default_rng(8)
    joint = first
    for before, size in pairwise(sizes):
        joint = joint[..., None] * draws.dirichlet(np.full(size, 2.0), before)
    fit = fitted(name, work, Known(family, characters(family, sizes) @ joint.ravel()), options)
    whole = (0, 1, 2, 3)
    assert fit.tables([whole])[0] == pytest.approx(joint.ravel(), abs=1e-4)
    assert fit.is_reconstructed(whole)
    assert not fit.is_unbiased(whole)
    assert float(fit.variances([whole])[0].min()) > 0


@both
def test_what_cannot_be_asked_is_refused_with_its_number(name: str) -> None:
    method = METHODS[name]
    assert method.refuse(work_of((2,) * 32, 8), Terms(Decimal(1), 1 << 18)) == (
        "it asks for 15,033,172 coefficients, more than the 262,144 people"
    )
    assert "5,000 values" in method.refuse(work_of((5000, 2), 1), Terms(Decimal(1), 10**6))
    assert "67,108,864" in method.refuse(work_of((2,) * 64, 8), Terms(Decimal(1), 1 << 50))
    assert method.refuse(work_of((2,) * 8, 3), Terms(Decimal(1), 92)) is None
    with pytest.raises(sv.InvalidInput, match="option"):
        sv.plan(
            schema_of((2, 2)), sv.Marginals(up_to=2, method=name, views=3), epsilon=1.0, people=100
        )


@both
def test_plans_read_back_and_promise_their_epsilon(name: str) -> None:
    plan = sv.plan(
        schema_of((2, 3, 16)), sv.Marginals(up_to=2, method=name), epsilon=0.7, people=50_000
    )
    assert sv.Plan.from_json(plan.to_json(), id=plan.id) == plan
    assert 0.69 < plan.guarantee.per_report <= 0.7
    if name == "inp-ht":
        assert len({cohort.weight for cohort in plan.cohorts}) == 1
