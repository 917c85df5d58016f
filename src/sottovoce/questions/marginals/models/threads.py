"""One thread for small matrices.

Several that wait for one another are slower, and much slower on a busy machine.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sottovoce.ground.extras import imported


@lru_cache(maxsize=1)
def _controller() -> Any:
    ThreadpoolController = imported("threadpoolctl").ThreadpoolController

    return ThreadpoolController()


def one_thread() -> Any:
    """A context in which matrices are multiplied by one thread."""
    return _controller().limit(limits=1, user_api="blas")
