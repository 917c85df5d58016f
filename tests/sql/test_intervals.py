"""Intervals of SQL answers: what else a query asks for does not change them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sottovoce as sv

PEOPLE = 3000
SCHEMA = sv.Schema(age=sv.Ordinal(0, 15), state=sv.Categorical(["NY", "WA", "TX"]))


def test_an_interval_does_not_depend_on_the_other_columns() -> None:
    plan = sv.plan(SCHEMA, sv.Queries(["age", "state"]), epsilon=1, people=PEOPLE)
    coins = np.random.default_rng(1)
    states = np.array(["NY", "WA", "TX"])[coins.integers(0, 3, PEOPLE)]
    people = {"age": coins.integers(0, 16, PEOPLE), "state": states}
    reports = sv.simulate(plan, people, seed=1)
    young = "COUNT(*) FILTER (WHERE age < 4)"
    here = "COUNT(*) FILTER (WHERE state = 'NY')"
    both = "COUNT(*) FILTER (WHERE age < 4 AND state = 'NY')"
    alone = json.loads(sv.query(plan, reports, f"SELECT {young} FROM people").to_json())[0]
    sql = f"SELECT {young}, {here}, {both} FROM people"
    beside = json.loads(sv.query(plan, reports, sql).to_json())[0]
    assert beside["value"] == pytest.approx(alone["value"])
    assert (beside["low"], beside["high"]) == pytest.approx((alone["low"], alone["high"]))
