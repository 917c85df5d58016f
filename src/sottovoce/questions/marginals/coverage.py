"""Coverage: which attributes, and pairs of them, are asked about, by how many coefficients.

A table whose attributes nobody was asked about together reads as if they were independent. So every
plan says what it leaves out, ``auto`` leaves nothing out, and every answer says what nobody was
heard on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb, exp, log1p

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.marginals.workload import Places, Workload

# expected number of coefficients that nobody is heard on, up to which a plan is sure to hear of all
MOST_UNHEARD = 0.05
MAX_NAMED_PARTS = 8  # parts that a sentence names
MAX_PAIRS = 5_000  # of attributes, up to which those outside the tables are listed


@dataclass(frozen=True)
class Coverage:
    """The attributes and pairs in a workload's tables, and the share of people asked about each.

    ``counts``: the coefficients that each is asked by, equally often; 1 where reports tell it as a
    whole.

    >>> made = Coverage(((0,), (1,), (0, 1)), (0.5, 0.5, 0.0))
    >>> made.left_out, round(made.unheard(10), 4)
    (((0, 1),), 0.002)
    >>> Coverage(((0, 1),), (1.0,), (49,)).unheard(100) > 6
    True
    """

    parts: tuple[Places, ...]
    shares: tuple[float, ...]
    counts: tuple[int, ...] = ()

    @property
    def left_out(self) -> tuple[Places, ...]:
        """The parts that nobody is asked about."""
        return tuple(
            part for part, share in zip(self.parts, self.shares, strict=True) if share <= 0
        )

    def unheard(self, people: int) -> float:
        """Of the coefficients that are asked, the expected number nobody is heard on, since cohorts
        are drawn.
        """
        # (1 - share/count)^people for each coefficient; parts of the same share and count are alike
        alike = Counter(zip(self.shares, self._counts, strict=True))
        total = 0.0
        for (share, count), parts in alike.items():
            each = share / count
            if 0 < each < 1:
                total += parts * count * exp(people * log1p(-each))
        return total

    @property
    def asked(self) -> int:
        """How many coefficients are asked; of parts that are told as a whole, one each."""
        return sum(
            count for share, count in zip(self.shares, self._counts, strict=True) if share > 0
        )

    @property
    def has_coefficients(self) -> bool:
        """Whether some part is asked by several coefficients."""
        return max(self._counts, default=1) > 1

    @property
    def _counts(self) -> tuple[int, ...]:
        return self.counts or (1,) * len(self.parts)


def view_shares(views: Sequence[Places], sets: Sequence[Places]) -> list[float]:
    """The share of the people for each attribute or pair, if one cohort reports each view and all
    are alike.
    """
    points = 1 + max(max(own) for own in chain(views, sets))
    times = together(views, points) / len(views)  # (points, points)
    ends = np.array([(own[0], own[-1]) for own in sets]).reshape(-1, 2)  # of an attribute: itself
    shares: list[float] = times[ends[:, 0], ends[:, 1]].tolist()
    return shares


def together(views: Sequence[Places], points: int) -> NDArray[np.int64]:
    """How many views hold two points, and on the diagonal one, (points, points).

    >>> together([(0, 1), (0, 2)], 3).tolist()
    [[2, 1, 1], [1, 1, 0], [1, 0, 1]]
    """
    holds = np.zeros((len(views), points))
    rows = np.repeat(np.arange(len(views)), [len(view) for view in views])
    holds[rows, np.fromiter(chain.from_iterable(views), np.int64, len(rows))] = 1
    return np.asarray((holds.T @ holds).astype(np.int64))


def named(work: Workload, parts: Sequence[Places]) -> str:
    """Some parts by their names, and how many more there are.

    >>> named(Workload(("a", "b", "c"), (2, 2, 2), 2), [(0, 1), (1, 2)])
    'a x b, b x c'
    """
    told = ", ".join(" x ".join(work.attributes(part)) for part in parts[:MAX_NAMED_PARTS])
    more = len(parts) - MAX_NAMED_PARTS
    return f"{told} and {more:,} more" if more > 0 else told


def parts_outside(work: Workload) -> tuple[Places, ...] | None:
    """The attributes, and pairs, in none of the workload's tables; None if too many to list.

    >>> parts_outside(Workload(("a", "b", "c"), (2, 2, 2), 2, ((0, 1),)))
    ((2,), (0, 2), (1, 2))
    """
    if work.sets is None and work.order > 1:
        return ()
    count = len(work.names)
    if comb(count, 2) > MAX_PAIRS:
        return None
    inside = set(work.parts)
    every = [part for size in (1, 2) for part in combinations(range(count), size)]
    return tuple(part for part in every if part not in inside)


def explained(
    work: Workload,
    coverage: Coverage,
    people: int,
    reconstructed: int,
    outside: Sequence[Places] | None = (),
) -> list[str]:
    """What a plan says of its coverage; nothing if it asks for every table, which hold every pair.

    Args:
        reconstructed: how many of the workload's sampled tables of three or more attributes are not
        told as a whole. outside: the attributes and pairs that lie in no table and that nobody is
        asked about; None if not listed.
    """
    lines = []
    if coverage.left_out:
        lines.append(
            f"Never asked: {named(work, coverage.left_out)} ({len(coverage.left_out):,} of "
            f"{len(coverage.parts):,} attributes and pairs); answers mark them, and say nothing of "
            "them"
        )
    if outside is None:
        lines.append(
            "Outside the tables: pairs that no table holds, too many to list, may never be asked; "
            "answers mark those that are not, and say nothing of them"
        )
    elif outside:
        lines.append(
            f"Outside the tables: {named(work, outside)} ({len(outside):,} attributes and pairs) "
            "are never asked; answers mark them, and say nothing of them"
        )
    unheard = coverage.unheard(people)
    if unheard > MOST_UNHEARD:
        things = (
            "coefficients of attributes and pairs"
            if coverage.has_coefficients
            else "attributes and pairs"
        )
        lines.append(
            f"Few people: of the {coverage.asked:,} {things} asked, nobody is expected to be heard "
            f"on about {unheard:.2g}; answers mark them"
        )
    if reconstructed:
        share = reconstructed / len(work.sample)
        count = "every table" if share == 1 else f"{share:.0%} of the tables"
        lines.append(f"Reconstructed: {count}, from smaller tables that are told")
    return lines
