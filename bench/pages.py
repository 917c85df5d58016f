"""How long the studio's pages take on a store of millions of reports."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import sottovoce as sv
from bench.collector import BATCH
from bench.rows import Row
from bench.store import new_ids
from bench.timing import measure
from sottovoce.store import open_store

LONGEST = 0.300  # seconds of a page
PEOPLE = 10_000_000


def pages(_: Any, __: Mapping[str, Any], people: int = PEOPLE) -> Iterator[Row]:
    """Every page, warm: what an analyst sees while the survey runs."""
    draws = np.random.default_rng(1)
    columns = {
        f"a{place}": draws.random(BATCH * 100) < 0.2 + 0.1 * (place % 4) for place in range(8)
    }
    schema = sv.Schema(**{name: sv.Boolean() for name in columns})
    plan = sv.plan(schema, sv.Marginals(up_to=2), epsilon=1.0, people=people)
    reports = sv.simulate(plan, columns, seed=1)
    with tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as folder:
        url = f"sqlite:///{folder}/survey.db"
        with open_store(url) as opened:
            opened.add_plan(plan, sv.Texts("a survey of many"))
            for _part in range(people // len(reports)):
                opened.append(plan, new_ids(len(reports), draws), reports)
        yield from _timed(plan, url, people)


def _timed(plan: sv.Plan, url: str, people: int) -> Iterator[Row]:
    command = [sys.executable, "-m", "sottovoce.cli", "studio", "--store", url, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def got(url: str) -> bytes:
        with browser.open(url, timeout=60) as answer:
            data: bytes = answer.read()
        return data

    try:
        assert process.stdout is not None
        base, link = (process.stdout.readline().decode().split()[-1] for _ in range(2))
        got(link)
        start = time.perf_counter()
        while (
            b"<svg" not in got(f"{base}/watch/{plan.id}/live") and time.perf_counter() - start < 120
        ):
            time.sleep(0.5)  # the first estimate and drawing are made in the background
        names = {
            "start": "/",
            "make": "/new",
            "take part": f"/take/{plan.id}",
            "watch": f"/watch/{plan.id}",
            "a table of two": f"/watch/{plan.id}/table?attribute=a0&attribute=a1",
        }
        for name, path in names.items():
            timing = measure(lambda path=path: got(base + path), 7)  # type: ignore[misc]
            yield Row("pages", f"{name}, {people:,} reports stored", "s", timing, limit=LONGEST)
    finally:
        process.terminate()
        process.communicate()
