"""What plans, aggregates, trees and findings show in a notebook."""

from __future__ import annotations

import numpy as np

import sottovoce as sv

PEOPLE = 6000
HOSTILE = "<i>tea\u202e"


def survey() -> tuple[sv.Plan, sv.Aggregate]:
    schema = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", HOSTILE]), c=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=4.0, people=PEOPLE)
    a = np.arange(PEOPLE) % 2 == 0
    people = {
        "a": a,
        "b": np.where(a, HOSTILE, "x").astype(object),
        "c": np.arange(PEOPLE) % 3 == 0,
    }
    return plan, sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1))


def test_a_plan_shows_the_lines_of_its_text() -> None:
    plan, _ = survey()
    title, *lines = str(plan).splitlines()
    page = plan._repr_html_()
    assert f"<caption>{title}</caption>" in page
    assert page.count("<tr>") == len(lines)
    assert "<th>Guarantee</th>" in page


def test_an_aggregate_says_how_many_it_holds() -> None:
    plan, total = survey()
    assert repr(total) == f"<Aggregate of plan {plan.id[:16]}: 6,000 people>"
    assert "6,000, of 6,000 expected" in total._repr_html_()
    assert repr(sv.Aggregate(plan)).endswith(": 0 people>")


def test_a_tree_nests_attributes_and_marks_doubt() -> None:
    _, total = survey()
    tree = sv.dependency_tree(total)
    page = tree._repr_html_()
    assert page.count("<li>") == page.count("</li>") == len(tree.edges)
    assert page.count("<ul>") == page.count("</ul>")
    assert page.count("(may be noise)") == str(tree).count("(may be noise)") == 1
    assert "nats in all" in page


def test_findings_have_their_stars_and_no_markup_of_values() -> None:
    plan = sv.plan(
        sv.Schema(word=sv.Text(bytes=4)), sv.HeavyHitters("word", top=3), epsilon=4.0, people=PEOPLE
    )
    typed = np.array(["<i>", "jam"], object)[np.arange(PEOPLE) % 2]
    found = sv.Aggregate(plan).add(sv.simulate(plan, {"word": typed}, seed=1)).estimate()
    assert isinstance(found, sv.Findings)
    page = found._repr_html_()
    assert page.count(" *</td>") == int(found.significant().sum()) == 2
    assert "* significant" in page
    assert "<i>" not in page
    assert "&lt;i&gt;" in page
    assert page.count("<svg") == len(found.table)
