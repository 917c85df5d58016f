"""One collector for all tests that can share one, and a survey of which everything is drawn: both
take a while.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

import sottovoce as sv
from sottovoce.protocol.plan import Plan
from tests.studio.collectors import Collector, collecting
from tests.waiting import HANG, until

CHARTS = 4 + 1 + 6  # of each attribute, of the tree, of each pair


@pytest.fixture(scope="session")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("studio")) as made:
        yield made


@pytest.fixture(scope="session")
def drawn(collector: Collector) -> Plan:
    """A survey with people, of which everything is drawn."""
    plan = collector.survey(
        sv.Marginals(up_to=2, method="inp-ht"),
        people=20_000,
        epsilon=4.0,
        title="Habits in our town",
    )
    collector.hear(plan, 20_000)
    page = f"{collector.studio}/watch/{plan.id}"

    def is_drawn() -> bool:
        text = httpx.get(page, timeout=HANG).text
        return "Strongest associations" in text and text.count("<svg") >= CHARTS

    until(is_drawn)
    return plan


@pytest.fixture(scope="module")
def browser(collector: Collector) -> Iterator[httpx.Client]:
    """Somebody at this computer, whose forms say where they come from."""
    with httpx.Client(
        base_url=collector.studio, headers={"Origin": collector.url}, timeout=HANG
    ) as client:
        yield client
