"""What a plan promises: errors of single shares, of pairs' cells and of whole tables, apart."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import MarginalMethod
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Options
from sottovoce.questions.prediction import OF_PAIRS, OF_SHARES, OF_TABLES, Figure

SHARE_DIGITS = 9  # to which shares of people are compared
CLEARLY_WORSE = 1.05  # times the error of all cells, from which the worst attributes are named


def predicted_figures(
    method: MarginalMethod, work: Workload, terms: Terms, options: Options
) -> tuple[Figure, ...]:
    """The errors of shares of one attribute, of cells of pairs, and of cells of larger tables.

    Args:
        method: The one that is planned.
        work: The tables that it is planned for.
        terms: Epsilon and the number of people.
        options: As the method settled them.

    Returns:
        A figure for each kind that the workload has, single attributes first.
    """
    singles = [part for part in work.parts if len(part) == 1]
    pairs = [part for part in work.parts if len(part) == 2]
    figures = [
        _figure(method, work, terms, options, singles, "a share of one attribute", OF_SHARES)
    ]
    if pairs:
        figures.append(_figure(method, work, terms, options, pairs, "a cell of a pair", OF_PAIRS))
    large = [places for places in work.sample if len(places) > 2]
    if large:
        orders = {len(places) for places in large}
        what = f"a cell of {orders.pop()} attributes" if len(orders) == 1 else "a cell of a table"
        figures.append(_figure(method, work, terms, options, large, what, OF_TABLES))
    return tuple(figures)


def _figure(
    method: MarginalMethod,
    work: Workload,
    terms: Terms,
    options: Options,
    tables: Sequence[Places],
    what: str,
    kind: str,
) -> Figure:
    """The root mean squared error over the cells of some tables, and over those of the worst."""
    # tables of one shape of which as many people tell are alike
    keys = _keys(method, work, options, tables)
    first: dict[tuple[object, ...], Places] = {}
    for key, places in zip(keys, tables, strict=True):
        first.setdefault(key, places)
    found = method.predict_tables(work, terms, options, list(first.values()))
    by_key = dict(zip(first, found, strict=True))

    total = sum(by_key[key] for key in keys)
    cells = sum(work.cells(places) for places in tables)
    per_cell = {key: by_key[key] / work.cells(places) for key, places in first.items()}
    worst = max(per_cell, key=lambda key: per_cell[key])
    error = sqrt(total / cells)
    largest = sqrt(per_cell[worst])
    is_named = largest > CLEARLY_WORSE * error
    names = " x ".join(work.attributes(first[worst])) if is_named else ""
    return Figure(what, error, kind, names, largest)


def _keys(
    method: MarginalMethod, work: Workload, options: Options, tables: Sequence[Places]
) -> list[tuple[object, ...]]:
    """What predictions go by: the values of each attribute, and who is asked about it.

    Of two attributes also who is asked about both; of more that would be too much to tell apart.
    """
    parts: list[Places] = sorted({(place,) for places in tables for place in places})
    parts += [places for places in dict.fromkeys(tables) if len(places) == 2]
    shares = method.shares(work, options, parts)
    share_of = dict(zip(parts, shares, strict=True))
    keys: list[tuple[object, ...]] = []
    for places in tables:
        own = sorted((work.sizes[place], _rounded(share_of[place,])) for place in places)
        together = _rounded(share_of[places]) if len(places) == 2 else 0.0
        keys.append((*own, together))
    return keys


def _rounded(share: float) -> float:
    return round(share, SHARE_DIGITS)
