"""A collector and the keys of shuffled surveys: what it could never hear is refused, and said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.cli import run
from sottovoce.cli.collector_keys import notes_on_surveys
from sottovoce.ground.errors import InvalidInput
from sottovoce.service.survey_service import SurveyService
from sottovoce.store import Store, open_store
from tests.shuffle.plans import SCHEMA, keys, shuffled_plan

KEYS = keys()
PLAN = shuffled_plan(KEYS, people=60, least=40, fakes=6)


@pytest.fixture
def survey(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/survey.db") as made:
        yield made


def test_a_collector_needs_its_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.json").write_text(PLAN.to_json())
    key = tmp_path / "hop.key"
    key.write_text(f"sottovoce private key 1 {KEYS[0].raw.hex()}\n")
    key.chmod(0o600)
    serving = ["serve", str(tmp_path / "plan.json"), "--store", f"sqlite:///{tmp_path}/survey.db"]
    assert run(serving) == 2
    assert "key is required" in capsys.readouterr().err
    assert run([*serving, "--key", str(key)]) == 2
    assert "as a shuffler's" in capsys.readouterr().err
    assert not (tmp_path / "survey.db").exists()


def test_a_collector_takes_no_plan_for_which_nothing_is_sealed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keyless = shuffled_plan([])
    (tmp_path / "plan.json").write_text(keyless.to_json())
    for command in ("serve", "studio"):
        serving = [command, str(tmp_path / "plan.json"), "--store", f"sqlite:///{tmp_path}/s.db"]
        assert run(serving) == 2
        told = capsys.readouterr().err
        assert f"plan {keyless.id[:16]} is shuffled and names no keys of shufflers" in told
    assert not (tmp_path / "s.db").exists()


def test_a_collector_says_at_its_start_which_surveys_will_hear_nobody(survey: Store) -> None:
    plans = {
        "keyless": shuffled_plan([]),
        "ours": PLAN,
        "another's": shuffled_plan(keys(2, seed=50)),
        "local": sv.plan(SCHEMA, sv.Frequencies("drinks"), epsilon=1, people=100),
        "closed": shuffled_plan([], people=301),
    }
    for name, plan in plans.items():
        survey.add_plan(plan, sv.Texts(name))
    survey.close_survey(plans["closed"].id)

    def told(key: str | None, *, has_pages: bool, shuffler: str | None = None) -> str:
        notes = notes_on_surveys(survey.entries(), key, has_pages=has_pages, shuffler=shuffler)
        return "\n".join(notes)

    ours = told(KEYS[-1].public, has_pages=False)
    for name, is_named in (("keyless", True), ("another's", True), ("ours", False)):
        assert (plans[name].id[:16] in ours) == is_named
    assert "needs the public keys" in ours
    assert "the last key must be this collector's" in ours
    assert "start it with --key FILE" in told(None, has_pages=False)
    assert "--shuffler URL" not in ours
    assert "--shuffler URL" in told(KEYS[-1].public, has_pages=True)
    known = told(KEYS[-1].public, has_pages=True, shuffler="http://127.0.0.1:1")
    assert known == ours
    for name in ("local", "closed"):
        assert plans[name].id[:16] not in told(None, has_pages=True)


@pytest.mark.parametrize("name", ["keyless", "another's", "ours, without a key"])
def test_a_survey_that_would_hear_nobody_is_not_made(survey: Store, name: str) -> None:
    hops, key, rule = {
        "keyless": ([], KEYS[-1].public, "needs the public keys"),
        "another's": (keys(2, seed=50), KEYS[-1].public, "the last key must be"),
        "ours, without a key": (KEYS, None, "start it with --key FILE"),
    }[name]
    service = SurveyService(survey, key=key)
    with pytest.raises(InvalidInput, match=rule):
        service.create(shuffled_plan(hops))
    assert survey.entries() == []
    assert SurveyService(survey, key=KEYS[-1].public).create(PLAN).people == 0
