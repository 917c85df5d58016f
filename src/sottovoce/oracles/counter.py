"""The role of a counter: what reports add up to, in integers that merge by addition."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.layout import Payload
from sottovoce.oracles.shape import Shape

Integers = NDArray[np.int64]
MANY = 1 << 53  # people; more than any state will hold


class Counter(Shape):
    """What the reports of an oracle add up to: a state of integers, of a shape that is known
    beforehand.

    Only oracles whose reports can be summed have this role; of others an aggregate keeps the rows.

    The state of reports with weights is that of each report repeated as often as its weight says,
    and a negative weight takes reports away. States hold 64-bit integers. While the absolute
    weights of all reports add up to at most :attr:`most_weight`, no cell, no partial sum and no
    support leaves them: with 2^49, and a report of ``olh`` that moves a cell by at most 2^13, all
    stay within 2^62. Sums of weights are exact in 64-bit floats as well, which ``numpy.bincount``
    uses, since they stay below 2^53.

    A new one gives :attr:`state_shape` and :meth:`_accumulate`.
    """

    @property
    @abstractmethod
    def state_shape(self) -> tuple[int, ...]:
        """The shape of the integer state."""

    def empty(self, people: int = MANY) -> Integers:
        """The state of nobody, in integers that hold what so many people's reports add up to."""
        return np.zeros(self.state_shape, np.int64)

    def accumulate(
        self, state: Integers, payload: Payload, weights: ArrayLike | None = None
    ) -> Integers:
        """The state with a batch added, in place if it can be; impossible reports are refused.

        Args:
            state: what :meth:`empty` or this method gave.
            payload: packed reports, one row each.
            weights: an integer beside each report; 1 by default.
        """
        self.validate(payload)
        if weights is None:
            return self._accumulate(state, payload, None)
        column = whole_weights(weights, len(payload))
        if weighed(column).magnitude > self.most_weight:
            raise too_much(self.most_weight)
        return self._accumulate(state, payload, column)

    @abstractmethod
    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        """The same for reports and weights that were checked: nothing is looked at again."""

    def _accumulate_groups(
        self, states: Integers, groups: Integers, payload: Payload, weights: Integers | None
    ) -> None:
        """Add reports of many groups of people, each to the state of its group, in place.

        By default group by group. An oracle whose states are small overrides it by one pass over
        the reports.

        Args:
            states: (groups, *state_shape), in 64-bit integers.
            groups: the group of each report.
            payload: reports that were checked, one row each.
            weights: an integer beside each report; None for 1 each.
        """
        order = np.argsort(groups, kind="stable")
        labels, starts = np.unique(groups[order], return_index=True)
        for label, rows in zip(labels, np.split(order, starts[1:]), strict=True):
            own = None if weights is None else weights[rows]
            states[label] = self._accumulate(states[label], payload[rows], own)

    def merge(self, one: Integers, other: Integers) -> Integers:
        """The state of both crowds together; neither of the two changes."""
        return one + other

    def absorb(self, state: Integers, other: Integers) -> Integers:
        """The state with another one added, in place if it can be; see :meth:`fitted` for room."""
        state += other
        return state

    def fitted(self, state: Integers, people: int) -> Integers:
        """The state in integers that hold what ``people`` reports add up to; by default as is."""
        return state


class Weighed(NamedTuple):
    """Weights of reports added up, and their absolute values added up: without weights both are the
    reports.
    """

    total: int
    magnitude: int


def weighed(weights: Integers) -> Weighed:
    """What weights add up to; a magnitude is exact below 2^53, which is more than any state takes.

    >>> weighed(np.array([3, -4]))
    Weighed(total=-1, magnitude=7)
    """
    from sottovoce.kernels.weights import weight_sums

    total, magnitude = weight_sums(weights)
    return Weighed(int(total), int(magnitude))


def magnitude_of(counts: Integers) -> int:
    """The absolute values of counts added up, exact below 2^53, whatever the counts are.

    >>> magnitude_of(np.array([3, -4]))
    7
    """
    return int(np.abs(counts.astype(np.float64)).sum())


def whole_weights(weights: ArrayLike, count: int, name: str = "weights") -> Integers:
    """``weights`` as a column of 64-bit integers, one for each of ``count`` reports; errors call it
    ``name``.

    >>> whole_weights([2, -1], 2).tolist()
    [2, -1]
    """
    column = np.asarray(weights)
    if column.size == 0 and count == 0:
        return np.zeros(0, np.int64)
    is_whole = column.dtype.kind == "i" or (column.dtype.kind == "u" and column.dtype.itemsize < 8)
    if not is_whole or column.shape != (count,):
        raise InvalidInput(
            f"{name} must be a column of {count} signed integers, one for each report"
        )
    return column.astype(np.int64, copy=False)


def too_much(most: int) -> InvalidInput:
    """The error of weights with which a sum might overflow."""
    return InvalidInput(
        f"weights: with all reports so far their absolute values must add up to at most {most}"
    )


def tally(cells: NDArray[np.int64], weights: Integers | None, size: int) -> Integers:
    """How many reports, or how much weight, each of ``size`` cells has."""
    if weights is None:
        return np.bincount(cells, minlength=size)
    # in floats, which are exact: no sum of weights reaches 2^53, see Counter
    return np.bincount(cells, weights, size).astype(np.int64)


def tally_groups(
    states: Integers, groups: Integers, cells: NDArray[np.int64], weights: Integers | None
) -> None:
    """Add reports of many groups to their cells of (groups, cells), in place: one pass over the
    reports, none over the table.
    """
    places = groups * states.shape[1]
    places += cells  # in place: fresh columns cost more than what is done with them
    np.add.at(states.reshape(-1), places, 1 if weights is None else weights)
