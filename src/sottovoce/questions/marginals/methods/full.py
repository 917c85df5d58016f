"""The whole contingency table through one oracle: every marginal is a sum of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import named_salt, power_of_two, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import LARGEST_SALT
from sottovoce.oracles import PureOracle, SummedOracle, oracle
from sottovoce.oracles.rules import CALM_RULE, oracle_by
from sottovoce.oracles.sketch import HadamardCountMeanSketch
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit, Floats, MarginalMethod
from sottovoce.questions.marginals.models.structure import squared_mass
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.results.words import CLOSED_FORM
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_LISTED_CELLS = 1 << 24  # cells that are estimated one and all
MOST_BITS = 1 << 16  # of a unary report: 8 KiB
MOST_SKETCHED = 1 << 20  # cells that are looked up in a sketch
SKETCH = 1 << 20  # numbers in a sketch
SKETCH_WIDTHS = (1 << 10, 1 << 19)  # of a sketch, unless told otherwise
UNARY_COINS = ("sue", "oue")  # of parallel randomized response: the paper's text, its experiments


def margins(table: Floats, sizes: Sequence[int], sets: Sequence[Places]) -> list[Floats]:
    """The sums of a whole table for each set of attributes.

    Sets that leave out the same first attributes share the sums over them.

    Args:
        table: Flat, the last attribute varying fastest.
        sizes: How many values each attribute has.
        sets: Increasing places of attributes.

    Returns:
        For each set its table, flat.

    >>> margins(np.arange(6.0), (2, 3), [(0,), (1,), (0, 1)])[:2]
    [array([ 3., 12.]), array([3., 5., 7.])]
    """
    found: dict[Places, Floats] = {}
    wanted = [(each, each) for each in dict.fromkeys(sets)]
    _walk(np.asarray(table).reshape(1, -1), 0, sizes, wanted, found)
    return [found[each] for each in sets]


def _walk(
    part: Floats,
    place: int,
    sizes: Sequence[int],
    wanted: list[tuple[Places, Places]],
    found: dict[Places, Floats],
) -> None:
    """Keep the attribute at ``place`` for the sets that hold it, sum over it for the others.

    Args:
        part: Cells of the attributes kept so far x cells of those from ``place`` on.
        place: The attribute to decide about.
        sizes: How many values each attribute has.
        wanted: Sets that keep what was kept so far, each with what of it is still ahead.
        found: Where the tables of sets go that have nothing ahead.
    """
    finished = [own for own, ahead in wanted if not ahead]
    if finished:
        # two sets with the same attributes behind and none ahead are one
        found[finished[0]] = part.sum(axis=1)
    waiting = [(own, ahead) for own, ahead in wanted if ahead]
    if not waiting:
        return
    keeping = [(own, ahead[1:]) for own, ahead in waiting if ahead[0] == place]
    dropping = [(own, ahead) for own, ahead in waiting if ahead[0] != place]
    cube = part.reshape(len(part), sizes[place], -1)  # (kept, values, cells behind)
    if keeping:
        _walk(cube.reshape(len(part) * sizes[place], -1), place + 1, sizes, keeping, found)
    if dropping:
        _walk(cube.sum(axis=1), place + 1, sizes, dropping, found)


class ChosenCoins(MarginalMethod):
    """Parallel randomized response, by coins that a plan may choose.

    cormode2018marginal describes it by symmetric coins (``sue``), and experiments with those of
    ``oue`` (section 5.1).
    """

    options: ClassVar[tuple[str, ...]] = ("coins",)
    oracle_name: ClassVar[str] = UNARY_COINS[0]
    most: ClassVar[int] = MOST_BITS

    def settle(self, work: Workload, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """The option ``coins`` as a plan holds it: nothing if they are the usual ones."""
        self.check_options(options)
        coins = options.get("coins", UNARY_COINS[0])
        if coins not in UNARY_COINS:
            raise InvalidInput(f"coins ({coins}) must be one of {', '.join(UNARY_COINS)}")
        return {} if coins == UNARY_COINS[0] else {"coins": coins}


def oracle_named(usual: str, options: Options) -> str:
    """The name of a method's oracle, unless its settled options have other coins."""
    return str(options.get("coins", usual))


class FullFit(Fit):
    """Sums of the estimated cells; the variance is the oracle's own for so many of them."""

    errors: ClassVar[str] = CLOSED_FORM

    def __init__(self, work: Workload, oracle: PureOracle, aggregate: Aggregate) -> None:
        self._work, self._oracle, self._aggregate = work, oracle, aggregate
        self._people = aggregate.cohort_people(0)
        self._last: tuple[tuple[Places, ...], list[Floats]] = ((), [])

    @cached_property
    def _cells(self) -> Floats:
        """The estimated frequencies of the whole table, flat."""
        return self._oracle.from_support(self._aggregate.support(0), self._people)

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        asked = tuple(sets)
        if asked != self._last[0]:
            self._last = (asked, margins(self._cells, self._work.sizes, asked))
        return [table.copy() for table in self._last[1]]

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        tables = self.tables(sets)
        out = [np.zeros(0)] * len(tables)
        # tables of one size together, since what a sketch's state tells is slow to find
        for cells in {table.size for table in tables}:
            alike = [number for number, table in enumerate(tables) if table.size == cells]
            sums = np.concatenate([tables[number] for number in alike])
            summed = self._oracle.size // cells  # cells of the whole table in each of these
            variances = np.split(self._sum_variances(summed, sums), len(alike))
            for number, own in zip(alike, variances, strict=True):
                out[number] = own
        return out

    def sum_variance(self, places: Places, cells: NDArray[np.int64]) -> float:
        (table,) = self.tables([places])
        total = table[cells].sum(keepdims=True)
        summed = self._oracle.size // table.size * cells.size  # cells of the whole table
        return float(self._sum_variances(summed, total)[0])

    def _sum_variances(self, count: int, sums: Floats) -> Floats:
        """Variances of the errors of sums of ``count`` cells each; a sketch's state counts too."""
        if isinstance(self._oracle, SummedOracle) and self._oracle.uses_state:
            return self._oracle.sum_variances(self._aggregate.state(0), self._people, count, sums)
        return self._oracle.sum_noise(self._people, count).variance(np.clip(sums, 0, 1))

    def is_unbiased(self, places: Places) -> bool:
        return True

    def is_heard(self, part: Places) -> bool:
        return True


class Full(MarginalMethod):
    """Everybody reports her cell of the whole table."""

    oracle_name: ClassVar[str]
    most: ClassVar[int]  # cells of the whole table

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        if _all_cells(work) > self.most:
            return (
                f"the whole table has {_grouped(_all_cells(work))} cells, more than {self.most:,}"
            )
        try:
            self.oracle(work, terms.epsilon, self.settle(work, terms))
        except InvalidInput as wrong:
            return str(wrong)
        return None

    def oracle(self, work: Workload, epsilon: Decimal, options: Options) -> PureOracle:
        """The oracle for the whole table."""
        made = oracle_by(oracle_named(self.oracle_name, options), _all_cells(work), epsilon)
        assert isinstance(made, PureOracle)
        return made

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        ask = Ask(Cells.of(schema, *work.names), self.oracle(work, epsilon, options))
        return Listed([Cohort((ask,))])

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> Fit:
        return FullFit(work, self.oracle(work, aggregate.plan.epsilon, options), aggregate)

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        return [1.0] * len(parts)

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        chosen = self.oracle(work, terms.epsilon, options)
        errors: dict[int, float] = {}
        for cells in set(work.sample_cells):
            # the sum over a table's cells of  floor + slope f,  and sum f = 1
            noise = chosen.sum_noise(terms.people, chosen.size // cells)
            errors[cells] = cells * noise.floor + noise.slope
        return float(np.mean([errors[cells] for cells in work.sample_cells]))

    def reason(self, work: Workload, terms: Terms, options: Options) -> str:
        summed = _all_cells(work) // max(work.sample_cells)
        return f"each cell of a table is the sum of {summed:,} or more noisy cells"


class InputRandomizedResponse(ChosenCoins, Full):
    """Parallel randomized response: a bit for every cell of the whole table.

    ``coins``: ``sue``, or ``oue``, with which the paper experiments.
    """

    name: ClassVar[str] = "inp-rr"
    about: ClassVar[str] = "the whole table by symmetric unary encoding"
    source: ClassVar[str] = (
        "cormode2018marginal, section 4.2, theorem 4.3 corrected, see docs/errata"
    )


class InputPreferentialSampling(Full):
    """Preferential sampling: a cell of the whole table, mostly not the true one."""

    name: ClassVar[str] = "inp-ps"
    about: ClassVar[str] = "the whole table by generalized randomized response"
    source: ClassVar[str] = "cormode2018marginal, section 4.2; fact 3.1 corrected, see docs/errata"
    oracle_name: ClassVar[str] = "grr"
    most: ClassVar[int] = MAX_LISTED_CELLS


class InputLocalHashing(Full):
    """Local hashing of the whole table, on the linear hash: one transform decodes every cell."""

    name: ClassVar[str] = "inp-olh"
    about: ClassVar[str] = "the whole table by local hashing"
    source: ClassVar[str] = "cormode2018marginal, appendix B.2"
    oracle_name: ClassVar[str] = "olh"
    most: ClassVar[int] = MAX_LISTED_CELLS


class FullContingency(Full):
    """Randomized response or unary encoding by the whole table's size; hashing for the largest."""

    name: ClassVar[str] = "fc"
    about: ClassVar[str] = "the whole table by the better of two oracles"
    source: ClassVar[str] = "zhang2018calm, section 3.3"
    oracle_name: ClassVar[str] = CALM_RULE
    most: ClassVar[int] = MAX_LISTED_CELLS


class InputSketch(Full):
    """The whole table in a count-mean sketch: one sign of one row each.

    ``hashes`` rows of ``width`` buckets (powers of two), drawn by ``salt``. By default a row has a
    bucket for every cell, since sums of cells suffer from narrow rows, and there are as many rows
    as a million numbers hold.
    """

    name: ClassVar[str] = "inp-htcms"
    about: ClassVar[str] = "the whole table by a count-mean sketch, Hadamard form"
    source: ClassVar[str] = "cormode2018marginal, appendix B.2"
    options: ClassVar[tuple[str, ...]] = ("hashes", "width", "salt")
    oracle_name: ClassVar[str] = "hcms"
    most: ClassVar[int] = MOST_SKETCHED

    def settle(self, work: Workload, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        holding = 1 << (_all_cells(work) - 1).bit_length()  # buckets for every cell
        usual = min(max(holding, SKETCH_WIDTHS[0]), SKETCH_WIDTHS[1])
        width = power_of_two("width", options.get("width", usual), 2, SKETCH // 2)
        rows = SKETCH // width
        hashes = power_of_two("hashes", options.get("hashes", rows), 2, rows)
        named = named_salt(work.names, work.sizes)
        salt = whole("salt", options.get("salt", named), 0, LARGEST_SALT)
        return {"hashes": hashes, "width": width, "salt": str(salt)}

    def oracle(self, work: Workload, epsilon: Decimal, options: Options) -> HadamardCountMeanSketch:
        made = oracle(self.oracle_name, size=_all_cells(work), epsilon=epsilon, **options)
        assert isinstance(made, HadamardCountMeanSketch)
        return made

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        chosen = self.oracle(work, terms.epsilon, options)
        # what collisions add, over the cells of a table: by all cells' squared frequencies,
        # (N - 2) sum over cells of f^2, and by the table's own
        whole_mass = squared_mass(work, tuple(range(len(work.sizes))))
        own_mass = np.array([squared_mass(work, each) for each in work.sample])  # (tables,)
        shared = chosen.collision_variance((chosen.size - 2) * whole_mass + own_mass)
        return super().predict(work, terms, options) + float(shared.mean())


def _all_cells(work: Workload) -> int:
    return work.cells(tuple(range(len(work.sizes))))


def _grouped(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"about 10^{len(str(count)) - 1}"


FULL: tuple[MarginalMethod, ...] = (
    InputRandomizedResponse(),
    InputPreferentialSampling(),
    InputLocalHashing(),
    InputSketch(),
    FullContingency(),
)
