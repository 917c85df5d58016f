"""One call from a table to a private release."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict, Unpack

from sottovoce.accounting import Ledger, Neighbours
from sottovoce.accounting.steps import check_neighbours
from sottovoce.central.choice import MAY_BE_EMPTY, ReleaseChoice, choose
from sottovoce.central.estimate import ReleaseFit
from sottovoce.central.guarantee import CentralGuarantee
from sottovoce.central.method import CentralTable, ReleasedCounts, ReleaseTerms
from sottovoce.central.methods import METHODS
from sottovoce.central.result import Release, public_part
from sottovoce.central.storage import (
    check_output,
    ledger_path,
    load_release,
    versions,
    write_release,
)
from sottovoce.central.tables import Advance, check_is_list, read_table
from sottovoce.device.client import PrivacyWarning
from sottovoce.ground.arguments import plain_option, whole
from sottovoce.ground.entropy import Entropy, System
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.questions.method import AUTO
from sottovoce.schema import Schema

__all__ = ["load_release", "release"]

LARGEST_DELTA = Decimal("0.01")
SMALLEST_DELTA = Decimal("1e-60")
MOST_TOGETHER = 16  # values of a tuple


class ReleaseOptions(TypedDict, total=False):
    """The options of all ways to release, each with the type that it takes."""

    form: str  # set-union
    limit: int | Sequence[int | None]  # set-union, dp-marginals
    alpha: Any  # set-union
    counts: Any  # set-union
    rounds: int  # set-union
    shares: Sequence[Any]  # dp-marginals
    eta: Any  # dp-marginals
    find: str  # dp-marginals
    percentile: str  # dp-marginals
    accounting: str  # dp-marginals
    no_spurious: bool  # dp-marginals
    weights: Sequence[Any]  # residual
    equal: str  # residual
    repair: str  # residual
    measured: int  # residual
    expected_people: int  # residual, priview
    views: Sequence[Sequence[int]]  # priview
    noise: str  # priview


def release(
    table: Any,
    epsilon: Any,
    delta: Any,
    up_to: int = 2,
    method: str = AUTO,
    *,
    user: str | None = None,
    items: str | None = None,
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    neighbours: Neighbours = "add-remove",
    output: str | os.PathLike[str] | None = None,
    empty: Sequence[str] = (),
    may_be_empty: Sequence[str] = (),
    force: Sequence[str] = (),
    advance: Advance | None = None,
    say: Callable[[str], None] | None = None,
    **options: Unpack[ReleaseOptions],
) -> Release:
    """Release how many users hold each value, each pair of values, and so on, privately.

    All noise is drawn from the operating system, after the ledger was written. With ``output`` the
    release is a folder, whole or not there, and the ledger is the file ``OUTPUT.ledger.json``
    beside it, which stays, even if the release fails.

    Args:
        table: the path of a CSV or Parquet file or of a folder of Parquet files; or an Arrow or
            pandas table, or a mapping of columns.
        epsilon: of the guarantee.
        delta: of the guarantee, well below one in the number of users; 0 for pure privacy, which
            only some methods give.
        up_to: how many values together, at most.
        method: ``auto``, ``dp-marginals``, ``set-union``, ``residual`` or ``priview``.
        user: the column that says whose a row is; without it each row is a user.
        items: the column of sets, of lists or with ``user`` of one item in each row.
        schema: attributes whose values are public; others are found privately.
        columns: the attributes; by default those of the schema, or all columns.
        neighbours: ``add-remove`` or ``replace-one``: what the guarantee hides of a user.
        output: a folder that is not there yet; None to keep the release in memory.
        empty: texts that say nothing, beside None, NaN and the empty text.
        may_be_empty: attributes with public values that may also say nothing; ``residual`` and
            ``priview`` count that as one more value.
        force: columns that are taken although nearly every row has a value of its own.
        advance: told how many rows were read.
        say: told, for the curator alone, what is about to be done.
        **options: of the method, as ``sottovoce methods release`` lists them.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(tea=sv.Categorical(["green", "black"]))
    >>> people = {"tea": ["green", "green", "black", None] * 250}
    >>> terms = {"epsilon": 1, "delta": "1e-6", "up_to": 1}
    >>> told = sv.release(people, **terms, schema=schema, may_be_empty=["tea"])
    >>> abs(told.rows(1)[0]["count"] - 500) < 100
    True
    """
    check_is_list("may_be_empty", may_be_empty)
    given: dict[str, Any] = {**options}
    if may_be_empty:
        given[MAY_BE_EMPTY] = list(may_be_empty)
    terms = parse_terms(epsilon, delta, up_to, neighbours, given)
    folder = None if output is None else Path(output)
    if folder is not None:
        check_output(folder)
    held = read_table(
        table,
        user=user,
        items=items,
        schema=schema,
        columns=columns,
        empty=empty,
        force=force,
        advance=advance,
    )
    check_together(held, terms)
    check_may_be_empty(held, may_be_empty)
    warn_about_delta(held, terms)
    choice = choose(method, METHODS, held, terms)
    if say is not None:
        say(f"{held.rows:,} rows of {held.people:,} users; {choice.method.name}: {choice.why}")
    with _opened_ledger(terms, folder) as ledger:
        made = released(held, terms, choice, ledger, System(), user=user, items=items)
    if folder is not None:
        write_release(made, folder)
    return made


@contextmanager
def _opened_ledger(terms: ReleaseTerms, folder: Path | None) -> Iterator[Ledger]:
    """The ledger of a release, on the disk if the release will be; gone again if nothing was spent
    and the release failed.
    """
    path = None if folder is None else ledger_path(folder)
    ledger = Ledger(terms.neighbours, epsilon=terms.epsilon, delta=terms.delta, path=path)
    try:
        yield ledger
    except BaseException:
        if path is not None and not ledger.steps:
            path.unlink(missing_ok=True)
        raise
    finally:
        ledger.close()


def released(
    table: CentralTable,
    terms: ReleaseTerms,
    choice: ReleaseChoice,
    ledger: Ledger,
    entropy: Entropy,
    *,
    user: str | None = None,
    items: str | None = None,
) -> Release:
    """The release of a table by a method that was chosen. With seeded entropy it is a simulation.

    Args:
        table: as codes.
        terms: what is promised.
        choice: the method.
        ledger: that has the budget.
        entropy: from which all noise is drawn.
        user: the column that said whose a row is.
        items: the column of sets.
    """
    counts = choice.method.release(table, choice.terms(terms), ledger, entropy)
    attributes, tuples = public_part(table, counts)
    return Release(
        attributes=attributes,
        is_sets=table.is_sets,
        tuples=tuples,
        guarantee=CentralGuarantee(terms.epsilon, terms.delta, terms.neighbours, user),
        parameters={
            "epsilon": str(terms.epsilon),
            "delta": str(terms.delta),
            "up_to": terms.up_to,
            "neighbours": terms.neighbours,
            "user": user,
            "items": items,
            "options": {name: plain_option(value) for name, value in terms.options.items()},
        },
        choice=choice.to_json(),
        ledger=ledger.to_json(),
        notes=counts.notes,
        versions=versions(),
        total=_total(counts),
        fitted=counts.estimate,
    )


def _total(counts: ReleasedCounts) -> float | None:
    """The number of users, if the release paid for it."""
    fit = None if counts.estimate is None else counts.estimate.fit
    return fit.total if isinstance(fit, ReleaseFit) else None


def parse_terms(
    epsilon: Any, delta: Any, up_to: Any, neighbours: Neighbours, options: Mapping[str, Any]
) -> ReleaseTerms:
    """What is promised, read strictly.

    >>> parse_terms(1.0, "1e-6", 3, "add-remove", {}).delta
    Decimal('0.000001')
    """
    check_neighbours(neighbours)
    together = whole("up_to", up_to, 1, MOST_TOGETHER)
    return ReleaseTerms(parse_epsilon(epsilon), parse_delta(delta), together, neighbours, options)


def list_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they are typed: a ``;`` stands between the parts of a list.

    >>> list_options({"shares": "0.1;0.3;0.6", "limit": 20})
    {'shares': ['0.1', '0.3', '0.6'], 'limit': 20}
    """
    return {
        name: value.split(";") if isinstance(value, str) and ";" in value else value
        for name, value in options.items()
    }


def parse_delta(delta: Any) -> Decimal:
    """Delta as it was written; refused where it promises nothing.

    >>> parse_delta(1e-6)
    Decimal('0.000001')
    """
    try:
        if isinstance(delta, bool):
            raise TypeError
        value = delta if isinstance(delta, Decimal) else Decimal(str(delta))
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput(f"delta ({delta}) must be a number") from None
    if not value.is_finite() or value < 0:
        raise InvalidInput(f"delta ({delta}) must be finite and at least 0")
    if value > LARGEST_DELTA:
        raise InvalidInput(
            f"delta ({delta}) must be at most {LARGEST_DELTA}: with that chance a release may tell "
            "everything about somebody; choose well below one in the number of users"
        )
    if value and value < SMALLEST_DELTA:
        raise InvalidInput(f"delta ({delta}) must be 0 or at least {SMALLEST_DELTA}")
    return value if not value else Decimal(f"{value:f}").normalize()


def check_together(table: CentralTable, terms: ReleaseTerms) -> None:
    """Refuse tuples of more values than there are attributes."""
    if not table.is_sets and terms.up_to > len(table.columns):
        raise InvalidInput(
            f"up_to ({terms.up_to}) must be at most the number of attributes ({len(table.columns)})"
        )


def check_may_be_empty(table: CentralTable, may_be_empty: Sequence[str]) -> None:
    """Refuse names that no attribute has, also for methods to which any cell may be empty."""
    for name in may_be_empty:
        if name not in table.columns:
            known = ", ".join(table.columns)
            raise InvalidInput(f"may_be_empty ({name}) must name attributes (of: {known})")


def warn_about_delta(table: CentralTable, terms: ReleaseTerms) -> None:
    """Warn the curator if delta allows to publish somebody's row; nothing of it is released."""
    if terms.delta * table.people > 1:
        warnings.warn(
            f"delta ({terms.delta}) is above one in the number of users: a release that published "
            "a row at random would satisfy it; choose it well below",
            PrivacyWarning,
            stacklevel=3,
        )
