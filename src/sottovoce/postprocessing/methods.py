"""The one explicit table of methods, and the function that applies one of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack, overload

from sottovoce.ground.errors import InvalidInput
from sottovoce.postprocessing.baseline import base_cut, base_pos
from sottovoce.postprocessing.bootstrap import REPAIR_ERRORS, UNREPAIRED_ERRORS, RepairSpread
from sottovoce.postprocessing.likelihood import (
    composite_likelihood,
    expectation_maximization,
    is_complete,
    maximum_likelihood,
    mle_apx,
)
from sottovoce.postprocessing.power import power, power_ns
from sottovoce.postprocessing.simplex import norm, norm_cut, norm_mul, norm_sub
from sottovoce.results.estimate import Estimate, Floats, Table


class RepairOptions(TypedDict, total=False):
    """The options of all ways to repair a table, each with the type that it takes."""

    alpha: float  # base-cut: how many values that nobody holds pass it, about
    iterations: int  # em: at most
    tolerance: float  # em: the change of a value below which it ends


@dataclass(frozen=True)
class Repair:
    """A way to repair a table: what it does, and what then holds (wang2021thesis, table 8.1).

    >>> METHODS["norm-sub"].about
    'add one amount to all and set negatives to 0, to sum to one'
    >>> METHODS["base-cut"].options
    ('alpha',)
    """

    about: str  # one line for help and docs
    repair: Callable[..., Floats]  # the table's new values
    is_non_negative: bool = True
    sums_to_one: bool = True
    is_unbiased: bool = False  # an unbiased table stays so
    # the reports it needs the counts of (PureLaw.encoding); None for any table
    encoding: str | None = None
    limit: str | None = None  # the method whose values it approaches, more slowly
    # whether its values follow a fitted law, and so are the most plausible crowd
    is_fitted: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options it takes."""
        return tuple(inspect.signature(self.repair).parameters)[1:]

    def fits(self, table: Table) -> bool:
        """Whether the method can be applied to this table."""
        return self.encoding is None or is_complete(table, self.encoding)


def _untouched(table: Table) -> Floats:
    return table.values


def _of_values(repair: Callable[[Floats], Floats]) -> Callable[[Table], Floats]:
    """A repair that looks at nothing but the values."""

    def of_table(table: Table) -> Floats:
        return repair(table.values)

    return of_table


# Every method there is. A new one is a function in a file of this folder and a line here.
METHODS: dict[str, Repair] = {
    "base": Repair("leave the estimates as they are", _untouched, False, False, is_unbiased=True),
    "base-pos": Repair("set negative estimates to 0", _of_values(base_pos), sums_to_one=False),
    "post-pos": Repair(
        "set negative sums of queries to 0, not the estimates", _untouched, False, False
    ),
    "base-cut": Repair("set estimates that may be noise to 0", base_cut, sums_to_one=False),
    "norm": Repair(
        "add one amount to all, to sum to one", _of_values(norm), False, is_unbiased=True
    ),
    "norm-mul": Repair(
        "set negatives to 0 and scale the rest, to sum to one", _of_values(norm_mul)
    ),
    "norm-sub": Repair(
        "add one amount to all and set negatives to 0, to sum to one", _of_values(norm_sub)
    ),
    "norm-cut": Repair(
        "set the smallest to 0 until the rest sum to at most one", _of_values(norm_cut), True, False
    ),
    "mle-apx": Repair("the likeliest frequencies if errors are normal", mle_apx),
    "power": Repair(
        "expected frequencies under a fitted power law", power, sums_to_one=False, is_fitted=True
    ),
    "power-ns": Repair("power, then norm-sub", power_ns, is_fitted=True),
    "maximum-likelihood": Repair(
        "the likeliest frequencies behind grr reports, exactly",
        maximum_likelihood,
        encoding="direct",
    ),
    "em": Repair(
        "the same by expectation maximization, from the uniform on",
        expectation_maximization,
        encoding="direct",
        limit="maximum-likelihood",
    ),
    "composite-likelihood": Repair(
        "the likeliest frequencies behind unary reports, columns taken as independent",
        composite_likelihood,
        encoding="bits",
    ),
}

# The decoders of kairouz2016discrete, section 4.4.
REPAIR_ALIASES = {"empirical": "base", "normalized": "norm-mul", "projected": "norm-sub"}


def find(name: str) -> tuple[str, Repair]:
    """A method by name or alias, with the name that marks its tables.

    >>> find("projected")[0]
    'norm-sub'
    """
    known = REPAIR_ALIASES.get(name, name)
    if known not in METHODS:
        raise InvalidInput(
            f"method ({name}) must be one of {', '.join([*METHODS, *REPAIR_ALIASES])}"
        )
    return known, METHODS[known]


@overload
def postprocess(estimate: Estimate, method: str, **options: Unpack[RepairOptions]) -> Estimate: ...


@overload
def postprocess(estimate: Table, method: str, **options: Unpack[RepairOptions]) -> Table: ...


def postprocess(
    estimate: Estimate | Table, method: str, **options: Unpack[RepairOptions]
) -> Estimate | Table:
    """Repair a table, or every table of an estimate, by the named method, and mark it.

    Methods that make sums one assume that the table lists every value. Standard errors and ``bias``
    of the repaired values come from a parametric bootstrap: collections from a crowd like this one
    are drawn and repaired. Intervals are of the true frequencies: they start from the unrepaired
    values, lie in [0, 1] where repaired values do, and are narrower where a law of sums tells how
    much is won by knowing the sum. A value outside its interval was moved further than noise
    explains. Of tables of more than 500,000 values the standard errors stay the unrepaired ones.

    Args:
        estimate: a table, or an estimate with several.
        method: its name, such as ``norm-sub``.
        **options: of the method: ``alpha`` of base-cut, ``iterations`` and ``tolerance`` of em.

    >>> import numpy as np
    >>> from sottovoce.oracles import Noise
    >>> values, variances = np.array([0.9, 0.3, -0.2]), np.full(3, 0.01)
    >>> table = Table(("x",), "abc", values, variances, 100, Noise(0.01, 0.0))
    >>> repaired = postprocess(table, "norm-sub")
    >>> repaired.values.round(6).tolist(), repaired.repair, repaired.is_unbiased
    ([0.8, 0.2, 0.0], 'norm-sub', False)
    """
    name, chosen = find(method)
    given: dict[str, Any] = {**options}
    for option in given:
        if option not in chosen.options:
            allowed = ", ".join(chosen.options) or "it has none"
            raise InvalidInput(f"option {option!r} is not one of {name}'s ({allowed})")
    if isinstance(estimate, Estimate):
        return replace(
            estimate,
            tables={key: _repaired(table, name, given) for key, table in estimate.tables.items()},
        )
    return _repaired(estimate, name, given)


def _repaired(table: Table, name: str, options: dict[str, Any]) -> Table:
    if name == "base":
        return table
    chosen = METHODS[name]
    values = chosen.repair(table, **options)
    spread = _spread(table, name, options, values if chosen.is_fitted else None)
    is_unbiased = chosen.is_unbiased and table.is_unbiased and table.is_complete
    made = partial(table.repaired, values, name, is_unbiased=is_unbiased, spread=spread)
    if chosen.repair is _untouched:
        return made()
    if is_unbiased and spread.is_narrowed:
        return made(variances=spread.unbiased()[1])
    if is_unbiased or not spread.is_drawn:
        return made(errors=UNREPAIRED_ERRORS)
    variances, bias = spread.moments()
    return made(variances=variances, bias=bias, errors=REPAIR_ERRORS)


def _spread(
    table: Table, name: str, options: dict[str, Any], shares: Floats | None
) -> RepairSpread:
    """What is known of the errors after this repair, and after those before it."""
    chosen = METHODS[name]
    # what a method only approaches stands for it, unless it was told how near to come
    drawn_by = chosen if chosen.limit is None or options else METHODS[chosen.limit]
    last = partial(drawn_by.repair, **options)
    before = table.spread
    if not isinstance(before, RepairSpread):
        return RepairSpread(
            table, last, chosen.is_non_negative, chosen.sums_to_one, name == "post-pos", shares
        )
    return RepairSpread(
        before.raw,
        partial(_one_by_one, before.repair, last),
        before.has_bounds or chosen.is_non_negative,
        before.is_whole or chosen.sums_to_one,
        before.cuts_sums or name == "post-pos",
        before.shares if shares is None else shares,
    )


def _one_by_one(
    first: Callable[[Table], Floats], second: Callable[[Table], Floats], table: Table
) -> Floats:
    """Two repairs of a table, one after the other."""
    return second(replace(table, values=first(table)))
