"""What an install without the analysis libraries does: devices and collectors work, all else says
what to install.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.store import open_store
from tests.browser.machines import CLIENT, HAS_NODE
from tests.packaging.installs import listening, run, without
from tests.service.collector import Collector
from tests.store.crowds import ids
from tests.store.damage import damage

SCHEMA = sv.Schema(
    colour=sv.Categorical(["red", "green", "blue", "grey"]),
    smoker=sv.Boolean(),
    size=sv.Categorical(["small", "large"]),
    word=sv.Text(6),
    basket=sv.Items(range(50)),
)
RECORD = {"colour": "blue", "smoker": True, "size": "large", "word": "piano", "basket": [1, 2]}
QUESTIONS: dict[str, Any] = {
    "frequencies": sv.Frequencies("colour", "smoker"),
    "subset-selection": sv.Frequencies("colour", oracle="ss"),
    "marginals": sv.Marginals(up_to=2, attributes=["colour", "smoker"]),
    "calm": sv.Marginals(up_to=2, attributes=["colour", "smoker", "size"], method="calm"),
    "heavy-hitters": sv.HeavyHitters("word", top=4),
    "top-items": sv.TopItems("basket", top=4),
    "top-itemsets": sv.TopItemsets("basket", top=4),
}
PLANS = {
    name: sv.plan(SCHEMA, question, epsilon=2.0, people=1000)
    for name, question in QUESTIONS.items()
}
ASSIGNED = sv.plan(
    SCHEMA, sv.Frequencies("colour", oracle="olh"), epsilon=1.0, people=1000, coin="assigned"
)
PEOPLE = 20
LIGHT = without("analysis", "studio", "postgres")

# Reads the plans of a collector and lets people answer each:
# in an interpreter without the analysis libraries.
DEVICES = """
import json, sys, urllib.request
import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.device.sender import Sender

url, ids, record, people = json.loads(sys.argv[1])
sender = Sender(url, patience=600)
for id in ids:
    with urllib.request.urlopen(f"{url}/v1/plans/{id}") as answer:
        plan = sv.Plan.from_json(answer.read(), id=id)
    sent = 0
    while sent < people:
        given = sender.assignment(id) if plan.coin == "assigned" else None
        try:
            report = sv.Client(plan, sv.ClientState(), assignment=given).report(record)
        except sv.NotInThisRound:
            continue
        sender.send([given.id if given else new_id()], [report], [given] if given else [])
        sent += 1
assert not {"scipy", "numba", "pyarrow", "pandas", "sklearn", "altair"} & set(sys.modules)
"""

VISITS = """
import { Assignment, Client, Plan, PlainMemory, send } from "./src/index.js";
const [url, ids, record, people] = JSON.parse(process.argv[1]);
for (const id of ids) {
    const plan = await Plan.fetch(url, { id });
    const assignment = plan.coin === "assigned" ? () => Assignment.fetch(url, plan) : undefined;
    for (let sent = 0; sent < people; ) {
        try {
            const memory = new PlainMemory();
            await send(await new Client(plan, { memory, assignment }).report(record), url);
            sent++;
        } catch (wrong) {
            if (wrong.name !== "NotInThisRound") throw wrong;
        }
    }
}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A file for each plan."""
    folder = tmp_path_factory.mktemp("plans")
    written = []
    for name, plan in {**PLANS, "assigned": ASSIGNED}.items():
        path = folder / f"{name}.json"
        path.write_text(plan.to_json(), encoding="utf-8")
        written.append(str(path))
    return written


def test_a_collector_without_analysis_libraries_takes_every_kind_of_report(
    tmp_path: Path, files: list[str]
) -> None:
    store = f"sqlite:///{tmp_path}/survey.db"
    made = run(["token", store], LIGHT)
    assert made.returncode == 0, made.stderr
    token = made.stdout.split()[-1]
    plans = [*PLANS.values(), ASSIGNED]
    with listening(["serve", *files, "--store", store], LIGHT) as running:
        given = json.dumps([running.url, [plan.id for plan in plans], RECORD, PEOPLE])
        done = run([given], LIGHT, DEVICES)
        assert done.returncode == 0, done.stderr
        collector: Any = Collector(None, int(running.url.rpartition(":")[2]), token, None)  # type: ignore[arg-type]
        assert collector.ask("GET", "/healthz").status == 200
        bad = {
            "id": "00" * 16,
            "sottovoce": 1,
            "plan": PLANS["frequencies"].id,
            "cohort": 0,
            "payload": "ffff",
        }
        assert collector.post(bad).problem == "invalid-report"
        counted = {
            survey["id"]: survey["people"]
            for survey in collector.analyst("GET", "/v1/surveys").json
        }
        assert counted == {plan.id: PEOPLE for plan in plans}
        refused = collector.analyst("GET", f"/v1/surveys/{PLANS['frequencies'].id}/estimates")
        assert (refused.status, refused.problem) == (501, "not-installed")
        assert 'pip install "sottovoce[analysis]"' in refused.json["detail"]
    with open_store(store) as opened:  # where the libraries are, the same store adds up
        assert [opened.aggregate(plan).people for plan in plans] == [PEOPLE] * len(plans)


@pytest.mark.skipif(not HAS_NODE, reason="Node is missing: the client was not run in it")
def test_it_takes_what_javascript_sends(tmp_path: Path, files: list[str]) -> None:
    plans = [*PLANS.values(), ASSIGNED]
    store = f"sqlite:///{tmp_path}/survey.db"
    with listening(["serve", *files, "--store", store], LIGHT) as running:
        given = json.dumps([running.url, [plan.id for plan in plans], RECORD, PEOPLE])
        node = ["node", "--input-type=module", "--eval", VISITS, given]
        done = subprocess.run(node, cwd=CLIENT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    told = json.loads(run(["info", store, "--json"], LIGHT).stdout)
    assert {plan["id"]: plan["reports"] for plan in told["plans"]} == {
        plan.id: PEOPLE for plan in plans
    }


def test_it_backs_up_restores_and_checks_its_store(tmp_path: Path) -> None:
    store, other, file = (
        f"sqlite:///{tmp_path}/survey.db",
        f"sqlite:///{tmp_path}/other.db",
        str(tmp_path / "backup.db"),
    )
    people: Any = {name: [RECORD[name]] * PEOPLE for name in SCHEMA}
    with open_store(store) as opened:
        for minute, plan in enumerate(PLANS.values()):
            opened.add_plan(plan)
            asked = {name: people[name] for name in plan.schema}
            reports = sv.simulate(plan, asked, seed=1)
            opened.append(plan, ids(len(reports), minute=minute), reports)
        opened.rebuild(PLANS["marginals"])
        opened.keep_sums(PLANS["frequencies"])
        expected = [opened.aggregate(plan).to_bytes() for plan in PLANS.values()]
        total = sum(opened.count(plan) for plan in PLANS.values())
    for command, said in (
        (
            ["backup", store, "-o", file],
            f"{total} reports of {len(PLANS)} surveys written to {file}\n",
        ),
        (["restore", file, other], f"{total} reports of {len(PLANS)} surveys restored\n"),
    ):
        done = run(command, LIGHT)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", said)
    rebuilt = run(["rebuild", other], LIGHT)
    assert (rebuilt.returncode, rebuilt.stderr) == (0, "")
    assert "Only the sums of" in rebuilt.stdout
    assert "checked; the next estimate adds them up" in rebuilt.stdout
    with open_store(other) as opened:
        assert [opened.aggregate(plan).to_bytes() for plan in PLANS.values()] == expected
    damage(other, "payload", 0)
    refused = run(["rebuild", other], LIGHT)
    assert refused.returncode == 2
    assert "1 reports of" in refused.stderr
    assert "--set-aside" in refused.stderr
    assert "1 damaged ones set aside" in run(["rebuild", other, "--set-aside"], LIGHT).stdout


VECTORS = """
import json, sys
import numpy as np
import sottovoce as sv
from sottovoce.protocol.question_forms import QUESTIONS
from sottovoce.protocol.reports import Reports

kinds = {kind.kind for kind in QUESTIONS}
read = 0
for case in json.load(open("tests/vectors/v1.json", encoding="utf-8"))["plans"]:
    if json.loads(case["plan"])["question"]["kind"] not in kinds:
        continue
    plan = sv.Plan.from_json(case["plan"], id=case["id"])
    reports = [sv.Report.from_bytes(bytes.fromhex(good["report"]), plan) for good in case["good"]]
    Reports.collect(plan, reports).checked(plan)
    read += 1
print(read)
"""


def test_every_plan_of_the_vectors_is_read_and_its_reports_are_checked_by_numpy_alone() -> None:
    done = run([], without("analysis", "collector", "studio", "postgres"), VECTORS)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


@pytest.mark.parametrize(
    ("arguments", "missing", "extra"),
    [
        (["estimate", "{plan}", "{reports}"], ("analysis", "studio"), "analysis"),
        (["serve", "{plan}"], ("analysis", "collector", "studio"), "collector"),
        (["studio", "--store", "{store}"], ("analysis",), "analysis"),
        (["studio", "--store", "{store}"], ("analysis", "studio"), "studio"),
        (["export", "{store}", "-o", "{folder}/out"], ("analysis", "studio"), "analysis"),
        (["demo", "--output", "{folder}/demo"], ("analysis", "studio"), "analysis"),
    ],
    ids=lambda case: case[0] if isinstance(case, list) else "",
)
def test_what_is_missing_is_named_with_its_extra_in_one_line(
    tmp_path: Path, files: list[str], arguments: list[str], missing: tuple[str, ...], extra: str
) -> None:
    store = f"sqlite:///{tmp_path}/survey.db"
    with open_store(store) as opened:
        opened.add_plan(PLANS["frequencies"])
    filled = {
        "plan": files[0],
        "reports": str(tmp_path / "r.parquet"),
        "store": store,
        "folder": str(tmp_path),
    }
    done = run([each.format(**filled) for each in arguments], without(*missing))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert f'pip install "sottovoce[{extra}]"' in done.stderr


def test_in_python_the_error_says_it_too(files: list[str]) -> None:
    code = """
import sys
import sottovoce as sv
plan = sv.Plan.from_json(open(sys.argv[1], encoding="utf-8").read())
try:
    sv.simulate(plan, {"colour": ["red"], "smoker": [True]}, seed=1)
except sv.SottovoceError as wrong:
    assert isinstance(wrong, ImportError)
    print(wrong)
"""
    done = run([files[0]], LIGHT, code)
    assert (
        'numba is not installed; it comes with: pip install "sottovoce[analysis]"' in done.stdout
    ), done.stderr
