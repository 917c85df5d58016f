"""Repair: estimates become non-negative, sum to one or grow sparse, by a named and marked step.

The ten methods of wang2021thesis, chapter 8, the decoders of kairouz2016, and the choice among them for given queries.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from sottovoce.postprocess.choice import Choice, choose_postprocess
from sottovoce.postprocess.methods import ALIASES, METHODS, Method, postprocess

__all__ = ["ALIASES", "METHODS", "Choice", "Method", "choose_postprocess", "postprocess"]


class _CallablePackage(ModuleType):
    """``sv.postprocess`` is this package once anything imported it, the function otherwise: both can be called."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return postprocess(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
