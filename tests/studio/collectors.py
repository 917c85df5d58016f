"""A real collector with the studio, on a port of its own, and crowds for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.protocol.plan import Plan
from sottovoce.service.app import make_app
from sottovoce.service.settings import Settings
from sottovoce.service.survey_service import SurveyService
from sottovoce.service.tokens import new_token
from sottovoce.store import open_store
from sottovoce.studio.access import Access, cookie_name
from sottovoce.studio.app import add_studio
from tests.serving import serving
from tests.shuffle.plans import keys

HOPS = keys()  # of some shufflers, and of these collectors

SCHEMA = sv.Schema(
    smoker=sv.Boolean(),
    drinks=sv.Categorical(["never", "weekly", "daily"]),
    age=sv.Ordinal(18, 97, bins=4),
    exercise=sv.Boolean(),
)


@dataclass(frozen=True)
class Collector:
    """A running collector."""

    url: str
    service: SurveyService
    access: Access

    @property
    def studio(self) -> str:
        return f"{self.url}/studio"

    def survey(
        self,
        question: Any,
        people: int = 1000,
        epsilon: float = 2.0,
        title: str = "",
        **options: Any,
    ) -> Plan:
        """A new survey over the usual attributes."""
        texts = options.pop("texts", sv.Texts(title))
        plan = sv.plan(
            options.pop("schema", SCHEMA), question, epsilon=epsilon, people=people, **options
        )
        self.service.create(plan, texts)
        return plan

    def hear(self, plan: Plan, people: int, seed: int = 1) -> None:
        """Reports of so many people, who exist only here."""
        ids = np.frombuffer(b"".join(new_id() for _ in range(people)), np.uint8).reshape(-1, 16)
        self.service.store.append(plan, ids, sv.simulate(plan, crowd(people, seed), seed))


def crowd(people: int, seed: int) -> dict[str, Any]:
    """People whose habits go together."""
    draws = np.random.default_rng(seed)
    age = np.clip(draws.normal(50, 20, people), 18, 97).astype(int)
    smoker = draws.random(people) < np.where(age < 40, 0.45, 0.12)
    often = draws.choice(["never", "weekly", "daily"], people, p=[0.1, 0.45, 0.45])
    seldom = draws.choice(["never", "weekly", "daily"], people, p=[0.5, 0.4, 0.1])
    exercise = draws.random(people) < np.where(smoker, 0.2, 0.65)
    return {
        "smoker": smoker,
        "drinks": np.where(smoker, often, seldom),
        "age": age,
        "exercise": exercise,
    }


@contextmanager
def collecting(folder: Path, logged_in: bool = True, **settings: Any) -> Iterator[Collector]:
    """A collector that is there for so long, and takes every visitor for an analyst who has logged
    in, or nobody.
    """
    with open_store(f"sqlite:///{folder}/survey.db") as store:
        service = SurveyService(store, refresh_seconds=0.2, key=HOPS[-1].public)
        chosen = Settings(**({"refresh_seconds": 0.5} | settings))
        app = make_app(service, chosen)
        access = add_studio(app, service, chosen.address, chosen.shuffler, chosen.language)
        served = as_analyst(app, new_token(store, "tests")) if logged_in else app
        with serving(served) as port:
            yield Collector(f"http://127.0.0.1:{port}", service, access)


def as_analyst(app: ASGIApp, token: str) -> ASGIApp:
    """Adds the cookie of somebody who has logged in to every request, as her browser would."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            cookie = f"{cookie_name(Request(scope))}={token}".encode()
            scope = {**scope, "headers": [*scope["headers"], (b"cookie", cookie)]}
        await app(scope, receive, send)

    return served
