"""Examples of queries, made from a plan: whatever its columns are called, they are answered."""

from __future__ import annotations

import pytest

import sottovoce as sv
from sottovoce.questions.queries.sql.examples import example_query


@pytest.mark.parametrize(
    ("schema", "dimensions", "measures", "public"),
    [
        ({"age": sv.Ordinal(18, 81)}, ["age"], [], []),
        ({"group": sv.Ordinal(0, 2)}, ["group"], [], []),
        ({'my "hours"': sv.Ordinal(-5, 60), "b": sv.Boolean()}, ['my "hours"', "b"], [], []),
        ({"b": sv.Boolean(), "c": sv.Categorical(["o'", "p"])}, ["b", "c"], [], []),
        ({"c": sv.Categorical(["o'", "p"])}, ["c"], [], []),
        ({"c": sv.Categorical([3, 4, 5])}, ["c"], [], []),
        ({"n": sv.Integer(10)}, ["n"], [], []),
        (
            {
                "age": sv.Ordinal(18, 81),
                "amount": sv.Number(0, 9, step="0.1", sensitive=False),
                "note": sv.Text(bytes=4, sensitive=False),
            },
            ["age"],
            ["amount"],
            ["note"],
        ),
    ],
)
def test_every_example_is_answered(
    schema: dict[str, sv.Attribute], dimensions: list[str], measures: list[str], public: list[str]
) -> None:
    question = sv.Queries(dimensions, measures, method="tree")
    plan = sv.plan(sv.Schema(**schema), question, epsilon=4.0, people=1000, public=public)
    record = {name: _some(attribute) for name, attribute in schema.items()}
    reports = sv.simulate(plan, {name: [value] * 50 for name, value in record.items()}, seed=1)
    assert len(sv.query(plan, reports, example_query(plan)).rows) >= 1


def _some(attribute: sv.Attribute) -> object:
    if isinstance(attribute, sv.FixedPoint):
        return "1.5"
    if isinstance(attribute, sv.Text):
        return "note"
    return attribute.labels()[0]
