"""``sottovoce check-oracle``: for an oracle that is installed, and for a class of one's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import Command, refused

BIASED = """
from sottovoce.oracles.direct import GeneralizedRandomizedResponse

class Hesitant(GeneralizedRandomizedResponse):
    '''Says 0 for 3.

    Guarantee: epsilon-LDP for one report.
    Assumes:   nothing more.
    Source:    a mistake.
    '''
    names = ("hesitant",)

    def randomize(self, value, entropy):
        return super().randomize(0 if value == 3 else value, entropy)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "hesitant_oracle.py").write_text(BIASED)


def test_an_oracle_that_holds(sottovoce: Command) -> None:
    done = sottovoce("check-oracle", "ss", "--size", "4", "--json")
    found = json.loads(done.out)
    assert (done.code, found["passed"], found["oracle"]) == (0, True, "ss")
    assert {law["passed"] for law in found["laws"]} == {True}
    assert "estimates are unbiased" in {law["law"] for law in found["laws"]}
    assert done.err == ""


def test_an_oracle_that_does_not(sottovoce: Command) -> None:
    done = sottovoce("check-oracle", "hesitant_oracle:Hesitant")
    assert done.code == 1
    assert "FAIL estimates are unbiased: estimates are off by 1 on average" in done.out
    assert "ok   no report tells two values apart by more than epsilon" in done.out
    assert done.out.splitlines()[-1].startswith("FAIL hesitant (size 5, epsilon 1): 5 reports")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("magic",), "oracle (magic) must be one of rr, grr, "),
        (("hesitant_oracle:Nobody",), "hesitant_oracle has no Nobody"),
        (("ss", "--size", "1"), "size (1) must lie between 2 and"),
        (("rr",), "size (5) must be at most 2 for rr"),
        (("ss", "--epsilon", "0"), "epsilon (0) must be"),
    ],
)
def test_what_cannot_be_checked(sottovoce: Command, arguments: tuple[str, ...], words: str) -> None:
    refused(sottovoce("check-oracle", *arguments), words)


def test_a_picture_that_cannot_be_drawn_is_refused_at_once(sottovoce: Command) -> None:
    done = sottovoce(
        *("compare", "oracles", "--size", "8", "--epsilon", "1", "--people", "100"),
        *("--runs", "1", "--plot", "errors.doc"),
    )
    refused(done, "plot (errors.doc) must end in one of .svg, .png, .html, .json")
