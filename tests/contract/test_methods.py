"""One suite of laws for every method for marginals."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from sottovoce.audit.method_laws import (
    METHOD_LAWS,
    MethodCase,
    method_case,
    one_report_costs_at_most_epsilon,
)
from sottovoce.questions.marginals.methods import METHODS

# what a report costs is enumerated for each method in tests/exact/test_marginal_plans.py
LAWS = [law for law in METHOD_LAWS if law is not one_report_costs_at_most_epsilon]


@cache
def case_of(name: str) -> MethodCase:
    return method_case(name)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", [each.name for each in METHODS])
def test_law_of_a_method(name: str, law: Any) -> None:
    law(case_of(name))
