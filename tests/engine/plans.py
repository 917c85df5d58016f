"""Plans of every kind of aggregate, with reports in a folder of several files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.protocol.report_files import write_stream
from tests.shipping.object_store import ObjectStore

PEOPLE = 6000
FILES = 3
GROUP = 1000  # reports in a row group
BITS = {f"a{k}": sv.Boolean() for k in range(6)}


def _marginals(method: str) -> sv.Plan:
    question = sv.Marginals(up_to=3, method=method)
    return sv.plan(sv.Schema(**BITS), question, epsilon=1.0, people=PEOPLE)


def _popular(method: str, bits: int, **options: int) -> sv.Plan:
    question = sv.HeavyHitters("x", top=4, method=method, **options)
    schema = sv.Schema(x=sv.Integer(bits=bits))
    return sv.plan(schema, question, epsilon=2.0, people=PEOPLE)


def _olh() -> sv.Plan:
    schema = sv.Schema(x=sv.Ordinal(0, (1 << 20) - 1))
    return sv.plan(schema, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=PEOPLE)


def _seeded() -> sv.Plan:
    schema = sv.Schema(x=sv.Ordinal(0, 99))
    return sv.plan(schema, sv.Frequencies("x", oracle="olh-seeded"), epsilon=1.0, people=PEOPLE)


def _items() -> sv.Plan:
    schema = sv.Schema(items=sv.Items([f"i{k}" for k in range(12)]))
    return sv.plan(schema, sv.TopItems("items", top=3), epsilon=2.0, people=PEOPLE)


def _sql() -> sv.Plan:
    schema = sv.Schema(x=sv.Ordinal(0, 63, bins=64), y=sv.Categorical(range(4)))
    return sv.plan(schema, sv.Queries(["x", "y"]), epsilon=2.0, people=PEOPLE)


PLANS: Mapping[str, Callable[[], sv.Plan]] = {
    "olh": _olh,
    "olh-seeded": _seeded,
    "latent": lambda: _marginals("latent"),
    "joint": lambda: _marginals("joint"),
    "windows": lambda: _popular("windows", 32, width=20),
    "pem": lambda: _popular("pem", 24),
    "items": _items,
    "sql": _sql,
}


@cache
def plan_of(name: str) -> sv.Plan:
    return PLANS[name]()


def people(plan: sv.Plan, seed: int) -> dict[str, Any]:
    """Records of ``PEOPLE``, some values more frequent than others."""
    draws = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for name, attribute in plan.schema.items():
        low = draws.integers(0, 4, PEOPLE)
        if isinstance(attribute, sv.Boolean):
            columns[name] = low == 0
        elif isinstance(attribute, sv.Items):
            columns[name] = [[f"i{k}", f"i{k + 4}"] for k in low]
        else:
            columns[name] = low
    return columns


@cache
def reports_of(plan: sv.Plan) -> sv.Reports:
    return sv.simulate(plan, people(plan, 1), seed=1)


def put_files(store: ObjectStore, plan: sv.Plan, reports: sv.Reports) -> str:
    """The same in an object store; the URL of its folder."""
    with TemporaryDirectory() as folder:
        write_files(Path(folder), plan, reports)
        for file in Path(folder).iterdir():
            store.objects[f"collected/reports/{file.name}"] = file.read_bytes()
    return store.url.replace("/collected?", "/collected/reports?")


def write_files(folder: Path, plan: sv.Plan, reports: sv.Reports) -> None:
    """Reports in ``FILES`` files of several row groups each."""
    size = -(-len(reports) // FILES)
    for number in range(FILES):
        part = reports[number * size : (number + 1) * size]
        groups = [part[start : start + GROUP] for start in range(0, len(part), GROUP)]
        write_stream(folder / f"{plan.id[:8]}-{number}.parquet", groups)
