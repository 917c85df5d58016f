"""Synthetic records have the tables they were drawn from, and classifiers can learn from them."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.analysis import classify, synthetic
from sottovoce.analysis.records import conditionals_of, draw_given, people_of
from tests.known import chain, known
from tests.statistics import chi_limit, chi_squared

PEOPLE = 40_000


def distance(records: pd.DataFrame, names: str, joint: np.ndarray) -> tuple[float, float]:
    """(statistic, limit) of records against the chances of their cells."""
    places = ["abcdef".index(name) for name in names]
    table = joint.sum(axis=tuple(set(range(joint.ndim)) - set(places)))
    cells = list(itertools.product(*(range(size) for size in table.shape)))
    drawn = records[list(names)].itertuples(index=False, name=None)
    statistic, degrees = chi_squared(cells, table.ravel(), list(drawn))
    return statistic, chi_limit(degrees, 10)


def test_records_follow_the_table_of_all_attributes() -> None:
    joint = chain([2, 3, 4], 1)
    records = sv.synthesize(known(joint), PEOPLE, seed=1)
    statistic, limit = distance(records, "abc", joint)
    assert statistic < limit
    independent = joint.sum((1, 2))[:, None, None] * joint.sum(0)
    mutant, _ = distance(records, "abc", independent)
    assert mutant > limit
    assert records.equals(sv.synthesize(known(joint), PEOPLE, seed=1))
    assert not records.equals(sv.synthesize(known(joint), PEOPLE, seed=2))


def test_negative_cells_are_never_drawn() -> None:
    table = np.array([[0.6, -0.1], [0.2, 0.3]])
    records = sv.synthesize(known(table), 5000, seed=1)
    assert ((records["a"] == 0) & (records["b"] == 1)).sum() == 0


def test_attributes_may_be_chosen_in_any_order() -> None:
    joint = chain([2, 3, 4], 1)
    records = sv.synthesize(known(joint), PEOPLE, 1, ["c", "a"])
    assert list(records.columns) == ["c", "a"]
    statistic, limit = distance(records, "ac", joint)
    assert statistic < limit


def test_many_attributes_are_drawn_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain is told by its pairs, so drawing along the tree gives its joint exactly; two tables
    at once do too.
    """
    joint = chain([2, 3, 2, 3, 2], 4)
    monkeypatch.setattr(synthetic, "MOST_DIRECT", 20)
    for order in (2, 3):
        records = sv.synthesize(known(joint, order=order), PEOPLE, seed=1)
        assert list(records.columns) == list("abcde")
        for names in ("ab", "bc", "cd", "de", "abc", "ace", "abcde"):
            statistic, limit = distance(records, names, joint)
            assert statistic < limit, names
    alone = sv.synthesize(known(joint, order=1), PEOPLE, seed=1)
    assert distance(alone, "a", joint)[0] < distance(alone, "a", joint)[1]
    # single tables know no ties
    assert distance(alone, "ab", joint)[0] > distance(alone, "ab", joint)[1]


def test_three_way_ties_need_tables_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a and b agree is mostly what c says: no pair shows it."""
    joint = np.zeros((2, 2, 2, 2))
    for a, b in itertools.product(range(2), repeat=2):
        joint[a, b, a ^ b] += 0.25 * 0.7 * np.array([0.4, 0.6])
        joint[a, b, a & b] += 0.25 * 0.3 * np.array([0.4, 0.6])
    monkeypatch.setattr(synthetic, "MOST_DIRECT", 8)
    pairs = sv.synthesize(known(joint, order=2), PEOPLE, seed=1)
    triples = sv.synthesize(known(joint, order=3), PEOPLE, seed=1)
    limit = distance(pairs, "abc", joint)[1]
    assert distance(triples, "abc", joint)[0] < limit < distance(pairs, "abc", joint)[0]


def test_parents_are_the_most_telling_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = chain([2, 3, 2, 3, 2], 4)
    estimate = known(joint, order=3)
    tree = sv.dependency_tree(estimate)
    chosen = synthetic._parents(tree, estimate, "e", list("abcd"))
    assert chosen == sorted("abcd", key=lambda name: -tree.information("e", name))[:2]
    monkeypatch.setattr(synthetic, "MOST_DIRECT", 6)
    assert len(synthetic._parents(tree, estimate, "e", list("abcd"))) == 1
    assert synthetic._parents(tree, known(joint, order=1), "e", list("abcd")) == []


def test_draws_given_a_row_follow_it() -> None:
    rows = conditionals_of(
        np.array([[0.2, 0.3, 0.0], [0.0, 0.0, 0.0], [-0.1, 0.1, 0.4]]), np.array([0.1, 0.1, 0.8])
    )
    assert rows == pytest.approx(np.array([[0.4, 0.6, 0.0], [0.1, 0.1, 0.8], [0.0, 0.2, 0.8]]))
    given = np.repeat([0, 1, 2], 20_000)
    drawn = draw_given(rows, given, np.random.default_rng(1))
    for row in range(3):
        statistic, degrees = chi_squared([0, 1, 2], rows[row], drawn[given == row].tolist())
        assert statistic < chi_limit(degrees, 3)


def test_labels_are_the_schema_s_and_values_encode_back() -> None:
    schema = sv.Schema(
        yes=sv.Boolean(),
        word=sv.Categorical(["one", "two"]),
        mixed=sv.Categorical([1, "b", 3]),
        age=sv.Ordinal(18, 97, bins=7),
        year=sv.Ordinal(2000, 2004),
    )
    codes = {name: np.arange(40) % each.size for name, each in schema.items()}
    back = schema.encode_table(people_of(schema, codes), list(schema))
    assert all((back[name] == codes[name]).all() for name in schema)
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=2.0, people=1000)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, people_of(schema, codes), seed=1))
    records = sv.synthesize(heard, 500, seed=1)
    for name, each in schema.items():
        assert set(records[name]) <= set(each.labels())
    assert records["yes"].dtype == bool
    assert records["year"].dtype.kind == "i"


def test_a_classifier_learns_from_synthetic_people() -> None:
    draws = np.random.default_rng(1)
    people = 20_000
    a, b, c = draws.random(people) < 0.5, draws.integers(0, 3, people), draws.random(people) < 0.3
    rich = (a & (b > 0)) ^ (draws.random(people) < 0.1)
    table = pd.DataFrame({"a": a, "b": b, "c": c, "rich": rich})
    schema = sv.Schema(
        a=sv.Boolean(), b=sv.Categorical(range(3)), c=sv.Boolean(), rich=sv.Boolean()
    )
    plan = sv.plan(schema, sv.Marginals(up_to=4, method="inp-ps"), epsilon=3.0, people=16_000)
    trained, tested = table[:16_000], table[16_000:]
    heard = sv.Aggregate(plan).add(sv.simulate(plan, trained, seed=1))
    found = classify(heard, "rich", trained=trained, tested=tested, seed=1)
    assert found.features == ("a", "b", "c")
    assert (found.trained, found.tested) == (16_000, 4000)
    reach = 4 * np.sqrt(0.25 / 4000)
    assert found.majority == pytest.approx(float(tested["rich"].mean()), abs=1e-12)
    assert found.no_noise == pytest.approx(0.1, abs=reach)  # the coin that nobody can guess
    assert found.private < found.no_noise + reach < found.majority - reach
    assert found == classify(heard, "rich", trained=trained, tested=tested, seed=1)
    useless = classify(heard, "rich", ["c"], trained=trained, tested=tested, seed=1)
    assert useless.private == pytest.approx(useless.majority, abs=reach)
    assert "rich from a, b, c: wrong for" in str(found)


def test_one_label_only_is_always_predicted() -> None:
    joint = np.zeros((2, 2))
    joint[:, 1] = 0.5
    table = {"a": [0, 1], "b": [1, 1]}
    found = classify(known(joint), "b", trained=table, tested=table, seed=1)
    assert (found.private, found.no_noise, found.majority) == (0.0, 0.0, 0.0)


def test_bad_input_is_refused() -> None:
    estimate = known(np.full((2, 2), 0.25))
    table = {"a": [0, 1], "b": [1, 1]}
    for words, call in (
        (r"people \(0\)", lambda: sv.synthesize(estimate, 0, seed=1)),
        (r"seed \(x\)", lambda: sv.synthesize(estimate, 5, seed="x")),  # type: ignore[arg-type]
        ("'z' is not in the plan", lambda: sv.synthesize(estimate, 5, 1, ["z"])),
        ("different names", lambda: sv.synthesize(estimate, 5, 1, ["a", "a"])),
        ("different names", lambda: sv.synthesize(estimate, 5, 1, [])),
        ("Marginals question", lambda: sv.synthesize(None, 5, 1)),  # type: ignore[arg-type]
        (
            "'b' is the label",
            lambda: classify(estimate, "b", ["a", "b"], trained=table, tested=table, seed=1),
        ),
        (
            "'z' is not in the plan",
            lambda: classify(estimate, "z", trained=table, tested=table, seed=1),
        ),
        (
            "at least one record",
            lambda: classify(estimate, "b", trained={"a": [], "b": []}, tested=table, seed=1),
        ),
        (
            "'a' is missing",
            lambda: classify(estimate, "b", trained=table, tested={"b": [1]}, seed=1),
        ),
    ):
        with pytest.raises(sv.InvalidInput, match=words):
            call()


def test_python_in_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "analysis.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    space: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec", dont_inherit=True), space)
