"""The people that shuffled plans are measured on."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

SHAPES = {"kosarak": (1_000_000, 42_178), "ipums": (602_325, 915)}  # people, values
LARGEST = 10  # values whose error is told apart
ZIPF = 1.1  # of the stand-in for IPUMS


@lru_cache(maxsize=2)
def _single_clicks(data: Path) -> Any:
    """One item of each session, drawn at random, by its place among those that were drawn."""
    import pyarrow.parquet as pq

    column = pq.read_table(data / "kosarak_prefix70k.parquet")["items"].combine_chunks()
    lengths = column.value_lengths().to_numpy()
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    drawn = np.random.default_rng(0).integers(0, lengths)
    items = column.flatten().to_numpy()[starts + drawn]
    return np.unique(items, return_inverse=True)[1]


def held_values(source: str, run: int, data: Path) -> Any:
    """What everybody holds in one run.

    Kosarak's people hold sets, of which the thesis takes one item: here one of each session of
    the part that is at hand, and as many people as Kosarak has drawn from these. IPUMS is not
    at hand; its people follow a Zipf law over as many values.
    """
    people, size = SHAPES[source]
    random = np.random.default_rng([run, size])
    if source == "kosarak":
        clicks = _single_clicks(data)
        return clicks[random.integers(0, len(clicks), people)]
    weights = np.arange(1, size + 1, dtype=float) ** -ZIPF
    return random.choice(size, people, p=weights / weights.sum())


@lru_cache(maxsize=1)
def words(data: Path) -> Any:
    """English words by how often they are written, cut to six letters."""
    from sottovoce.measure.heavyhitters import read_holdings

    return read_holdings(data / "english_words.parquet", "word", "count", bytes=6)


@lru_cache(maxsize=2)
def table_people(source: str, people: int, run: int, data: Path) -> Any:
    """People drawn with replacement from a table."""
    from bench.known_releases import People
    from bench.marginal_sources import SOURCES

    crowd = SOURCES[source].load(data)
    columns = list(crowd.columns.values())
    codes = np.stack([column.codes for column in columns], axis=1)
    rows = np.random.default_rng([run, people]).integers(0, len(codes), people)
    return People(codes[rows], tuple(column.attribute.size for column in columns))
