"""A seed says every report: of a whole crowd, of its blocks, from a table or from a file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.cli import people as people_commands
from sottovoce.device.simulation import BLOCK_PEOPLE, simulate_added
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import subseed, subseeds
from tests.family_plans import each_family, people, plan_of
from tests.shuffle.plans import keys, shuffled_plan

PEOPLE = BLOCK_PEOPLE + 1000


def rows(table: dict[str, Any], part: slice) -> dict[str, Any]:
    return {name: column[part] for name, column in table.items()}


def test_subseeds_are_those_of_a_seed_sequence() -> None:
    draws = np.random.default_rng(1)
    for words in (0, 1, 2, 3, 5):
        for seed in (0, 7, (1 << 32) - 1, 1 << 32, (1 << 128) - 1):
            rows = draws.integers(0, 1 << 32, (4, words)).tolist()
            sequences = [np.random.SeedSequence([seed, 3, *row]) for row in rows]
            expected = [int(each.generate_state(1, np.uint64)[0]) for each in sequences]
            assert subseeds(seed, [3], rows) == expected
    assert subseed(7, 1 << 32 | 5) == subseed(7, 5, 1)
    assert subseeds(7, [], []) == []
    assert subseeds(None, [1], [(1,), (2,)]) == [None, None]


@each_family
def test_blocks_give_the_reports_of_the_whole(kind: str) -> None:
    plan, crowd = plan_of(kind), people(PEOPLE)
    whole = sv.simulate(plan, crowd, seed=7)
    assert len(whole) == PEOPLE
    second = sv.simulate_block(plan, rows(crowd, slice(BLOCK_PEOPLE, PEOPLE)), 7, block=1)
    first = sv.simulate_block(plan, rows(crowd, slice(0, BLOCK_PEOPLE)), 7, block=0)
    assert whole[:BLOCK_PEOPLE] == first
    assert whole[BLOCK_PEOPLE:] == second


def test_a_block_has_coins_of_its_own() -> None:
    plan, few = plan_of("listed"), people(1000)
    blocks = [sv.simulate_block(plan, few, 7, block) for block in (0, 1, 2, (1 << 32) - 1)]
    assert all(one != other for i, one in enumerate(blocks) for other in blocks[:i])
    assert blocks[0] == sv.simulate(plan, few, 7)
    assert sv.simulate_block(plan, few, 8, 1) != blocks[1]


def test_a_seed_means_the_same_everywhere() -> None:
    """What other machines drew: change it only with a line in the changelog."""
    reports = sv.simulate(plan_of("listed"), people(PEOPLE), seed=7)
    drawn = hashlib.sha256(reports.cohorts.tobytes() + reports.payload.tobytes())
    assert drawn.hexdigest()[:16] == "69e2ce3aa340e460"


def test_every_kind_of_table_gives_the_same() -> None:
    plan, crowd = plan_of("subsets"), people(PEOPLE)
    whole = sv.simulate(plan, crowd, seed=3)
    listed = {name: column.tolist() for name, column in crowd.items()}
    for table in (listed, pd.DataFrame(crowd), pa.table(crowd)):
        assert sv.simulate(plan, table, seed=3) == whole


def test_a_row_has_one_round_in_every_block() -> None:
    schema = sv.Schema(item=sv.Items(range(20)))
    plan = sv.plan(schema, sv.TopItems("item", top=2), epsilon=2.0, people=400_000)
    baskets = [[number % 20] for number in range(PEOPLE)]
    whole = sv.simulate(plan, {"item": baskets}, seed=5)
    parts = [
        sv.simulate_block(plan, {"item": baskets[:BLOCK_PEOPLE]}, 5, 0),
        sv.simulate_block(plan, {"item": baskets[BLOCK_PEOPLE:]}, 5, 1),
    ]
    assert len(plan.series.shares) > 1
    assert sv.Reports.concat(parts) == whole
    assert 0 < len(parts[1]) < 1000


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_whispers_with_a_seed_are_the_simulation(ending: str, tmp_path: Path) -> None:
    plan, table = plan_of("listed"), pd.DataFrame(people(PEOPLE))
    source, made, reports = (tmp_path / name for name in (f"p.{ending}", "plan.json", "r.parquet"))
    table.to_csv(source, index=False) if ending == "csv" else table.to_parquet(source)
    made.write_text(plan.to_json())
    people_commands.whisper(made, source, reports, seed=9, quiet=True)
    assert sv.Reports.read(reports) == sv.simulate(plan, table, seed=9)


def test_fakes_come_last_and_once(tmp_path: Path) -> None:
    plan = shuffled_plan(keys(), people=60, least=40, fakes=6)
    name = plan.cohorts.attributes[0]
    table = pd.DataFrame({name: [plan.schema[name].labels()[0]] * PEOPLE})
    whole = sv.simulate(plan, table, seed=2)
    assert len(whole) == PEOPLE + 6
    assert whole[PEOPLE:] == simulate_added(plan, 2)
    source, made, reports = (tmp_path / name for name in ("p.csv", "plan.json", "r.parquet"))
    table.to_csv(source, index=False)
    made.write_text(plan.to_json())
    people_commands.whisper(made, source, reports, seed=2, quiet=True)
    assert sv.Reports.read(reports) == whole


@pytest.mark.parametrize(
    ("count", "seed", "block", "words"),
    [
        (BLOCK_PEOPLE + 1, 1, 0, r"people \(131073 rows\) must be at most 131072"),
        (1, -1, 0, r"seed \(-1\)"),
        (1, 1, -1, r"block \(-1\)"),
        (1, 1, 1 << 32, r"block \(4294967296\)"),
    ],
)
def test_what_is_no_block_is_refused(count: int, seed: int, block: int, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sv.simulate_block(plan_of("subsets"), people(count), seed, block)
