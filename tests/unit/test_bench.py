"""The bench judges by its own rules; what it says must be right, whatever the machine."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bench import (
    engine_child,
    engines,
    folding,
    marginal_speed,
    pieces,
    plain,
    planning,
    popular,
    popular_speed,
    processes,
    query_speed,
    speed,
    whispering,
)
from bench.__main__ import RUNNERS, main
from bench.published import IMPORTS, PUBLISHED
from bench.resident import Above
from bench.rows import GROUPS, Row, show, shown
from bench.timing import Timing, child, measure
from sottovoce.engine import LocalEngine

TINY = speed.Size(people=500, many=500, values=16, sizes=(16,), repeats=2, sample=50)


def row(**changes: object) -> Row:
    fields = {
        "group": "olh",
        "what": "a case",
        "unit": "s",
        "measured": Timing(0.1, 0.2, 5),
        **changes,
    }
    return Row(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, ""),
        ({"limit": 0.1}, "PASS"),
        ({"limit": 0.0999}, "FAIL"),
        ({"times": 20}, ""),  # nothing to compare with
        ({"times": 20, "published": 2.0}, "PASS"),
        ({"times": 20, "published": 1.9}, "FAIL"),
        ({"times": 20, "published": 2.0, "peer": 1.9}, "FAIL"),  # the peer of this run counts
        ({"times": 20, "published": 1.9, "peer": 2.0}, "PASS"),
    ],
)
def test_a_row_passes_by_its_limit_or_by_its_peer(changes: dict[str, float], verdict: str) -> None:
    assert row(**changes).verdict == verdict


def test_a_row_shows_its_target_and_ratios() -> None:
    assert row(limit=0.05).target == "<= 50 ms"
    assert row(times=1000).target == ">= 1,000x peer"
    assert row(times=20, unit="MiB").target == "<= 1/20 peer"
    data = row(published=54.0, plain=1.0).to_json()
    assert data["published_ratio"] == pytest.approx(540)
    assert data["plain_ratio"] == pytest.approx(10)
    assert data["peer_ratio"] is None


def test_figures_have_fitting_units() -> None:
    assert [shown(figure, "s") for figure in (540.0, 0.0123, 8.58e-6)] == [
        "540 s",
        "12.3 ms",
        "8.58 us",
    ]
    assert shown(15.14, "MiB") == "15.1 MiB"
    assert shown(0.0, "MiB") == "0 MiB"


def test_published_figures_scale_with_reports_and_values() -> None:
    assert PUBLISHED["olh"].server_for(1_000_000, 1024) == pytest.approx(540)
    assert PUBLISHED["ss"].above == 510 - IMPORTS


def test_every_group_has_a_runner() -> None:
    assert list(RUNNERS) == list(GROUPS)


def test_tiny_groups_run_and_show() -> None:
    rows = [*speed.hashing(TINY, {}), *speed.device(TINY, {}), *speed.likelihood(TINY, {})]
    assert {found.group for found in rows} == {"olh", "device", "likelihood"}
    assert any(found.unit == "times" and "with weights" in found.what for found in rows)
    exact = next(found for found in rows if found.unit == "wrong")
    assert exact.verdict == "PASS"
    out = io.StringIO()
    show(Console(file=out, width=170), rows)
    assert "differs from brute force" in out.getvalue()
    assert json.loads(json.dumps([found.to_json() for found in rows]))[0]["group"] == "olh"


def test_the_brute_force_check_sees_a_wrong_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    from sottovoce.oracles.hashing import LocalHashing

    right = LocalHashing.support_of
    monkeypatch.setattr(LocalHashing, "support_of", lambda *arguments: right(*arguments) + 1)
    wrong, cases = speed.brute_force_differences()
    assert wrong == cases


def test_plain_numpy_computes_what_it_stands_for() -> None:
    heard = np.array([0.4, 0.35, 0.25])
    dense = plain.dense_em(heard, 1.0, 300)
    assert dense.sum() == pytest.approx(1)
    p, q = plain.response_chances(3, 1.0)
    assert q + (p - q) * dense == pytest.approx(heard, abs=1e-6)
    assert plain.em_iterations(heard, 1.0) <= 10_000
    seeds = np.arange(64, dtype=np.uint64)
    counts = sum(
        plain.hashing_server(seeds, np.full(64, answer, np.uint64), 5, 4) for answer in range(4)
    )
    assert counts.tolist() == [64] * 5  # every report supports each value under exactly one answer


def test_planning_is_measured_with_empty_caches_and_its_own_sources(tmp_path: Path) -> None:
    from sottovoce.questions.marginals.models.designs import drawn

    drawn(9, 2, 5)
    planning.forget()
    assert drawn.cache_info().currsize == 0
    (found,) = planning.planning(None, {}, names=("few",), repeats=1)
    assert found.group == "planning"
    assert found.measured.best > 0
    assert (found.peer is None) == (planning.before() is None)
    with pytest.raises((RuntimeError, subprocess.CalledProcessError)):
        planning.measured("few", 1, tmp_path)  # no sources there


def test_memory_of_a_child_is_above_its_imports() -> None:
    held = child("bench.crowd_child", "held", "oue", "40000", "1024")["above"]
    assert 40_000 * 128 / 2**20 * 0.9 < held < 32
    assert child("bench.crowd_child", "batches", "oue", "40000", "1024")["above"] < held
    assert Above().mib() < 1


def test_a_file_streams_in_its_own_process() -> None:
    rows = list(processes.stream(None, {}, few=1000, many=2000))
    assert rows[-1].verdict == "PASS"


def test_pieces_are_weighed() -> None:
    shape = pieces.PieceShape(parts=2, blocks=1, bits=(17,))
    rows = {found.what.split(": ")[1]: found for found in pieces.pieces(None, {}, shape)}
    assert rows["gathered tables that differ"].measured.best == 0
    assert 0 < rows["largest piece"].measured.best <= rows["pieces of a part"].measured.best < 1
    assert all(found.passed is not False for found in rows.values())


def test_engines_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def child(*command: object) -> dict[str, object]:
        engine, kind, bits, people, folder = map(str, command)
        asked.append([engine, kind, bits])
        return engine_child.measured(LocalEngine(1), kind, int(bits), int(people), folder)

    monkeypatch.setattr(engines, "_child", child)
    monkeypatch.setattr(engines, "has_spark", lambda: True)
    shape = engines.EngineShape(people=3000, bits=8, large=10, large_people=1000)
    rows = list(engines.engines(None, {}, shape))
    assert asked == [
        *([engine, "fold", "8"] for engine in ("local", "threads", "spark")),
        ["spark", "simulate", "8"],
        ["spark", "simulate", "10"],
    ]
    assert [found.measured.best for found in rows if found.unit == "wrong"] == [0, 0]
    monkeypatch.setattr(engines, "has_spark", lambda: False)
    assert list(engines.engines(None, {}, shape)) == []


def test_folding_is_timed_in_memory_and_from_files() -> None:
    shape = folding.FoldShape(blocks=1, copies=1, repeats=1, bits=8, cases=("signs", "olh"))
    rows = list(folding.folding(None, {}, shape))
    assert {found.group for found in rows} == {"folding"}
    assert [found.unit for found in rows] == ["ns", "ns", "times"] * 2
    assert all(found.measured.best > 0 for found in rows)
    assert {folding.case_of(name, shape).limit for name in folding.CASES} == {15, 45, 60, 200}


def test_marginals_are_timed_down_to_the_last_table() -> None:
    shape = marginal_speed.Shape(attributes=6, hashed=4, k=3, people=2000, queries=3, repeats=1)
    rows = list(marginal_speed.marginals(None, {}, shape))
    assert {found.group for found in rows} == {"marginals"}
    assert [found.unit for found in rows[-2:]] == ["s", "MiB"]
    # they hold for the default shape; here a start counts most
    assert all(found.limit is not None for found in rows)


def test_queries_are_timed_from_reports_to_the_next_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        query_speed,
        "child",
        # no process of its own
        lambda _, name, people, size: query_speed.case(name, int(people), int(size)),
    )
    monkeypatch.setattr(query_speed, "NEXT", 1)
    shape = query_speed.Shape(people=3000, size=32, many=3000, square=8)
    rows = list(query_speed.queries(None, {}, shape))
    assert {found.group for found in rows} == {"queries"}
    assert [found.unit for found in rows] == [*"ssssss", "MiB", *"ssss"]
    assert all(found.limit is not None for found in rows)


def test_what_is_popular_is_timed_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: popular_speed.CASES[name] for name in ("pem-48", "svim")}
    monkeypatch.setattr(popular_speed, "CASES", few)
    rows = list(popular_speed.popular(None, {}, people=3000, baskets=2000))
    assert {found.group for found in rows} == {"popular"}
    assert [(found.unit, found.limit) for found in rows] == [
        ("s", 20.0),
        ("MiB", 2048.0),
        ("s", 5.0),
    ]


def test_popular_values_are_measured_point_by_point(tmp_path: Path) -> None:
    tasks = [
        popular.Task("values", "exponential-64", top, ("2", "4"), ("pem", "genie"), 1, 3000)
        for top in (16, 32)
    ]
    out = tmp_path / "points.jsonl"
    said: list[str] = []
    popular.run(out, said.append, tmp_path, tasks)
    assert len(said) == len(out.read_text().splitlines()) == 8
    popular.run(out, said.append, tmp_path, tasks)
    assert len(said) == 8  # nothing is measured twice
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {line["source"] for line in lines} == {"exponential-64"}
    assert all(line["runs"] == 1 and line["people"] == 3000 for line in lines)


def test_measure_warms_up_and_repeats() -> None:
    calls: list[int] = []
    assert measure(lambda: calls.append(1), 3).repeats == 3
    assert len(calls) == 4


def test_an_unknown_group_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["nothing"])
    assert stopped.value.code == 2
    assert "group (nothing) must be one of olh, crowd" in capsys.readouterr().err


def test_a_file_is_whispered_with_and_without_a_seed() -> None:
    rows = list(whispering.whispering(people=1000, repeats=1))
    assert [row.what.rsplit(", ", 1)[1] for row in rows] == [
        "the system's coins",
        "with a seed",
    ] * 3
    assert all(row.measured.best > 0 for row in rows)
