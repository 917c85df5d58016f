"""The client in Node against a real collector: plans, assignments and reports over HTTP, each
counted once.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.browser.machines import CLIENT, HAS_NODE
from tests.service.collector import PLAN, RECORD, SEEDED, TABLES, collecting

pytestmark = pytest.mark.skipif(
    not HAS_NODE, reason="Node is missing: the client was not run in it"
)

PEOPLE = 20
VISITS = """
import { Assignment, Client, Plan, send } from "./src/index.js";
const { url, ids, record, people } = JSON.parse(process.argv[1]);
const counted = {};
for (const id of ids) {
    const plan = await Plan.fetch(url, { id });
    const assignment = plan.coin === "assigned" ? () => Assignment.fetch(url, plan) : undefined;
    counted[id] = [0, 0];
    for (let person = 0; person < people; person++) {
        const client = new Client(plan, { assignment });
        for (const answer of [record, {}]) {
            const { stored, duplicates } = await send(await client.report(answer), url);
            counted[id][0] += stored;
            counted[id][1] += duplicates;
        }
    }
}
console.log(JSON.stringify(counted));
"""


def test_people_who_answer_twice_are_counted_once(tmp_path: Path) -> None:
    plans = (PLAN, SEEDED, TABLES)
    with collecting(f"sqlite:///{tmp_path}/survey.db", plans) as running:
        given = {
            "url": running.url,
            "ids": [plan.id for plan in plans],
            "record": RECORD,
            "people": PEOPLE,
        }
        done = subprocess.run(
            ["node", "--input-type=module", "--eval", VISITS, json.dumps(given)],
            cwd=CLIENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {plan.id: [PEOPLE, PEOPLE] for plan in plans}
        assert [running.service.store.count(plan) for plan in plans] == [PEOPLE] * 3
