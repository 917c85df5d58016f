"""Mutual information, the spanning tree that holds most of it, and the tree as a model."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.analysis.dependence import dependences
from sottovoce.analysis.pairs import mutual_information
from sottovoce.analysis.ties import Tie
from sottovoce.analysis.trees import Tree, _spanning
from tests.known import chain, known
from tests.statistics import chi_limit, chi_squared, z_limit


def brute_information(table: np.ndarray) -> float:
    rows, columns = table.sum(1), table.sum(0)
    return sum(
        table[i, j] * np.log(table[i, j] / (rows[i] * columns[j]))
        for i, j in itertools.product(*map(range, table.shape))
        if table[i, j] > 0
    )


def test_mutual_information_is_that_of_the_definition() -> None:
    tables = np.stack([chain([3, 4], seed) for seed in range(5)])
    assert mutual_information(tables) == pytest.approx(
        [brute_information(table) for table in tables]
    )
    assert mutual_information(np.eye(2) / 2) == pytest.approx(np.log(2))
    assert mutual_information(np.outer([0.2, 0.8], [0.3, 0.7])) == pytest.approx(0, abs=1e-15)


def all_trees(names: str) -> list[list[tuple[str, str]]]:
    """Every tree over the names, by its Pruefer sequence."""
    trees = []
    for sequence in itertools.product(names, repeat=len(names) - 2):
        degree = {name: 1 + sequence.count(name) for name in names}
        edges = []
        for name in sequence:
            leaf = next(each for each in names if degree[each] == 1)
            edges.append((min(leaf, name), max(leaf, name)))
            degree[leaf] -= 1
            degree[name] -= 1
        edges.append(tuple(name for name in names if degree[name] == 1))  # type: ignore[arg-type]
        trees.append(edges)
    return trees


def test_no_tree_holds_more() -> None:
    every = all_trees("abcde")
    assert len({tuple(sorted(tree)) for tree in every}) == 125
    for seed in range(10):
        weights = np.random.default_rng(seed).normal(size=10).tolist()
        ties = {
            pair: Tie(w, w, True)
            for pair, w in zip(itertools.combinations("abcde", 2), weights, strict=True)
        }
        found = _spanning("abcde", ties)
        best = max(sum(ties[pair].excess for pair in tree) for tree in every)
        assert sum(ties[pair].excess for pair in found) == pytest.approx(best)


def test_equal_pairs_are_taken_in_order() -> None:
    ties = {pair: Tie(0.1, 0.1, True) for pair in itertools.combinations("abcd", 2)}
    assert _spanning("abcd", ties) == [("a", "b"), ("a", "c"), ("a", "d")]
    tree = sv.dependency_tree(known(np.full((2, 2, 2), 1 / 8)))
    assert (tree.root, tree.attributes) == ("a", ("a", "b", "c"))


@pytest.fixture(scope="module")
def joint() -> np.ndarray:
    return chain([2, 3, 2, 4], 5)


@pytest.fixture(scope="module")
def tree(joint: np.ndarray) -> Tree:
    return sv.dependency_tree(known(joint, 1e-6))


def test_a_chain_is_found(tree: Tree) -> None:
    assert {frozenset((edge.parent, edge.child)) for edge in tree.edges} == {
        frozenset(pair) for pair in ("ab", "bc", "cd")
    }
    assert all(edge.is_clear and 0 < edge.std_error < edge.information for edge in tree.edges)
    assert tree.total == pytest.approx(sum(edge.information for edge in tree.edges))
    known_parents = {tree.root}
    for edge in tree.edges:
        assert edge.parent in known_parents
        known_parents.add(edge.child)


@pytest.mark.parametrize("root", ["a", "c", "d"])
def test_the_model_of_a_chain_is_the_chain(joint: np.ndarray, root: str) -> None:
    tree = sv.dependency_tree(known(joint), root)
    assert tree.root == root
    for names in ("a", "d", "ab", "da", "bd", "acd", "dba", "abcd", "dbca"):
        places = ["abcd".index(name) for name in names]
        truth = joint.sum(axis=tuple(set(range(4)) - set(places)))
        truth = truth.transpose(np.argsort(np.argsort(places)))
        table = tree.joint(*names)
        assert table.values == pytest.approx(truth.ravel())
        assert table.attributes == tuple(names)
    assert table.is_reconstructed
    assert not table.is_unbiased
    assert table.variances.max() < 1e-12


def test_the_model_s_errors_are_those_of_its_edges() -> None:
    """Of one edge the model is the pair's table, and its errors are the table's."""
    estimate = known(chain([2, 3], 1) * 0.6 + 0.4 / 6, 1e-6)
    joint = sv.dependency_tree(estimate).joint("a", "b")
    ratio = joint.variances.mean() / 1e-6  # of 200 draws, six cells
    assert ratio == pytest.approx(1, abs=6 * np.sqrt(2 / (200 * 5)))


def test_samples_follow_the_model(joint: np.ndarray, tree: Tree) -> None:
    records = tree.sample(40_000, seed=3)
    assert list(records.columns) == ["a", "b", "c", "d"]
    drawn = list(records.itertuples(index=False, name=None))
    cells = list(itertools.product(range(2), range(3), range(2), range(4)))
    statistic, degrees = chi_squared(cells, joint.ravel(), drawn)
    assert statistic < chi_limit(degrees)
    turned, _ = chi_squared(cells, joint[::-1].ravel(), drawn)  # the mutant: another population
    assert turned > chi_limit(degrees)
    assert records.equals(tree.sample(40_000, seed=3))
    assert not records.equals(tree.sample(40_000, seed=4))


def test_a_cut_edge_parts_what_lies_on_its_sides(joint: np.ndarray, tree: Tree) -> None:
    middle = next(edge for edge in tree.edges if {edge.parent, edge.child} == {"b", "c"})
    codes = tree.codes(200_000, np.random.default_rng(1), frozenset([middle]))
    together = np.bincount(codes["b"] * 2 + codes["c"], minlength=6).reshape(3, 2) / 200_000
    assert mutual_information(together) < chi_limit(2) / (2 * 200_000)
    kept = np.bincount(codes["a"] * 3 + codes["b"], minlength=6).reshape(2, 3) / 200_000
    assert kept == pytest.approx(joint.sum(axis=(2, 3)), abs=0.006)


def test_paths_lead_from_one_to_the_other(tree: Tree) -> None:
    assert {frozenset((edge.parent, edge.child)) for edge in tree.path("a", "d")} == {
        frozenset(pair) for pair in ("ab", "bc", "cd")
    }
    assert len(tree.path("c", "d")) == 1
    assert tree.path("b", "b") == []
    assert tree.information("d", "c") == tree.information("c", "d") > tree.information("a", "d")


def test_noise_tells_nothing() -> None:
    """Over many noisy tables of independent attributes the information is 0 on average; the plain
    one is not.
    """
    draws = np.random.default_rng(1)
    flat = np.outer([0.6, 0.4], [0.5, 0.3, 0.2])
    corrected, plain = [], []
    for _ in range(150):
        error = draws.normal(0, 0.02, (2, 3))
        estimate = known(flat + error - error.mean(), 0.02**2 * 5 / 6)
        (tie,) = dependences(estimate, [(0, 1)])
        corrected.append(tie.excess)
        assert tie.information == max(tie.excess, 0)
        plain.append(tie.plain)
    reach = z_limit(2) * np.std(plain) / np.sqrt(150)
    assert abs(np.mean(corrected)) < reach < np.mean(plain)


def test_the_standard_error_is_that_of_repetition() -> None:
    draws = np.random.default_rng(2)
    truth = np.array([[0.4, 0.1], [0.15, 0.35]])
    found, stated = [], []
    for _ in range(100):
        error = draws.normal(0, 0.01, (2, 2))
        edge = sv.dependency_tree(known(truth + error - error.mean(), 0.01**2 * 3 / 4)).edges[0]
        found.append(edge.information)
        stated.append(edge.std_error)
    ratio = np.var(found) / np.mean(np.square(stated))
    assert ratio == pytest.approx(1, abs=z_limit(1) * np.sqrt(2 / 100))
    assert abs(np.mean(found) - brute_information(truth)) < z_limit(1) * np.std(found) / 10


def test_a_tree_is_drawn_in_text() -> None:
    branches = np.zeros((2, 2, 2, 2))
    for a, b, c, d in np.ndindex(2, 2, 2, 2):
        branches[a, b, c, d] = 0.5 * (0.95, 0.05)[a ^ b] * (0.8, 0.2)[a ^ c] * (0.7, 0.3)[c ^ d]
    tree = sv.dependency_tree(known(branches, 1e-7, people=5000), "a")
    lines = str(tree).splitlines()
    assert lines[0] == "a"
    assert re.fullmatch(r"├── b  0\.49\d\d \(0\.4\d\d\d to 0\.5\d\d\d\)", lines[1])
    assert lines[2].startswith("└── c  0.19")
    assert lines[3].startswith("    └── d  0.08")
    assert lines[4].endswith("nats in all, 5,000 people")
    assert tree.to_json()["edges"][0]["child"] == "b"
    noisy = sv.dependency_tree(known(np.full((2, 2), 0.25) + 0.001 * np.eye(2) - 0.0005, 1e-3))
    assert "(may be noise)" in str(noisy)


def test_a_tree_is_drawn_as_a_picture(tree: Tree, tmp_path: Path) -> None:
    path = tmp_path / "tree.svg"
    chart = tree.plot(str(path)).to_dict()
    assert path.read_text().startswith("<svg")
    nodes = chart["layer"][2]["data"]["values"]
    links = chart["data"]["values"]
    assert {node["name"] for node in nodes} == set("abcd")
    assert sorted(node["y"] for node in nodes) == [0, 1, 2, 3]  # a row each: no name meets another
    assert [link["weight"] for link in links] == [edge.information for edge in tree.edges]
    assert all(link["x2"] == link["x"] + 1 for link in links)


def test_real_reports_give_the_tree_of_their_people() -> None:
    draws = np.random.default_rng(3)
    a = draws.random(40_000) < 0.5
    b, c = a ^ (draws.random(40_000) < 0.1), draws.integers(0, 3, 40_000)
    d = np.where(draws.random(40_000) < 0.7, c, draws.integers(0, 3, 40_000))
    schema = sv.Schema(
        a=sv.Boolean(),
        b=sv.Boolean(),
        c=sv.Categorical(range(3)),
        d=sv.Ordinal(0, 5, bins=3),
        e=sv.Boolean(),
    )
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="marg-ps"), epsilon=2.0, people=40_000)
    people = {"a": a, "b": b, "c": c, "d": d * 2 + 1, "e": draws.random(40_000) < 0.2}
    tree = sv.dependency_tree(sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)))
    clear = {frozenset((edge.parent, edge.child)) for edge in tree.edges if edge.is_clear}
    assert clear == {frozenset("ab"), frozenset("cd")}
    truth = brute_information(np.histogram2d(a, b, 2)[0] / 40_000)
    edge = next(edge for edge in tree.edges if {edge.parent, edge.child} == {"a", "b"})
    assert abs(edge.information - truth) < z_limit(1) * edge.std_error


def test_bad_input_is_refused(tree: Tree) -> None:
    wide = known(
        np.full((2,) * 3, 1 / 8),
        a=sv.Categorical(["x", "y"]),
        b=sv.Categorical("pq"),
        c=sv.Categorical("rs"),
    )
    assert sv.dependency_tree(wide).sample(1, seed=1)["a"][0] in ("x", "y")
    for words, call in (
        ("at least 2 attributes", lambda: sv.dependency_tree(known(np.array([0.4, 0.6]), order=1))),
        ("'z' is not in the plan", lambda: sv.dependency_tree(wide, "z")),
        ("one or more different names", tree.joint),
        ("one or more different names", lambda: tree.joint("a", "a")),
        ("'z' is not in the plan", lambda: tree.joint("z")),
        (r"people \(0\)", lambda: tree.sample(0, seed=1)),
        (r"seed \(-1\)", lambda: tree.sample(5, seed=-1)),
        ("Marginals question", lambda: sv.dependency_tree("tree")),  # type: ignore[arg-type]
    ):
        with pytest.raises(sv.InvalidInput, match=words):
            call()
