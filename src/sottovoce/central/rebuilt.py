"""An estimate again, from the counts that a folder holds; and tables of tuples that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.central.domains import Places, TableDomain
from sottovoce.central.estimate import ReleaseFit, release_estimate, residual_fit, workload_of
from sottovoce.central.method import Floats, ReleaseTerms, TupleCounts
from sottovoce.central.residual import Residual
from sottovoce.central.residual_plan import ResidualPlan
from sottovoce.central.residuals import Residuals
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Noise
from sottovoce.postprocessing.maximum_entropy import proportional_fits
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.marginals.estimate import MarginalEstimate
from sottovoce.questions.marginals.models.ties import tie_variances
from sottovoce.results.estimate import Table

if TYPE_CHECKING:
    from sottovoce.central.result import Release

_SAME_ERROR = 1e-6  # relative, by which standard errors may differ and be the same


class CountsFit(ReleaseFit):
    """What released tables say, as they stand; of more attributes, by maximum entropy."""

    errors: ClassVar[str] = "as released"

    def __init__(
        self,
        domain: TableDomain,
        order: int,
        total: float,
        tables: Mapping[Places, Floats],
        std_errors: Mapping[Places, Floats],
    ) -> None:
        """Take released tables.

        Args:
            domain: the attributes and their values.
            order: how many attributes the largest tables have.
            total: the number of users.
            tables: counts, an axis for each attribute.
            std_errors: of the counts, flat.
        """
        self.work = workload_of(domain, order)
        self.total = max(1.0, total)
        self._tables = tables
        self._std_errors = std_errors

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        return [self._shares(places) for places in sets]

    def _shares(self, places: Places) -> Floats:
        if not self.is_reconstructed(places):
            return np.asarray(self._tables[places].ravel() / self.total)
        parts = list(combinations(places, self.work.order))
        axes = [tuple(places.index(place) for place in part) for part in parts]
        shares = [norm_sub(self._shares(part))[None] for part in parts]
        return np.asarray(proportional_fits(self.work.shape(places), axes, shares).ravel())

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        found = []
        for places in sets:
            if self.is_reconstructed(places):
                shares = self._shares(places)
                parts = combinations(places, self.work.order)
                noise = max(float(self.count_errors(part).max()) for part in parts) / self.total
                found.append(noise**2 + tie_variances(self.work, places, shares, self.is_heard))
            else:
                found.append((self.count_errors(places) / self.total) ** 2)
        return found

    def count_errors(self, places: Places) -> Floats:
        return self._std_errors[places]

    def is_reconstructed(self, places: Places) -> bool:
        return len(places) > self.work.order

    def is_heard(self, part: Places) -> bool:
        return len(part) <= self.work.order


def rebuilt_estimate(release: Release) -> MarginalEstimate | None:
    """The estimate of a release of known domains; None if not every cell was released.

    Args:
        release: read from a folder.
    """
    total = release.total
    is_known = all(attribute.is_known for attribute in release.attributes)
    if total is None or not is_known or release.is_sets:
        return None
    domain = _domain(release)
    order = int(_options(release).get("measured", release.parameters["up_to"]))
    tables, errors = _whole_tables(release, domain, order, total)
    fit = _residual_fit(release, domain, order, total, tables, errors)
    own: ReleaseFit = fit or CountsFit(domain, order, total, tables, errors)
    return release_estimate(domain, own, order, release.method)


def _options(release: Release) -> dict[str, Any]:
    """Those that were asked for, and those that ``auto`` chose."""
    return {**release.parameters["options"], **release.choice.get("options", {})}


def _domain(release: Release) -> TableDomain:
    may_be_empty = release.parameters["options"].get("may_be_empty", [])
    names = release.columns
    values = tuple(attribute.values for attribute in release.attributes)
    return TableDomain(names, values, tuple(name in may_be_empty for name in names))


def _whole_tables(
    release: Release, domain: TableDomain, order: int, total: float
) -> tuple[dict[Places, Floats], dict[Places, Floats]]:
    """The tables with their empty values, and the standard errors of their counts.

    Files hold no tuple with an empty value. Its count is what the tuple without that attribute has
    beyond the sum over the attribute's values: exactly, since released tables agree.
    """
    listed: dict[Places, Floats] = {(): np.array(total)}
    errors: dict[Places, Floats] = {}
    for k in range(1, order + 1):
        counts = release.tuples[k]
        for places in combinations(range(len(domain.names)), k):
            rows = _rows_of(counts, places)
            shape = tuple(len(domain.values[place]) for place in places)
            listed[places] = counts.counts[rows].reshape(shape)
            own = counts.std_errors[rows].reshape(shape)
            whole = np.full([domain.sizes[place] for place in places], own.max())
            whole[tuple(map(slice, shape))] = own
            errors[places] = whole.ravel()
    tables = {places: _with_empty(places, listed, domain) for places in listed if places}
    return tables, errors


def _rows_of(counts: TupleCounts, places: Places) -> slice:
    """The rows of one table; a release is in the order of attributes, then of codes."""
    keys = [tuple(row) for row in counts.attributes[[0, -1]].tolist()]
    if not keys[0] <= places <= keys[1]:
        raise IndexError
    is_here = (counts.attributes == places).all(axis=1)
    (rows,) = np.nonzero(is_here)
    return slice(int(rows[0]), int(rows[-1]) + 1)


def _with_empty(places: Places, listed: Mapping[Places, Floats], domain: TableDomain) -> Floats:
    shape = tuple(domain.sizes[place] for place in places)
    table = np.zeros(shape)
    open_axes = [axis for axis, place in enumerate(places) if domain.may_be_empty[place]]
    # first, the last place of an axis is for any value of it
    for count in range(len(open_axes) + 1):
        for any_axes in combinations(open_axes, count):
            kept = tuple(place for axis, place in enumerate(places) if axis not in any_axes)
            where = tuple(
                -1 if axis in any_axes else slice(len(domain.values[place]))
                for axis, place in enumerate(places)
            )
            table[where] = listed[kept]
    # then, of any value, what is left for none
    for axis in open_axes:
        values = np.take(table, range(shape[axis] - 1), axis=axis).sum(axis=axis)
        last = tuple(-1 if each == axis else slice(None) for each in range(table.ndim))
        table[last] -= values
    return table


def _residual_fit(
    release: Release,
    domain: TableDomain,
    order: int,
    total: float,
    tables: Mapping[Places, Floats],
    errors: Mapping[Places, Floats],
) -> ReleaseFit | None:
    """The residuals that tables were added up from, if they were, and as they were."""
    options = _options(release)
    if release.method != Residual.name or options.get("repair", "none") != "none":
        return None
    guarantee = release.guarantee
    terms = ReleaseTerms(
        Decimal(guarantee.epsilon), Decimal(guarantee.delta), order, guarantee.neighbours
    )
    weights = options.get("weights")
    plan = ResidualPlan.of(domain.sizes, terms, weights and [float(each) for each in weights])
    parts: dict[Places, Any] = {(): np.array(total)}
    for places, table in tables.items():
        told, planned = errors[places][0], float(plan.cell_variance(places)) ** 0.5
        if abs(told - planned) > _SAME_ERROR * planned:
            return None  # it was planned by other rules
        part = table
        for axis in range(table.ndim):
            part = part - part.mean(axis=axis, keepdims=True)
        parts[places] = part
    is_filled = order < int(release.parameters["up_to"])
    return residual_fit(domain, Residuals(plan, parts), "none", is_filled)


def found_table(release: Release, names: Sequence[str]) -> Table:
    """The tuples of some attributes that were found, as shares of the users.

    Args:
        release: by a method that finds tuples.
        names: of different attributes, as many as were released together at most.
    """
    places = [_place(release, name) for name in names]
    if not names or len(set(names)) < len(names):
        raise InvalidInput(f"attributes ({', '.join(names)}) must be different ones, at least one")
    if len(places) not in release.tuples:
        raise InvalidInput(
            f"attributes ({', '.join(names)}) must be at most {max(release.tuples)}, of which "
            "tuples were released"
        )
    counts = release.tuples[len(places)]
    ordered = sorted(places)
    (rows,) = np.nonzero((counts.attributes == ordered).all(axis=1))
    columns = [ordered.index(place) for place in places]
    codes = counts.codes[rows][:, columns]
    labels = [
        tuple(
            release.attributes[place].values[code] for place, code in zip(places, row, strict=True)
        )
        for row in codes.tolist()
    ]
    people = people_found(release)
    variances = (counts.std_errors[rows] / people) ** 2
    floor = float(variances.mean()) if len(variances) else 0.0
    return Table(
        tuple(names),
        labels if len(places) > 1 else [label for (label,) in labels],
        counts.counts[rows] / people,
        variances,
        people,
        Noise(floor, 0.0),
        is_unbiased=False,
        method=release.method,
        is_complete=False,
        remark="what was found, as shares of the most users that an attribute's values add up to",
    )


def _place(release: Release, name: str) -> int:
    if name not in release.columns:
        known = ", ".join(release.columns)
        raise InvalidInput(f"attribute {name!r} is not in the release (it has: {known})")
    return release.columns.index(name)


def people_found(release: Release) -> int:
    """The most users that the counts of one attribute's values add up to; at least 1."""
    counts = release.tuples[1]
    sums = np.bincount(counts.attributes[:, 0], counts.counts, minlength=1)
    return max(1, round(float(sums.max())))
