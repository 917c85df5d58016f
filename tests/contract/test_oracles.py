"""One suite of laws for every oracle, and for the one that CONTRIBUTING shows how to add."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce import audit
from sottovoce.audit.channels import ENUMERATED, STATED
from sottovoce.audit.laws import (
    LAWS,
    LawBroken,
    a_weight_repeats_its_report,
    device_and_simulation_share_one_law,
)
from sottovoce.oracles import ORACLES, Oracle, SummedOracle, built_of
from sottovoce.oracles.counter import Counter
from sottovoce.oracles.estimator import Estimator
from sottovoce.oracles.randomizer import Randomizer
from sottovoce.oracles.shape import Shape
from sottovoce.schema import OPEN
from tests.oracles import ENUMERABLE, NAMES, ordinary, sizes, small

ROLES = (Shape, Randomizer, Counter, Estimator)
OPEN_TO_ALL = ("olh-seeded", "olh-wide", "olh-sets", "cms", "hcms", "rappor", "o-rr", "o-rappor")


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.5, 2.5])
def test_law(name: str, law: object, epsilon: float) -> None:
    law(ordinary(name, epsilon, size=37))  # type: ignore[operator]


@pytest.mark.parametrize("law", [*STATED, *ENUMERATED], ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", ENUMERABLE)
def test_law_of_the_channel(name: str, law: object) -> None:
    law(small(name, sizes(name, (4,))[0], 1.0))  # type: ignore[operator]


@pytest.mark.parametrize("name", OPEN_TO_ALL)
def test_open_alphabets_pack_merge_and_refuse(name: str) -> None:
    oracle = sv.oracle(name, size=OPEN, epsilon=1.0)
    for law in LAWS:
        law(oracle)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "o-rr",
            {"cohorts": 1, "buckets": 256, "alphabet": "open"},
        ),  # a cohort field of no bits, at a byte's edge
        ("o-rappor", {"cohorts": 1, "buckets": 64}),
        ("rappor", {"cohorts": 2, "buckets": 63, "hashes": 3}),
        ("cms", {"hashes": 2, "width": 2}),
        ("olh", {"hash_bits": 12}),  # rows of more than 64 bits
        ("olh-seeded", {"hash_size": 65_536}),
        ("ss", {"chosen": 36}),
    ],
)
def test_unusual_shapes(name: str, options: dict[str, object]) -> None:
    oracle = sv.oracle(name, size=37, epsilon=1.0, **options)
    for law in LAWS:
        law(oracle)


def test_a_simulation_with_another_p_is_told_apart() -> None:
    """The law about devices and simulations can fail: p larger by 0.1 on the simulated side."""
    good = ordinary("oue", 1.0, size=37)

    class Louder(type(good)):  # type: ignore[misc]
        def simulate(self, values: object, seed: int) -> object:
            louder = replace(good, one=good.one + (1 << 64) // 10)  # type: ignore[attr-defined, call-arg]
            return louder.simulate(values, seed)

    mutant = Louder(good.size, good.requested, good.one, good.zero)  # type: ignore[attr-defined]
    device_and_simulation_share_one_law(good)
    with pytest.raises(LawBroken):
        device_and_simulation_share_one_law(mutant)


@pytest.mark.parametrize("name", NAMES)
def test_a_counter_that_ignores_weights_is_told_apart(name: str) -> None:
    good = ordinary(name, 1.0, size=37)

    class Blind(type(good)):  # type: ignore[misc]
        def _accumulate(self, state: object, payload: object, weights: object) -> object:
            return super()._accumulate(state, payload, None)

        def support_rows(self, payload: object, weights: object, values: object) -> object:
            return super().support_rows(payload, None, values)

    mutant = Blind(**{each.name: getattr(good, each.name) for each in fields(good)})
    a_weight_repeats_its_report(good)
    with pytest.raises(LawBroken):
        a_weight_repeats_its_report(mutant)


def test_a_randomizer_needs_no_heavy_library() -> None:
    """What runs on a device is imported without scipy and numba, in a new process."""
    code = (
        "import sys, sottovoce.oracles.randomizer, sottovoce.oracles.hashing;"
        "sys.exit(', '.join(sorted({'scipy', 'numba', 'sklearn', 'pandas'} & set(sys.modules))) or "
        "None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_oracle_is_three_roles() -> None:
    """Each method of an oracle belongs to one of them, or to the shape that they share; only one
    whose reports can be summed is a counter.
    """
    assert issubclass(Oracle, Randomizer)
    assert issubclass(Oracle, Estimator)
    assert not issubclass(Oracle, Counter)
    assert issubclass(SummedOracle, Counter)
    kept = {kind.names[0] for kind in ORACLES if not issubclass(kind, Counter)}
    assert kept == {"olh-seeded", "olh-wide", "olh-sets"}
    own = [
        {name for name in vars(role) if name[0] != "_" or name == "_accumulate"} for role in ROLES
    ]
    for one, other in combinations(own, 2):
        assert not one & other
    assert {
        name for name in vars(Oracle) if name[0] != "_" and callable(getattr(Oracle, name))
    } == {"support", "estimate_reports"}


def test_the_oracle_that_contributing_adds_obeys_the_laws() -> None:
    """It is one file of fewer than 60 lines, and one line in a tuple."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    block = re.search(r"```python\n(# src/sottovoce/oracles/.*?)```", text, re.DOTALL)
    assert block is not None
    code = block.group(1)
    assert len(code.splitlines()) < 60
    space: dict[str, object] = {"__name__": "sottovoce.oracles.example"}
    exec(compile(code, "CONTRIBUTING.md", "exec", dont_inherit=True), space)
    kind = next(
        value
        for value in space.values()
        if isinstance(value, type)
        and issubclass(value, Oracle)
        and value.__module__ == "sottovoce.oracles.example"
    )
    for size in (5, 9):
        found = audit.check_oracle(built_of(kind, size, 1.0))
        assert found.passed, str(found)
