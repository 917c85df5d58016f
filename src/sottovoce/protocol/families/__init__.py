"""Families of cohorts: who is asked what, by a list or by a rule."""

from __future__ import annotations

from collections.abc import Mapping

from sottovoce.protocol.families.base import Batch, Cohort, Family, Keep, rows_by, share_of
from sottovoce.protocol.families.choices import Choices, Places
from sottovoce.protocol.families.listed import Listed
from sottovoce.protocol.families.signs import MOST_TICKETS, SHAPES, Block, Signs
from sottovoce.protocol.families.subsets import Subsets, products_of
from sottovoce.protocol.families.views import ViewFamily, blocks_of, views_of

__all__ = [
    "FAMILIES", "MOST_TICKETS", "SHAPES", "Batch", "Block", "Choices", "Cohort", "Family", "Keep",
    "Listed", "Places", "Signs", "Subsets", "ViewFamily", "blocks_of", "products_of", "rows_by",
    "share_of", "views_of",
]  # fmt: skip

# Every family there is, by its name in plans. A new one is a class in a file of this folder, a line
# here, and its name in docs/wire.md.
FAMILIES: Mapping[str, type[Family]] = {
    "listed": Listed,
    "subsets": Subsets,
    "views": ViewFamily,
    "signs": Signs,
    "together": Listed,
}
