"""The compiler: the only import of numba there is."""

from __future__ import annotations

from sottovoce.ground.extras import explained_import

try:
    from numba import njit
except ModuleNotFoundError as wrong:
    raise explained_import(wrong) or wrong from None

__all__ = ["njit"]
