"""The plan that comes of a survey, with what an analyst wants to know before anybody is asked."""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

from sottovoce.api.surveys import Survey
from sottovoce.protocol.guarantee import Promise
from sottovoce.protocol.plan import Plan
from sottovoce.questions.base import predicted
from sottovoce.questions.prediction import Figure
from sottovoce.service.planning import Planning
from sottovoce.studio.background_jobs import BackgroundJobs

Z = 1.96  # standard errors on each side of a 95% interval


@dataclass(frozen=True)
class SurveyDesign:
    """A plan and how well it will do."""

    plan: str  # as JSON
    id: str
    words: str
    method: str
    # by attribute, the worst first; of tables by kind, shares of one attribute first
    errors: list[Figure]
    others: list[Figure]  # of other methods that could have been chosen
    promises: list[Promise]  # what a guess of 50% can rise to, adversary by adversary

    def to_json(self) -> dict[str, Any]:
        """What the page shows while it is filled in."""
        parts = asdict(self)
        del parts["plan"]
        worst = self.errors[0].largest
        return {**parts, "error": worst, "reach": Z * worst}


def design(body: dict[str, Any]) -> SurveyDesign:
    """Plan a survey. Where methods compete, each is predicted once and the best one planned."""
    plan = Survey.parse(body).plan()
    found = predicted(plan)
    promises = plan.guarantee.promises
    methods = ", ".join(found.methods)
    return SurveyDesign(
        plan.to_json(), plan.id, str(plan), methods, list(found.figures), _others(plan), promises
    )


def _others(plan: Plan) -> list[Figure]:
    """What other methods would have done."""
    ranks = [rank for rank in plan.question.rank(plan) if not rank.chosen]
    return [Figure(rank.method, rank.per_cell) for rank in ranks if rank.per_cell is not None]


def ask_design(
    jobs: BackgroundJobs, planning: Planning, body: dict[str, Any]
) -> Future[SurveyDesign]:
    """A design, made where plans are and kept with the jobs; what was shown is what is taken."""
    key = ("design", json.dumps(body, sort_keys=True))
    return jobs.keep(key, lambda: planning.submit(design, body))
