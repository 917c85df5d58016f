"""The bench of what is found: true counts by brute force, and what it writes."""

from __future__ import annotations

import numpy as np
import pytest

from bench import found_tuples
from bench.found_tuples import recall_lines, report, spurious_lines, true_counts
from sottovoce.central.method import MemoryTable, TupleCounts
from sottovoce.central.truth import truth_of
from tests.central_tables import rows_table, sets_table


def told_of(attributes: list[list[int]], codes: list[list[int]]) -> TupleCounts:
    some = np.zeros(len(codes))
    return TupleCounts(np.array(attributes), np.array(codes), some, some, some > 0)


def test_true_counts_are_those_of_brute_force() -> None:
    table = rows_table([[0, 0, 1], [0, 1, 1], [0, 1, 1]], [2, 2, 2])
    truth = truth_of(table)
    told = told_of([[1, 2], [0, 1], [0, 2]], [[1, 1], [0, 1], [1, 1]])
    held, found = true_counts(truth, truth.tables(2), told, 2)
    assert sorted(held.tolist()) == [1, 1, 2, 2, 3]
    assert sorted(found.tolist()) == [0, 2, 2]  # nobody has 1 and then 1


@pytest.mark.parametrize("is_sets", [False, True])
def test_recall_and_false_tuples_have_a_row_each(is_sets: bool) -> None:
    table: MemoryTable
    if is_sets:
        table = sets_table([(0, 1), (1,), (0, 1)] * 700, 2)
    else:
        table = rows_table([[0, 0], [0, 1], [1, 1]] * 700, [2, 2])
    recalls = recall_lines("mine", table, 2)
    assert all(line["recall"] == 1 for line in recalls)  # all are held by many
    false = spurious_lines("mine", table, 2, 3)
    assert [line["spurious"] for line in false] == [0, 0]
    assert false[1]["allowed"] == pytest.approx(0.01 * false[0]["told"])
    text = "\n".join(report(recalls, false))
    assert "over 3 releases of each table" in text
    count = 1 if is_sets else 3
    assert f"| `mine` | 2 | 1.000 ({count}) | 1.000 ({count}) |" in text


def test_the_picture_has_a_panel_for_each_table() -> None:
    lines = [
        {"data": name, "k": k, "least": 10**k, "of": 1, "recall": 1.0}
        for name in ("one", "two")
        for k in (1, 2)
    ]
    assert len(found_tuples.picture(lines).to_dict()["concat"]) == 2
