"""The adaptive oracle is the best of those that fit."""

from __future__ import annotations

import pytest

import sottovoce as sv
from sottovoce.oracles import find
from tests.oracles import NAMES


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("size", [2, 3, 8, 30, 200, 512, 513, 5000, 1 << 20])
@pytest.mark.parametrize("target", ["cell", "half-sum"])
def test_nothing_that_fits_is_better(size: int, epsilon: float, target: str) -> None:
    best = sv.oracle("adaptive", size=size, epsilon=epsilon, target=target)
    assert best.layout.bytes <= 64

    def error(oracle: object) -> float:
        return oracle.variance(1) if target == "cell" else oracle.sum_variance(1, size // 2)  # type: ignore[attr-defined]

    for name in NAMES:
        others = ("rappor", "o-rr", "o-rappor", "cms", "hcms", "olh-seeded", "olh-wide", "olh-sets")
        others += ("square-wave", "olh-field")
        if name in others or size > find(name).largest:
            # these answer other needs: open alphabets, values asked one by one, order, and
            # large epsilons
            continue
        if name == "rr" and size != 2:
            continue
        other = sv.oracle(name, size=size, epsilon=epsilon)
        if other.layout.bytes <= 64:
            assert error(best) <= error(other) * (1 + 1e-8)


def test_the_choices_people_expect() -> None:
    assert sv.oracle("adaptive", size=2, epsilon=1.0).names[0] == "grr"
    assert sv.oracle("adaptive", size=16, epsilon=1.0).names[0] == "ss"
    assert sv.oracle("adaptive", size=16, epsilon=1.0, bytes=1).names[0] in (
        "grr",
        "hr",
        "hrr",
        "olh",
    )
    assert sv.oracle("adaptive", size=4096, epsilon=1.0).names[0] == "olh"
    assert sv.oracle("adaptive", size=4096, epsilon=1.0, bytes=512).names[0] == "ss"
    assert sv.oracle("adaptive", size=1 << 64, epsilon=1.0).names[0] == "olh-seeded"


def test_bad_choices() -> None:
    with pytest.raises(sv.InvalidInput, match="target"):
        sv.oracle("adaptive", size=4, epsilon=1.0, target="median")
    with pytest.raises(sv.InvalidInput, match="bytes"):
        sv.oracle("adaptive", size=1 << 64, epsilon=1.0, bytes=2)
    with pytest.raises(sv.InvalidInput, match="oracle"):
        sv.oracle("magic", size=4, epsilon=1.0)
    with pytest.raises(sv.InvalidInput, match="option 'width' is not one of grr's"):
        sv.oracle("grr", size=4, epsilon=1.0, width=8)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("de", "grr"),
        ("k-rr", "grr"),
        ("ps", "grr"),
        ("k-rappor", "sue"),
        ("prr", "sue"),
        ("random-projection", "blh"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    assert sv.oracle(alias, size=8, epsilon=1.0) == sv.oracle(name, size=8, epsilon=1.0)
