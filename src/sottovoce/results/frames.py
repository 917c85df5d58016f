"""A table as other libraries take it: an array with an axis for each attribute, a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.results.cells import CellLabel

Floats = NDArray[np.float64]


class _Cells(Protocol):
    @property
    def attributes(self) -> tuple[str, ...]: ...
    @property
    def labels(self) -> Sequence[CellLabel]: ...
    @property
    def values(self) -> Floats: ...
    @property
    def std_error(self) -> Floats: ...
    def interval(self, level: float, *, population: bool) -> tuple[Floats, Floats]: ...


class Frames:
    """What a table gives to numpy and pandas."""

    def to_numpy(self: _Cells) -> Floats:
        """The values as an array with an axis for each attribute, in the order of ``attributes``:
        the place along an axis is that of the attribute's value.

        >>> import sottovoce as sv
        >>> schema = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]))
        >>> plan = sv.plan(schema, sv.Marginals(up_to=2), epsilon=1.0, people=1000)
        >>> people = {"a": [True, False] * 500, "b": ["x", "z"] * 500}
        >>> estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
        >>> estimate.marginal("a", "b").to_numpy().shape
        (2, 3)
        """
        if len(self.attributes) == 1:
            return self.values.copy()
        axes = [dict.fromkeys(each) for each in zip(*self.labels, strict=True)]
        shape = tuple(len(axis) for axis in axes)
        places = [{label: place for place, label in enumerate(axis)} for axis in axes]
        if prod(shape) != len(self.values):
            raise InvalidInput(
                f"to_numpy: the table lists {len(self.values)} of {prod(shape)} cells; "
                "only a whole table has a shape"
            )
        out = np.empty(shape)
        for label, value in zip(self.labels, self.values.tolist(), strict=True):
            own = zip(places, label, strict=True)  # type: ignore[arg-type]
            out[tuple(axis[part] for axis, part in own)] = value
        return out

    def to_pandas(self: _Cells, level: float = 0.95, *, population: bool = False) -> Any:
        """A data frame: frequency, std_error, low, high; an index level for each attribute, so that
        ``table.to_pandas()["frequency"].unstack()`` stands as a cross table.

        Args:
            level: of the intervals.
            population: whether intervals are for everybody whom the people stand for.
        """
        pd = imported("pandas")

        low, high = self.interval(level, population=population)
        columns = {"frequency": self.values, "std_error": self.std_error, "low": low, "high": high}
        if len(self.attributes) > 1:
            index = pd.MultiIndex.from_tuples(list(self.labels), names=list(self.attributes))
        else:
            index = pd.Index(list(self.labels), name=self.attributes[0], tupleize_cols=False)
        return pd.DataFrame(columns, index=index)
