"""The plan that comes of a survey, with what an analyst wants to know before anybody is asked."""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from sottovoce.api.surveys import POPULAR, Survey
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals import Marginals
from sottovoce.questions.marginals.planner import best_of, ranking
from sottovoce.service.planning import Planning
from sottovoce.studio.background_jobs import BackgroundJobs

Z = 1.96  # standard errors on each side of a 95% interval


@dataclass(frozen=True)
class Prediction:
    """How well something will be known: the standard error of a share."""

    what: str
    error: float


@dataclass(frozen=True)
class Design:
    """A plan and how well it will do."""

    plan: str  # as JSON
    id: str
    words: str
    method: str
    errors: list[Prediction]  # the worst first
    others: list[Prediction]  # of other methods
    guess: float  # that a guess of 50% can rise to

    def to_json(self) -> dict[str, Any]:
        """What the page shows while it is filled in."""
        parts = asdict(self)
        del parts["plan"]
        worst = self.errors[0].error
        return {**parts, "error": worst, "reach": Z * worst}


def design(body: dict[str, Any]) -> Design:
    """Plan a survey. With tables, every method is predicted once and the best one planned."""
    survey = Survey.parse(body)
    question = survey.question
    if not isinstance(question, Marginals):
        plan = survey.plan()
        if isinstance(question, POPULAR):
            return _designed(plan, str(plan.question.to_json()["method"]), [_popular(plan)], [])
        return _designed(plan, ", ".join(_oracles(plan)), _each(plan), [])
    work = question.work(survey.schema)
    choices = ranking(work, Terms.of(survey.epsilon, survey.people))
    cells = sum(work.cells(each) for each in work.sample) / len(work.sample)
    ranked = [Prediction(choice.method.name, sqrt(choice.error / cells)) for choice in choices]
    named = Marginals(question.up_to, question.attributes, method=best_of(choices).method.name)
    plan = Survey(survey.schema, named, survey.epsilon, survey.people, coin=survey.coin).plan()
    method = str(plan.question.to_json()["method"])
    own = [Prediction("a cell of a table", each.error) for each in ranked if each.what == method]
    return _designed(plan, method, own, [each for each in ranked if each.what != method])


def _oracles(plan: Plan) -> list[str]:
    asks = [ask for index in range(len(plan.cohorts)) for ask in plan.cohorts[index].asks]
    return sorted({ask.oracle.names[0] for ask in asks})


def _popular(plan: Plan) -> Prediction:
    """The standard error of a value that was found, if everybody of the round tells about it."""
    return Prediction("a popular value", sqrt(plan.cohorts[0].asks[0].oracle.variance(plan.round_people)))


def _each(plan: Plan) -> list[Prediction]:
    """The standard error of a rare value, by attribute."""
    found = []
    for index in range(len(plan.cohorts)):
        for ask in plan.cohorts[index].asks:
            error = sqrt(ask.oracle.variance(plan.cohort_people(index)))
            found.append(Prediction(ask.encoding.attributes[0], error))
    return sorted(found, key=lambda each: -each.error)


def _designed(plan: Plan, method: str, errors: list[Prediction], others: list[Prediction]) -> Design:
    guess = plan.guarantee.best_guess(0.5)
    return Design(plan.to_json(), plan.id, str(plan), method, errors, others, guess)


def ask_design(jobs: BackgroundJobs, planning: Planning, body: dict[str, Any]) -> Future[Design]:
    """A design, made where plans are and kept with the background jobs; what was shown is what is taken."""
    key = ("design", json.dumps(body, sort_keys=True))
    return jobs.keep(key, lambda: planning.submit(design, body))
