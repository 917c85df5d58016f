"""Privacy of plans for queries by enumeration: whole reports of a device, for every method."""

from __future__ import annotations

import pytest

import sottovoce as sv
from sottovoce.audit import audit_plan
from sottovoce.ground.entropy import Seeded
from sottovoce.oracles.thresholds import exceeds, log_ratio
from sottovoce.protocol.encodings import Ask, Grid
from sottovoce.questions.queries.methods import METHODS
from tests.statistics import NO_COINS

TINY = sv.Schema(
    age=sv.Ordinal(1, 3),
    smoker=sv.Boolean(),
    amount=sv.Number(0, 1, step="0.1", sensitive=False),
)
EPSILON = "1.25"
DRAWS = 1_000
LIMIT = 1 << 12
SMALL = sv.Schema(x=sv.Ordinal(0, 6), y=sv.Categorical("abc"))
SHIFTED = Grid.of(SMALL, ["x", "y"], [3, 2], [1, 1])


ONE_DIMENSION = ("haar", "square-wave", "ahead", "unbiased")


@pytest.mark.parametrize("name", [each.name for each in METHODS])
def test_a_tiny_plan_is_private_as_a_whole(name: str) -> None:
    names = ["age"] if name in ONE_DIMENSION else ["age", "smoker"]
    question = sv.Queries(names, measures=["amount"], method=name)
    plan = sv.plan(TINY, question, epsilon=EPSILON, people=4_000)
    found = audit_plan(plan, DRAWS, entropy=Seeded(5), seed=b"fixed", limit=LIMIT)
    assert found.passed, str(found)
    assert found.enumeration is not None
    assert found.enumeration.epsilon == pytest.approx(plan.guarantee.per_report, rel=1e-12)
    assert plan.guarantee.per_report <= float(EPSILON) + 1e-9


def test_reports_with_too_many_ways_are_known_before_records_are_compared() -> None:
    schema = sv.Schema(age=sv.Ordinal(0, 63), state=sv.Categorical("abc"))
    plan = sv.plan(schema, sv.Queries(["age", "state"]), epsilon=2, people=20_000)
    lines: list[str] = []
    made: list[int] = []
    found = audit_plan(
        plan, DRAWS, entropy=Seeded(5), seed=b"x", progress=made.append, say=lines.append
    )
    assert found.passed
    assert found.kind == "sampled"
    assert [line.partition(" ")[0] for line in lines] == ["enumerating", "reports"]
    assert "sampling 1,000 of them" in lines[1]
    # some cohorts could be enumerated: their ways would have been gone in vain
    assert max(made) <= 1 << 13


def channel(grid: Grid, oracle: str = "grr") -> float:
    """The largest log ratio of the chances of a report, over all two records of the schema."""
    ask = Ask(grid, sv.oracle(oracle, size=grid.size, epsilon=EPSILON))
    records = [{"x": x, "y": y} for x in range(7) for y in range(3)]
    cells = sorted({grid.encode(record, NO_COINS) for record in records})
    assert cells == list(range(grid.size))
    laws = [ask.oracle.exact_channel()[cell] for cell in cells]
    worst = max(max(law[out] for law in laws) / min(law[out] for law in laws) for out in laws[0])
    assert not exceeds(worst, ask.oracle.requested)
    return log_ratio(worst)


@pytest.mark.parametrize("oracle", ["grr", "ss", "oue", "olh"])
def test_a_grid_is_as_private_as_its_oracle(oracle: str) -> None:
    small = Grid.of(SMALL, ["x"], [3], [1])
    for grid in (small, SHIFTED):
        if grid.size > 4 and oracle in ("oue", "olh"):
            continue  # too many outputs to list in a test
        reached = channel(grid, oracle)
        assert reached == pytest.approx(sv.oracle(oracle, size=grid.size, epsilon=EPSILON).epsilon)
