"""``python -m tests.store.child WORK URL SEED``: a collector of its own, in a process that may be
killed.
"""

from __future__ import annotations

import resource
import sys

import numpy as np

from sottovoce.ground.errors import StoreFull
from sottovoce.store import Store, id_index, open_store
from tests.store.crowds import ids, plan, reports

ROWS, PARTS = 40, 15


def endless(store: Store, seed: int) -> None:
    """Append for ever; print the seed of every part once it is acknowledged."""
    step = seed * 1_000_000
    while True:
        store.append_many([(plan(), ids(ROWS, step, minute=step % 3), reports(ROWS, step))])
        print(step, flush=True)
        step += 1


def overlapping(store: Store, seed: int) -> None:
    """Append the same parts as every other child, in an order of one's own, some of them twice."""
    for step in np.random.default_rng(seed).permutation([*range(PARTS), *range(PARTS)]).tolist():
        store.append(plan(), ids(ROWS, step), reports(ROWS, step))


def full(store: Store, seed: int) -> None:
    """Append until no file may grow, twice; then with room again. Print what was acknowledged."""
    step = stored = 0
    for limit in (400_000, 900_000, resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            while limit != resource.RLIM_INFINITY or step < 5:
                store.append(plan(), ids(1000, stored), reports(1000, stored))
                stored, step = stored + 1, step + 1
        except StoreFull:
            print("full after", stored, flush=True)
            step = 0
    print("stored", stored, flush=True)


def main() -> None:
    work, url, seed = sys.argv[1:]
    id_index.RUN = 300
    with open_store(url) as store:
        store.add_plan(plan())
        {"endless": endless, "overlapping": overlapping, "full": full}[work](store, int(seed))


if __name__ == "__main__":
    main()
