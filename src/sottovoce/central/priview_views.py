"""Which views a curator publishes: few enough for little noise, wide enough to know what matters.

Every set of ``strength`` attributes must lie in some view. Views are chosen by the error to expect
of a table, from public facts and what is usual of populations; no count takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb, prod

from sottovoce.questions.marginals.methods.view_designs import LONG_SEARCH, Views
from sottovoce.questions.marginals.methods.view_predictions import TypicalTables, expected
from sottovoce.questions.marginals.models.designs import cover
from sottovoce.questions.marginals.workload import Places, Workload

MAX_RELEASED_VIEW_CELLS = 1 << 16
USUAL_VIEW_CELLS = 1 << 8  # beyond it most cells are empty, and repair costs more than it gives
LARGEST_STRENGTH = 3  # attributes that views hold together, of those tried
MOST_COVERED = 5000  # sets of attributes that a search for mixed sizes may have to cover
MAX_RELEASED_VIEWS = 1 << 10

# from how many views there are to the variance of the noise of a cell
CellNoise = Callable[[int], float]


def chosen_views(work: Workload, noise: CellNoise, people: int) -> Views:
    """The views of the least error to expect.

    Args:
        work: The tables that matter.
        noise: Of a count of a view, by how many views there are.
        people: About how many there are, a public guess.
    """
    offers = candidates(work)
    return min(offers, key=lambda views: expected_error(work, views, noise, people))


def expected_error(work: Workload, views: Views, noise: CellNoise, people: int) -> float:
    """The squared error to expect of the shares of a table, summed over its cells."""
    longest = max(3, *(len(view) for view in views))
    tables = TypicalTables.of(work.sample, work.sizes, min(longest, work.order))
    variance = noise(len(views)) / people**2  # of a share
    weights = tuple(1 / (work.cells(view) * variance) for view in views)
    parts = expected(tables, views, weights)
    assert parts is not None  # no error is more than any
    return parts.error


def candidates(work: Workload) -> list[Views]:
    """Designs to choose from: by how much views hold together, and how large they may be."""
    found: dict[Views, None] = {}
    strengths = range(min(2, work.order), min(LARGEST_STRENGTH, work.order) + 1)
    for strength in strengths:
        for views in _designs(work, strength):
            if len(views) <= MAX_RELEASED_VIEWS:
                found[views] = None
    return list(found)


def _designs(work: Workload, strength: int) -> list[Views]:
    """Views that hold every set of ``strength`` attributes, of several sizes."""
    points = len(work.sizes)
    largest = prod(sorted(work.sizes)[-strength:])  # which some view has to hold
    most_cells = max(largest, USUAL_VIEW_CELLS)
    if most_cells > MAX_RELEASED_VIEW_CELLS:
        return []
    if len(set(work.sizes)) == 1:
        made = []
        for width in range(strength, points + 1):
            if work.sizes[0] ** width > most_cells:
                break
            if comb(points, min(width, points - width)) * comb(width, strength) > LONG_SEARCH:
                continue
            views = cover(points, width, strength)
            if views is not None:
                made.append(views)
        if made:
            return made
    if comb(points, strength) > MOST_COVERED:
        return []
    limits = []
    limit = largest
    while limit <= most_cells:
        limits.append(limit)
        limit *= 2
    return [covering_views(work.sizes, strength, limit) for limit in limits]


def covering_views(sizes: Sequence[int], strength: int, most_cells: int) -> Views:
    """Views of at most so many cells that hold every set of ``strength`` attributes; greedy.

    Args:
        sizes: Of the attributes.
        strength: How many attributes at once must lie in some view.
        most_cells: At least as many as the largest of these sets has.

    >>> covering_views((2, 2, 2, 100), 2, 200)
    ((0, 3), (1, 3), (2, 3), (0, 1, 2))
    """
    missing = set(combinations(range(len(sizes)), strength))

    def cells(places: Places) -> int:
        return prod(sizes[place] for place in places)

    views: list[Places] = []
    while missing:
        # the largest set has the least choice; ties in the order of places
        view = max(sorted(missing), key=cells)
        while True:
            wider = _best_wider(view, sizes, missing, strength, most_cells)
            if wider is None:
                break
            view = wider
        views.append(view)
        missing -= set(combinations(view, strength))
    return tuple(views)


def _best_wider(
    view: Places, sizes: Sequence[int], missing: set[Places], strength: int, most_cells: int
) -> Places | None:
    """The view with one attribute more, which covers most; None if none fits or covers more."""
    best, gain = None, 0
    room = most_cells // prod(sizes[place] for place in view)
    for place in range(len(sizes)):
        if place in view or sizes[place] > room:
            continue
        with_others = combinations(view, strength - 1)
        new = sum(tuple(sorted((*own, place))) in missing for own in with_others)
        if new > gain:
            best, gain = place, new
    return None if best is None else tuple(sorted((*view, best)))
