"""How long ``auto`` takes to plan marginals, beside this library as it was before.

``python -m bench.planning NAME REPEATS`` is one shape in a process of its own: with the sources of
an earlier commit first on its path, it measures those.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any

import sottovoce as sv
from bench.rows import Row
from bench.timing import ROOT, Timing

BEFORE = "eca6cde"  # the commit that ratios refer to
FASTER = 4.0
PEOPLE = 1 << 18


@dataclass(frozen=True)
class Shape:
    """Attributes, by their numbers of values, and how many of them a table has."""

    what: str
    sizes: tuple[int, ...]
    order: int

    def schema(self) -> sv.Schema:
        attributes: dict[str, Any] = {}
        for place, size in enumerate(self.sizes):
            values = [f"v{value}" for value in range(size)]
            attributes[f"a{place}"] = sv.Boolean() if size == 2 else sv.Categorical(values)
        return sv.Schema(**attributes)


SHAPES = {
    "few": Shape("8 yes-or-no attributes, pairs", (2,) * 8, 2),
    "some": Shape("16 yes-or-no attributes, triples", (2,) * 16, 3),
    "demo": Shape("8 attributes of 2 to 4 values, triples", (4, 3, 2, 2, 3, 2, 2, 2), 3),
    "mixed": Shape(
        "10 attributes of 3 to 16 values, triples", (3, 16, 5, 4, 8, 3, 12, 6, 10, 7), 3
    ),
    "census": Shape(
        "11 attributes of 2 to 42 values, pairs", (16, 9, 16, 7, 15, 6, 5, 2, 16, 42, 2), 2
    ),
}


def forget() -> None:
    """Empty every cache of the library, as if it had never planned.

    What it knows of the libraries that are loaded stays.
    """
    caches = [own for own in gc.get_objects() if isinstance(own, functools._lru_cache_wrapper)]
    for cache in caches:
        module = str(getattr(cache, "__module__", ""))
        if module.startswith("sottovoce.") and not module.endswith(".threads"):
            cache.cache_clear()


def seconds(shape: Shape, repeats: int) -> list[float]:
    """Processor time of a plan, each time with empty caches; libraries are loaded before."""
    schema = shape.schema()

    def plan() -> Any:
        return sv.plan(schema, sv.Marginals(up_to=shape.order), epsilon=1.0, people=PEOPLE)

    plan()
    figures = []
    for _ in range(repeats):
        forget()
        gc.collect()
        start = process_time()
        plan()
        figures.append(process_time() - start)
    return figures


def before(home: Path = ROOT / "out" / "before") -> Path | None:
    """The sources of the earlier commit, taken from the repository; None if it has no history."""
    folder = home / BEFORE
    if not folder.exists():
        command = ["git", "-C", str(ROOT), "archive", BEFORE, "src"]
        try:
            packed = subprocess.run(command, check=True, capture_output=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    return folder / "src"


def measured(name: str, repeats: int, sources: Path) -> Timing:
    """The seconds of a shape with these sources, in a process of its own."""
    path = os.pathsep.join([str(sources), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "bench.planning", name, str(repeats)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        # one thread: small matrices make several wait for one another
        env=os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
    )
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if not Path(found["sources"]).is_relative_to(sources):
        raise RuntimeError(f"it measured {found['sources']}, not {sources}")
    return Timing.of(found["seconds"])


def planning(
    _: Any, __: Mapping[str, Any], names: tuple[str, ...] = tuple(SHAPES), repeats: int = 5
) -> Iterator[Row]:
    """Each shape, beside the earlier commit if the repository has it."""
    earlier = before()
    for name in names:
        now = measured(name, repeats, ROOT / "src")
        then = None if earlier is None else measured(name, repeats, earlier).best
        note = f"peer: this library at {BEFORE}" if then else f"no history with {BEFORE}"
        yield Row("planning", SHAPES[name].what, "s", now, times=FASTER, peer=then, note=note)


if __name__ == "__main__":
    figures = seconds(SHAPES[sys.argv[1]], int(sys.argv[2]))
    print(json.dumps({"seconds": figures, "sources": str(sv.__file__)}))
