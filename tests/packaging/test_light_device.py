"""What a device loads: reading a plan and answering it need numpy, and a part of this package."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import sottovoce as sv

HEAVY = ("scipy", "numba", "pandas", "pyarrow", "sklearn", "altair", "fastapi")
MOST_MODULES = 70
MOST_MEMORY = 60  # MB
SCRIPT = """
import json, re, sys
from pathlib import Path
import sottovoce as sv

plan = sv.Plan.from_json(sys.stdin.read())
report = sv.Client(plan).report({"smoker": True, "drinks": "daily", "age": 41})
status = Path("/proc/self/status").read_text()  # of this program alone
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024
print(json.dumps({"bytes": report.to_bytes().hex(), "modules": sorted(sys.modules), "peak": peak}))
"""
SCHEMA = sv.Schema(
    smoker=sv.Boolean(),
    drinks=sv.Categorical(["never", "weekly", "daily"]),
    age=sv.Ordinal(18, 97, bins=8),
)
QUESTIONS = {
    "signs": sv.Marginals(up_to=2, method="latent"),
    "tables": sv.Marginals(up_to=2, method="marg-ps"),
    "views": sv.Marginals(up_to=2, method="calm"),
    "values": sv.Frequencies("drinks", "age"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_device_is_light(name: str) -> None:
    plan = sv.plan(SCHEMA, QUESTIONS[name], epsilon=1, people=20_000)
    # a fresh interpreter, which has loaded nothing yet
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=plan.text, capture_output=True, text=True, check=True
    )
    seen = json.loads(ran.stdout)
    assert sv.Report.from_bytes(bytes.fromhex(seen["bytes"]), plan)
    assert not [module for module in seen["modules"] if module.split(".")[0] in HEAVY]
    own = [module for module in seen["modules"] if module.split(".")[0] == "sottovoce"]
    assert len(own) <= MOST_MODULES, own
    assert seen["peak"] < MOST_MEMORY
