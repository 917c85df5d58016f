"""Every command of docs/report.md runs, in the order of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from tests.browser.machines import HAS_CHROMIUM
from tests.cli.helpers import Command

PAGE = Path(__file__).parents[2] / "docs" / "report.md"
PEOPLE = 4000


def commands() -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    return [line for kind, block in blocks if not kind for line in block.splitlines()]


def test_every_command_of_the_page_runs(
    sottovoce: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema = sv.Schema(
        smoker=sv.Boolean(),
        drinks=sv.Categorical(["never", "weekly", "daily"]),
        age=sv.Ordinal(18, 97, bins=4),
    )
    draw = np.random.default_rng(1)
    people = {
        "smoker": draw.random(PEOPLE) < 0.4,
        "drinks": draw.choice(["never", "weekly", "daily"], PEOPLE).astype(object),
        "age": draw.integers(18, 98, PEOPLE),
    }
    for wave, (name, files) in enumerate(
        {"plan": ("reports", "spring"), "autumn": ("autumn",)}.items()
    ):
        question = sv.Marginals(up_to=2, method="inp-ht")
        plan = sv.plan(schema, question, epsilon=4.0, people=PEOPLE + wave)
        Path(f"{name}.json").write_text(plan.to_json(), encoding="utf-8")
        for file in files:
            sv.simulate(plan, people, seed=wave + 1).write(f"{file}.parquet")
    regions = sv.Schema(smoker=sv.Boolean(), state=sv.Categorical(["NY", "WA"], sensitive=False))
    asked = sv.Frequencies("smoker")
    plan = sv.plan(regions, asked, epsilon=2.0, people=PEOPLE, public=["state"])
    states = np.where(people["smoker"], "NY", "WA").astype(object)
    Path("regions.json").write_text(plan.to_json(), encoding="utf-8")
    sv.simulate(plan, {**people, "state": states}, seed=3).write("regions.parquet")
    (margins,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    Path("margins.toml").write_text(margins, encoding="utf-8")
    listed = commands()
    assert len(listed) >= 8
    for line in listed:
        head, *arguments = shlex.split(line)
        assert head == "sottovoce"
        if "--pdf" in arguments and not HAS_CHROMIUM:
            continue
        done = sottovoce(*arguments, "-q")
        assert (done.code, done.err) == (0, ""), line
    assert Path("report.html").exists()
    assert sorted(path.name for path in Path("tables").iterdir())[0] == "drinks-age.csv"
