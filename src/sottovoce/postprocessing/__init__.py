"""Named repairs of estimates: non-negative, consistent, sparse, of largest entropy.

The ten methods of wang2021thesis, chapter 8, the decoders of kairouz2016discrete, and the choice
among them.
"""

from __future__ import annotations

from sottovoce.postprocessing.choice import RepairChoice, choose_postprocess
from sottovoce.postprocessing.methods import METHODS, REPAIR_ALIASES, Repair, postprocess

__all__ = [
    "METHODS",
    "REPAIR_ALIASES",
    "Repair",
    "RepairChoice",
    "choose_postprocess",
    "postprocess",
]
