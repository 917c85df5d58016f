"""Lines over a prime field, of any size: the client in Node draws what the Python client draws, and
by enumeration its reports have the law that Python states.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle_with
from sottovoce.oracles.field_hashing import MOST_LISTED, FieldLocalHashing, prime_from
from sottovoce.oracles.thresholds import truth_threshold
from sottovoce.protocol.reports import Report
from tests.browser.machines import HAS_NODE, MISMATCHES, in_node
from tests.vectors.case import Case
from tests.vectors.make import rows

pytestmark = pytest.mark.skipif(
    not HAS_NODE, reason="Node is missing: the client was not run in it"
)

WHOLE = 1 << 64
LARGEST = 1 << 26
MOST_COUNTED = 1 << 17  # values whose counts are held at once here
# every draw of a line and a shift, and what a coin that lands heads then answers
ENUMERATED = """
import { readFileSync } from "node:fs";
import { readOracle } from "./src/oracles.js";
const all = JSON.parse(readFileSync(process.argv[1], "utf8")).map(({ oracle, prime }) => {
  const found = [];
  const { whisper, size } = readOracle(oracle);
  for (let value = 0n; value < size; value++) {
    for (let factor = 0n; factor < prime - 1; factor++) {
      for (let shift = 0n; shift < prime; shift++) {
        for (const truth of [true, false]) {
          const asked = [];
          const drawn = [factor, shift, 0n];
          const below = (limit) => (asked.push(limit), drawn.shift());
          const coin = (threshold) => (asked.push(threshold), truth);
          const answer = whisper(value, { public: { below }, below, coin });
          found.push([...[value, ...answer, ...asked].map(String), truth]);
        }
      }
    }
  }
  return found;
});
console.log(JSON.stringify(all));
"""


def random_sizes() -> list[tuple[int, int]]:
    """Numbers of values and of hash values: the ends, and any between them."""
    draws = np.random.default_rng(5)
    sizes = [2, 3, 4, 2**16, 2**16 + 1, LARGEST - 5, LARGEST]
    sizes += [int(2**bits) for bits in draws.uniform(1, 26, 13)]
    pairs = []
    for size in sizes:
        least = max(2, -(-prime_from(size) // MOST_LISTED))
        any_size = int(least * (size / least) ** draws.uniform())
        pairs += [(size, count) for count in sorted({least, any_size, size})]
    return pairs


def plan_of(size: int, count: int) -> sv.Plan:
    schema = sv.Schema(n=sv.Ordinal(0, size - 1))
    question = sv.Frequencies("n", oracle="olh-field", hash_size=count)
    return sv.plan(schema, question, epsilon=3, people=1000)


def test_reports_of_every_size_are_the_same(tmp_path: Path) -> None:
    draws = np.random.default_rng(6)
    entries = []
    for size, count in random_sizes():
        values = [0, size - 1, *draws.integers(0, size, 2).tolist()]
        plan = plan_of(size, count)
        records: tuple[dict[str, Any], ...] = tuple({"n": value} for value in values)
        name = f"{size} to {count}"
        good, _ = rows(Case(name, plan, records, len(records)))
        entries.append(
            {
                "name": name,
                "id": plan.id,
                "plan": plan.to_json(),
                "good": good,
                "silent": [],
                "bad_records": [],
            }
        )
    assert in_node(MISMATCHES, {"plans": entries, "bad_plans": []}, tmp_path) == []
    # the same bytes add up to what each of them supports
    for entry in entries:
        plan = sv.Plan.from_json(entry["plan"])
        if plan.cohorts[0].asks[0].oracle.size > MOST_COUNTED:
            continue
        (ask,) = plan.cohorts[0].asks
        oracle = ask.oracle
        assert isinstance(oracle, FieldLocalHashing)
        reports = [Report.from_bytes(bytes.fromhex(row["report"]), plan) for row in entry["good"]]
        heard = [oracle.unpack(report.payload) for report in reports]
        asked = np.array([row["record"]["n"] for row in entry["good"]], np.uint64)
        payload = np.stack([np.frombuffer(report.payload, np.uint8) for report in reports])
        counts = oracle.support_of(oracle.accumulate(oracle.empty(), payload), asked)
        plain = [sum(oracle.supports(each, int(value)) for each in heard) for value in asked]
        assert counts.tolist() == plain


def test_a_report_that_would_name_too_many_values_is_refused_by_both(tmp_path: Path) -> None:
    size = 1 << 20
    least = -(-prime_from(size) // MOST_LISTED)
    good = plan_of(size, least)
    body = json.loads(good.to_json())
    asked = body["cohorts"]["cohorts"][0]["asks"][0]["oracle"]
    epsilon = Decimal(asked["epsilon"])
    few = least - 1
    wrong = FieldLocalHashing(size, epsilon, truth_threshold(few, epsilon), few)
    asked |= wrong.to_json()
    body["question"]["options"]["hash_size"] = few
    text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
    with pytest.raises(InvalidInput, match="hash_size"):
        sv.Plan.from_json(text)
    plan_id = hashlib.sha256(text.encode()).hexdigest()
    bad = {"why": "too few hash values", "plan": text, "id": plan_id, "error": "InvalidInput"}
    told = {"plans": [], "bad_plans": [bad, bad | {"plan": good.to_json(), "id": good.id}]}
    (left,) = in_node(MISMATCHES, told, tmp_path)  # the good one, which is not refused
    assert left == "plan with too few hash values: null"


def test_the_law_of_the_browser_is_the_one_that_is_stated(tmp_path: Path) -> None:
    oracles = [
        oracle_with("olh-field", size, 1, {"hash_size": count})
        for size in (2, 3, 4, 6, 7)
        for count in range(2, size + 1)
    ]
    told = [{"oracle": oracle.to_json(), "prime": oracle.prime} for oracle in oracles]
    for oracle, found in zip(oracles, in_node(ENUMERATED, told, tmp_path), strict=True):
        line = Fraction(1, oracle.prime * (oracle.prime - 1))
        heads = Fraction(oracle.truth, WHOLE)
        laws: list[dict[Any, Fraction]] = [defaultdict(Fraction) for _ in range(oracle.size)]
        limits = [oracle.prime - 1, oracle.prime, oracle.truth]
        for *said, truth in found:
            value, factor, shift, answer, *asked = map(int, said)
            assert asked == (limits if truth else [*limits, oracle.hash_size])
            if truth:
                laws[value][factor, shift, answer] += line * heads
            else:
                for other in range(oracle.hash_size):
                    laws[value][factor, shift, other] += line * (1 - heads) / oracle.hash_size
        assert laws == oracle.exact_channel()
