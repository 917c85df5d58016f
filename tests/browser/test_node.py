"""The client's own tests, in Node: the wire's vectors, memories, rounds, sending."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.browser.machines import CLIENT, HAS_NODE

pytestmark = pytest.mark.skipif(
    not HAS_NODE, reason="Node is missing: the client was not run in it"
)


@pytest.mark.parametrize("name", sorted(path.name for path in (CLIENT / "tests").glob("*.test.js")))
def test_the_client_in_node(name: str) -> None:
    done = subprocess.run(
        ["node", "--test", f"tests/{name}"], cwd=CLIENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    passed = re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 2
