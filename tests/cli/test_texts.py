"""A survey's texts on their way from its file to its report and its collector."""

from __future__ import annotations

import json

from sottovoce.store import open_store
from tests.cli.helpers import SURVEY, Command, Files, refused

TEXTS = """
title = "Couleurs"
[texts]
language = "fr"
consent = "Rien d'autre ne sera gardé."
"""
QUESTION = 'question = "Quelle couleur ?"\n'


def survey_with_texts() -> str:
    """The survey in French: a question, a title, a consent."""
    title, texts = TEXTS.split("[texts]")
    named = SURVEY.replace("[schema.colour]\n", f"[schema.colour]\n{QUESTION}")
    return f"{title}{named}\n[texts]{texts}"


def test_texts_lie_beside_the_plan_and_reach_the_report(sottovoce: Command, files: Files) -> None:
    before = files.plan.read_bytes()
    files.survey.write_text(survey_with_texts(), encoding="utf-8")
    beside = files.folder / "plan.texts.json"
    done = sottovoce("plan", files.survey, "-o", files.plan)
    assert str(beside) in done.out
    assert files.plan.read_bytes() == before
    page = files.folder / "report.html"
    written = sottovoce("report", files.plan, files.reports, "-o", page, "-q")
    assert written.code == 0, written.err
    text = page.read_text(encoding="utf-8")
    for told in ("<h1>Couleurs</h1>", '<p class="asked" lang="fr">Quelle couleur ?</p>', "gardé"):
        assert told in text
    # of another plan they are refused
    told = json.loads(beside.read_text(encoding="utf-8"))
    beside.write_text(json.dumps({**told, "plan": "0" * 64}), encoding="utf-8")
    wrong = sottovoce("report", files.plan, files.reports, "-o", page, "-q")
    refused(wrong, "texts", "belong to another plan")
    beside.write_text("[]", encoding="utf-8")
    refused(sottovoce("report", files.plan, files.reports, "-o", page, "-q"), "texts", "no file")
    # and a survey that says nothing has none
    files.survey.write_text(SURVEY, encoding="utf-8")
    sottovoce("plan", files.survey, "-o", files.plan)
    assert not beside.exists()


def test_a_store_knows_the_texts_of_its_surveys(sottovoce: Command, files: Files) -> None:
    from sottovoce.console.reading import stored_texts
    from sottovoce.console.surveys import read_parts, read_plan

    files.survey.write_text(survey_with_texts(), encoding="utf-8")
    url = f"sqlite:///{files.folder}/survey.db"
    plan, texts = read_plan(files.plan), read_parts(files.survey).texts
    with open_store(url) as store:
        store.add_plan(plan, texts)
    assert stored_texts(plan, url) == texts
    assert not stored_texts(plan, str(files.reports))
