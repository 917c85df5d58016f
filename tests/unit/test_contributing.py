"""The examples of CONTRIBUTING.md, run as they stand: a method for marginals in a file, a question
in a folder.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.protocol import question_forms
from sottovoce.questions.marginals import methods
from sottovoce.questions.marginals.methods import METHODS
from tests.statistics import z_limit

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()


def loaded(path: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example whose first line names this file, as a module."""
    block = re.search(rf"```python\n# {re.escape(path)}\n(.*?)```", TEXT, re.DOTALL)
    assert block is not None
    module = ModuleType("example_" + Path(path).parent.name)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(block[1], path, "exec", dont_inherit=True), module.__dict__)
    return module


def test_a_marginal_method_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    example: Any = loaded("src/sottovoce/questions/marginals/methods/products.py", monkeypatch)
    monkeypatch.setattr(methods, "METHODS", (*METHODS, example.Products()))
    schema = sv.Schema(a=sv.Boolean(), b=sv.Categorical("xyz"))
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="products"), epsilon=4, people=20_000)
    draws = np.random.default_rng(1)
    crowd = {
        "a": draws.random(20_000) < 0.3,
        "b": draws.choice(list("xyz"), 20_000, p=[0.5, 0.3, 0.2]),
    }
    estimate = (
        sv.Aggregate(sv.Plan.from_json(plan.text)).add(sv.simulate(plan, crowd, seed=1)).estimate()
    )
    table = estimate.marginal("a", "b")
    of_a = [np.mean(crowd["a"] == label) for label in (False, True)]
    of_b = [np.mean(crowd["b"] == label) for label in "xyz"]
    # the table's are wider: nobody was asked about the two together
    own = np.sqrt(estimate.fit.variances([(0, 1)])[0])
    scores = np.abs(table.values - np.outer(of_a, of_b).ravel()) / own
    # a tenth of these errors would be found out
    assert scores.max() < z_limit(len(scores)) < 10 * scores.max()
    assert np.all(own < table.std_error)
    assert table.never_asked == (("a", "b"),)
    assert estimate.marginal("a").never_asked == ()


def test_a_question_is_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    example: Any = loaded("src/sottovoce/questions/mean/__init__.py", monkeypatch)
    form = question_forms.QuestionForm("mean", ("attribute",), f"{example.__name__}:Mean")
    monkeypatch.setattr(question_forms, "QUESTIONS", (*question_forms.QUESTIONS, form))
    schema = sv.Schema(cups=sv.Ordinal(0, 5))
    plan = sv.plan(schema, example.Mean("cups"), epsilon=2, people=20_000)
    again = sv.Plan.from_json(plan.text, id=plan.id)  # as a device and a collector read it
    assert again.question == plan.question
    cups = np.random.default_rng(1).integers(0, 6, 20_000)
    table = sv.Aggregate(again).add(sv.simulate(again, {"cups": cups}, seed=1)).estimate().table
    score = abs(table.values[0] - cups.mean()) / table.std_error[0]
    assert score < z_limit(1)
    # it tells another mean apart
    assert abs(table.values[0] - (cups.mean() + 1)) > 5 * table.std_error[0]
    assert "the mean of cups" in str(plan)
