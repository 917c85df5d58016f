"""The laws that a question of another package obeys, on a survey that asks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.api.planning import plan
from sottovoce.api.surveys import Survey
from sottovoce.audit.laws import alike, must
from sottovoce.audit.method_laws import CASE_DRAWS, CASE_WAYS
from sottovoce.audit.part_checks import PartCheck, checked_laws
from sottovoce.audit.plans import audit_plan
from sottovoce.audit.records import values_of
from sottovoce.audit.repeated import REPEATS, RepeatedTable, is_off, variance_ratio, worst_bias
from sottovoce.device.simulation import simulate
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question, predicted
from sottovoce.questions.marginals.estimate import labels_of
from sottovoce.results.estimate import Estimate, Floats, Table
from sottovoce.schema import CODE, MEMBERS, Items
from sottovoce.schema.attribute import Single

QUESTION_PEOPLE = 3000
MAX_MADE_UP_VALUES = 16  # of an attribute, that made-up people hold
CLEARER = 4  # times the survey's epsilon, at which the same crowd is asked to compare
CLEAREST = 16  # the largest epsilon to compare at


@dataclass(frozen=True, eq=False)
class QuestionCase:
    """A survey that asks a question, and people who were made up."""

    survey: Survey

    @property
    def question(self) -> Question:
        return self.survey.question

    @cached_property
    def terms(self) -> Terms:
        return Terms.of(self.survey.epsilon, self.survey.people)

    @cached_property
    def plan(self) -> Plan:
        return self._planned(self.terms.epsilon)

    def _planned(self, epsilon: Any) -> Plan:
        people = self.survey.people
        return plan(self.survey.schema, self.question, epsilon=epsilon, people=people)

    @cached_property
    def people(self) -> dict[str, list[Any]]:
        """Of every attribute some values, the first ones more often."""
        draws = np.random.default_rng(1)
        out = {}
        for name, attribute in self.survey.schema.items():
            form = MEMBERS if isinstance(attribute, Items) else CODE
            values = values_of(attribute, form, MAX_MADE_UP_VALUES)
            places = (draws.random(QUESTION_PEOPLE) ** 2 * len(values)).astype(np.int64)
            out[name] = [values[place] for place in places.tolist()]
        return out

    def aggregate(self, made: Plan, seed: int) -> Aggregate:
        return Aggregate(made).add(simulate(made, self.people, seed))

    @cached_property
    def estimate(self) -> Estimate:
        return self.aggregate(self.plan, 1).estimate()

    def truth(self, table: Table) -> Floats | None:
        """The true frequencies of a table whose cells are all values of single attributes; None of
        other tables, whose cells only the question knows.
        """
        schema = self.survey.schema
        known = [schema[name] for name in table.attributes if isinstance(schema.get(name), Single)]
        sizes = [each.size for each in known]
        if len(known) < len(table.attributes) or prod(sizes) != len(table.labels):
            return None
        if list(table.labels) != list(labels_of(schema, table.attributes)):
            return None
        codes = [
            [attribute.code(value) for value in self.people[name]]
            for name, attribute in zip(table.attributes, known, strict=True)
        ]
        places = np.ravel_multi_index(np.array(codes), sizes)
        counts = np.bincount(places, minlength=prod(sizes))
        return np.asarray(counts / QUESTION_PEOPLE)

    @cached_property
    def runs(self) -> dict[tuple[str, ...], tuple[RepeatedTable, RepeatedTable]]:
        """Of every unbiased table: as it was asked, and at a larger epsilon."""
        tables = {
            names: (RepeatedTable(), RepeatedTable())
            for names, table in self.estimate.tables.items()
            if table.is_unbiased and table.is_complete
        }
        clearer = self._planned(min(self.terms.epsilon * CLEARER, CLEAREST))
        for seed in range(1, REPEATS + 1) if tables else ():
            for place, made in enumerate((self.plan, clearer)):
                found = self.aggregate(made, seed).estimate()
                for names, both in tables.items():
                    both[place].add(found.tables[names])
        return tables


def a_plan_holds_what_the_survey_says(case: QuestionCase) -> None:
    question = case.plan.question
    stored = json.loads(json.dumps(question.to_json()))
    must(type(question).from_json(stored) == question, "to_json and from_json are not inverse")
    must(
        question.settled(case.survey.schema, case.terms) == question,
        "a settled question is settled in another way again",
    )


def plans_are_read_back_as_they_were_written(case: QuestionCase) -> None:
    read = Plan.from_json(case.plan.text)
    must(read.question == case.plan.question, "the question that is read back is another one")
    must(read.cohorts == case.plan.cohorts, "the cohorts that are read back are other ones")


def it_asks_about_what_it_says(case: QuestionCase) -> None:
    named = set(case.question.attributes_in(case.survey.schema))
    asked = set(case.plan.cohorts.attributes)
    must(asked <= named, f"attributes_in leaves out {', '.join(sorted(asked - named))}")


def one_report_costs_at_most_epsilon(case: QuestionCase) -> str:
    found = audit_plan(case.plan, CASE_DRAWS, seed=bytes(16), limit=CASE_WAYS)
    must(found.passed, "; ".join(found.faults))
    return found.kind


def it_is_told_in_words(case: QuestionCase) -> None:
    lines = case.plan.question.explain(case.plan)
    must(lines and all(isinstance(line, str) for line in lines), "explain must give lines of text")
    predicted(case.plan)  # which must not fail


def answers_are_tables_of_numbers(case: QuestionCase) -> None:
    estimate = case.estimate
    must(estimate.people == QUESTION_PEOPLE, f"{estimate.people} people are not who was heard")
    must(estimate.tables, "there is no table")
    for names, table in estimate.tables.items():
        told = ", ".join(names)
        size = len(table.labels)
        must(table.values.shape == table.variances.shape == (size,), f"{told}: shapes differ")
        must(np.isfinite(table.values).all(), f"{told}: a frequency is not finite")
        is_fine = np.isfinite(table.variances).all() and (table.variances >= 0).all()
        must(is_fine, f"{told}: variances must be finite and at least 0")
        low, high = table.interval(0.95)
        must((low <= high).all(), f"{told}: an interval ends before it begins")
        json.dumps(table.to_json())


def the_same_reports_give_the_same_tables(case: QuestionCase) -> None:
    reports = simulate(case.plan, case.people, 1)
    whole = Aggregate(case.plan).add(reports)
    again = whole.estimate()
    two = Aggregate(case.plan).merge(whole)
    for names, table in case.estimate.tables.items():
        told = ", ".join(names)
        alike(table.values, again.tables[names].values, f"{told}: another table each time")
        merged = two.estimate().tables[names]
        alike(table.values, merged.values, f"{told}: another table once it is merged")


def nobody_is_refused(case: QuestionCase) -> None:
    try:
        Aggregate(case.plan).estimate()
    except InvalidInput:
        return
    must(False, "an estimate of nobody's reports must be refused: aggregate.require_people()")


def unbiased_tables_do_not_depend_on_epsilon(case: QuestionCase) -> str:
    for names, (own, clearer) in case.runs.items():
        distance, limit = worst_bias(own, clearer.mean(), clearer.error())
        told = ", ".join(names)
        must(distance <= limit, f"{told}: a value is off by {distance:.1f} standard errors")
    return _said(case)


def unbiased_tables_of_attributes_are_right_on_average(case: QuestionCase) -> str:
    known = {names: case.truth(case.estimate.tables[names]) for names in case.runs}
    truths = {names: truth for names, truth in known.items() if truth is not None}
    for names, truth in truths.items():
        distance, limit = worst_bias(case.runs[names][0], truth)
        told = ", ".join(names)
        must(distance <= limit, f"{told}: a value is off by {distance:.1f} standard errors")
    return f"{len(truths)} tables" if truths else "no table lists the values of attributes"


def unbiased_tables_err_as_they_say(case: QuestionCase) -> str:
    for names, (own, _) in case.runs.items():
        # about its own mean, which is one run's worth nearer than the truth
        ratio = variance_ratio(own, own.mean())
        must(
            not is_off(ratio, own.runs), f"{', '.join(names)}: measured over stated is {ratio:.3g}"
        )
    return _said(case)


def _said(case: QuestionCase) -> str:
    return f"{len(case.runs)} tables" if case.runs else "no table is said to be unbiased"


QuestionLaw = Callable[[QuestionCase], str | None]
QUESTION_LAWS: tuple[QuestionLaw, ...] = (
    a_plan_holds_what_the_survey_says,
    plans_are_read_back_as_they_were_written,
    it_asks_about_what_it_says,
    one_report_costs_at_most_epsilon,
    it_is_told_in_words,
    answers_are_tables_of_numbers,
    the_same_reports_give_the_same_tables,
    nobody_is_refused,
    unbiased_tables_do_not_depend_on_epsilon,
    unbiased_tables_of_attributes_are_right_on_average,
    unbiased_tables_err_as_they_say,
)


def check_question(survey: Survey, progress: Callable[[int], None] | None = None) -> PartCheck:
    """Check every law that a question obeys, on a survey that asks it; keep it small.

    >>> check_question(Survey.parse({"epsilon": "1", "people": 3000,
    ...     "schema": {"x": {"kind": "categorical", "values": ["a", "b", "c"]}},
    ...     "question": {"kind": "frequencies", "attributes": ["x"]}})).passed
    True
    """
    case = QuestionCase(survey)
    about = f"{QUESTION_PEOPLE:,} people, epsilon {case.terms.epsilon}"
    laws = checked_laws(QUESTION_LAWS, case, progress)
    return PartCheck(f"question {survey.question.kind}", about, laws)
