"""``python -m bench``: measure, print a table per group; ``--json FILE`` for machines, ``--peers``
for a fair fight.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console

from bench import (
    collector,
    engines,
    estimates,
    folding,
    marginal_speed,
    minutes,
    pages,
    peers,
    pieces,
    planning,
    popular_speed,
    processes,
    query_speed,
    release_speed,
    shuffle_speed,
    speed,
    store,
    whispering,
)
from bench.published import NOTE
from bench.rows import GROUPS, Row, show

EM_ITERATIONS = 10_000  # where the peer stops by default; its EM has not come to rest by then

# Every group, in the order it is shown.
RUNNERS: Mapping[str, Callable[[speed.Size, Mapping[str, peers.Found]], Iterable[Row]]] = {
    "olh": speed.hashing,
    "crowd": speed.crowd,
    "others": speed.others,
    "folding": folding.folding,
    "engines": engines.engines,
    "minutes": minutes.minutes,
    "pieces": pieces.pieces,
    "device": speed.device,
    "whispering": whispering.whispering,
    "likelihood": speed.likelihood,
    "planning": planning.planning,
    "marginals": marginal_speed.marginals,
    "popular": popular_speed.popular,
    "queries": query_speed.queries,
    "releases": release_speed.releases,
    "shuffled": shuffle_speed.shuffled,
    "store": store.store,
    "collector": collector.collector,
    "pages": pages.pages,
    "estimates": estimates.estimates,
    "stream": processes.stream,
    "startup": processes.startup,
}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import numpy as np

    return {
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the groups; 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"which of {', '.join(GROUPS)} (all by default)")
    parser.add_argument(
        "--peers",
        action="store_true",
        help="install the peers under out/peers and run their code too",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write rows as JSON; - for stdout, without tables"
    )
    asked = parser.parse_args(arguments)
    unknown = [group for group in asked.groups if group not in RUNNERS]
    if unknown:
        parser.error(f"group ({unknown[0]}) must be one of {', '.join(RUNNERS)}")

    def say(text: str) -> None:
        print(f"bench: {text}", file=sys.stderr, flush=True)

    others = peers.run(say, EM_ITERATIONS) if asked.peers else {}
    rows: list[Row] = []
    for group in asked.groups or RUNNERS:
        say(GROUPS[group])
        rows += RUNNERS[group](speed.Size(), others)
    if asked.json:
        text = json.dumps(
            {"machine": machine(), "published": NOTE, "rows": [row.to_json() for row in rows]},
            indent=2,
        )
        if asked.json == "-":
            print(text)
        else:
            with open(asked.json, "w", encoding="utf-8") as file:
                file.write(text + "\n")
    if asked.json != "-":
        console = Console()
        show(console if console.is_terminal else Console(width=170), rows)
    return int(any(row.passed is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
