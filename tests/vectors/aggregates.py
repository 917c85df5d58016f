"""Aggregates of seeded reports under plans of every family: the integers that folding must give,
now and later.

`python -m tests.vectors.aggregates` writes aggregates.json: for each plan its id, how many reports
there are, a digest of them, and a digest of what they add up to. The digest is that of the bytes
before they are compressed, since libraries that compress differ.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from tests.oracles import NAMES

PATH = Path(__file__).with_name("aggregates.json")
HEAD, TAIL = 36, 4  # bytes of an aggregate before and after what is compressed
PEOPLE = 400
TABLE = sv.Schema(
    a=sv.Boolean(), b=sv.Categorical(range(3)), c=sv.Categorical(range(4)), d=sv.Boolean()
)
WORDS = sv.Schema(word=sv.Integer(bits=16))
BASKETS = sv.Schema(basket=sv.Items(["milk", "bread", "tea", "salt", "rice"]))
MARGINALS = (
    "inp-ht",
    "inp-em",
    "em",
    "marg-ps",
    "marg-rr",
    "marg-ht",
    "am",
    "calm",
    "inp-olh",
    "inp-htcms",
    "latent",
)
# oracles that came when the others' people had been drawn
LATER = ("square-wave",)
HEAVY = ("windows", "pem", "tree-hist", "priv-trie", "spm", "hash", "o-rr")


def plans() -> Iterator[tuple[str, sv.Plan, dict[str, Any]]]:
    """Name, plan and the people's records, in columns."""
    draws = np.random.default_rng(11)
    for name in NAMES:
        if name in LATER:
            continue
        size = 2 if name == "rr" else 37
        schema = sv.Schema(x=sv.Categorical(range(size)))
        question = sv.Frequencies("x", oracle=name)
        columns = {"x": draws.integers(0, size, PEOPLE)}
        yield (
            f"frequencies/{name}",
            sv.plan(schema, question, epsilon="1.5", people=PEOPLE),
            columns,
        )
    table = {name: draws.integers(0, TABLE[name].size, PEOPLE) for name in TABLE}
    split = sv.Frequencies("a", "b", "c", oracle="adaptive", split="budget")
    yield "frequencies/budget", sv.plan(TABLE, split, epsilon="2", people=PEOPLE), table
    for method in MARGINALS:
        question = sv.Marginals(2, method=method)
        yield f"marginals/{method}", sv.plan(TABLE, question, epsilon="2", people=PEOPLE), table
    words = {"word": draws.integers(0, 1 << 16, PEOPLE) & draws.integers(0, 1 << 16, PEOPLE)}
    for method in HEAVY:
        question = sv.HeavyHitters("word", top=4, method=method)
        rounds = {"rounds": (1, 1)} if method == "priv-trie" else {}
        yield (
            f"heavy-hitters/{method}",
            sv.plan(WORDS, question, epsilon="2", people=PEOPLE, **rounds),
            words,
        )
    names = np.array(["milk", "bread", "tea", "salt", "rice"])
    baskets = {"basket": [names[draws.random(5) < 0.4].tolist() for _ in range(PEOPLE)]}
    items = sv.TopItems("basket", top=2)
    yield "top-items", sv.plan(BASKETS, items, epsilon="2", people=PEOPLE), baskets
    for name in LATER:
        schema = sv.Schema(x=sv.Categorical(range(37)))
        plan = sv.plan(schema, sv.Frequencies("x", oracle=name), epsilon="1.5", people=PEOPLE)
        yield f"frequencies/{name}", plan, {"x": draws.integers(0, 37, PEOPLE)}


def entry(name: str, plan: sv.Plan, reports: sv.Reports) -> dict[str, Any]:
    """What is written of one plan, and what a test computes again."""
    aggregate = sv.Aggregate(plan).add(reports)
    body = zlib.decompress(aggregate.to_bytes()[HEAD:-TAIL])
    sent = hashlib.sha256(reports.cohorts.astype("<u4").tobytes() + reports.payload.tobytes())
    return {
        "name": name,
        "plan": plan.id,
        "family": plan.cohorts.kind,
        "reports": len(reports),
        "sent": sent.hexdigest(),
        "people": aggregate.people,
        "bytes": len(body),
        "integers": hashlib.sha256(body).hexdigest(),
    }


def entries() -> list[dict[str, Any]]:
    """All of them, in order."""
    return [
        entry(name, plan, sv.simulate(plan, columns, seed=5)) for name, plan, columns in plans()
    ]


if __name__ == "__main__":
    PATH.write_text(json.dumps(entries(), indent=1) + "\n")
