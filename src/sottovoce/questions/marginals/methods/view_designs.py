"""Views to choose from: at random or by covering designs, and what they hold of a workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import comb

from sottovoce.questions.marginals.coverage import MOST_UNHEARD, Coverage, view_shares
from sottovoce.questions.marginals.models.designs import MOST_BLOCKS, completed, cover, drawn
from sottovoce.questions.marginals.workload import Places, Workload

Views = tuple[Places, ...]  # sets of points, which are attributes or the bits of their codes

LONG_SEARCH = 1 << 18  # (view, set) pairs from which on a search for a covering design takes long


@lru_cache(maxsize=64)
def views_coverage(work: Workload, views: Views) -> Coverage:
    """Which attributes and pairs of the workload's tables lie in views."""
    return Coverage(work.parts, tuple(view_shares(views, work.parts)))


def covering(work: Workload, size: int) -> Views:
    """Views of up to ``size`` attributes that hold every pair of the workload's tables."""
    points = len(work.sizes)
    design = None
    if work.sets is None and work.order > 1:  # every pair is in some table: a covering design
        design = cover(points, size, 2)
    return design or completed(points, size, (), work.parts)


def is_sure(work: Workload, views: Views, people: int) -> bool:
    """Whether people are enough for all views.

    Then every pair that the views hold is all but sure to be heard of.
    """
    if len(views) > people:
        return False
    return views_coverage(work, views).unheard(people) <= MOST_UNHEARD


def surest(work: Workload, designs: Sequence[Views], people: int) -> Views | None:
    """Of designs that are not too large, the one with the fewest pairs heard from nobody."""
    limit = min(people, MOST_BLOCKS)
    fitting = [views for views in designs if len(views) <= limit]

    def unheard(views: Views) -> float:
        return views_coverage(work, views).unheard(people)

    return min(fitting, key=unheard, default=None)


@dataclass(frozen=True)
class Search:
    """A search for views that hold every pair of a workload.

    Attributes:
        views: Finds them; None if it finds none.
        most_views: How many they are at most; 0 if some of them may be narrower than others.
        is_long: Whether the search may take long.
    """

    views: Callable[[], Views | None]
    most_views: int
    is_long: bool


def at_random(work: Workload, size: int, limit: int) -> Views:
    """Random views, and as many more as it takes to hold every pair of the workload."""
    points = len(work.sizes)
    random = drawn(points, size, limit)
    if views_coverage(work, random).left_out:
        return completed(points, size, random, work.parts)
    return random


def searches(work: Workload, size: int, limit: int) -> list[Search]:
    """Covering designs: of all pairs, if random views do not hold them; and of all tables."""
    points, order = len(work.sizes), work.order
    found = []
    if views_coverage(work, drawn(points, size, limit)).left_out:
        # each view of a covering design holds a pair that the others do not
        pairs = comb(points, 2)
        most_views = pairs if work.sets is None and pairs <= MOST_BLOCKS else 0
        is_long = comb(points, size) * comb(size, 2) > LONG_SEARCH
        found.append(Search(partial(covering, work, size), most_views, is_long))
    if size >= order:
        is_long = comb(points, size) * comb(size, order) > LONG_SEARCH
        found.append(Search(partial(cover, points, size, order, limit), limit, is_long))
    return found
