"""Every way to release says what it promises, where a reader looks for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sottovoce.central.method import ReleaseMethod
from sottovoce.central.methods import METHODS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_method_is_documented(method: ReleaseMethod) -> None:
    text = type(method).__doc__ or ""
    for key in ("Guarantee:", "Assumes:", "Source:", "Checked:"):
        assert re.search(rf"{key}\s+\S", text), key
    guarantees = (ROOT / "docs" / "guarantees.md").read_text()
    (row,) = [line for line in guarantees.splitlines() if f"`{type(method).__name__}`" in line]
    assert f"(`{method.name}`)" in row
    assert f"| `{method.name}` |" in (ROOT / "docs" / "central.md").read_text()
    assert f"`{method.name}`" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_test_that_checks_a_method_is_there(method: ReleaseMethod) -> None:
    found = re.search(r"Checked:\s+(\S+)", type(method).__doc__ or "")
    assert found is not None
    assert (ROOT / found.group(1)).is_file()
    assert found.group(1) in (ROOT / "docs" / "guarantees.md").read_text()
