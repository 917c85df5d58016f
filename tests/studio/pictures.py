"""The documentation's pictures of the studio: ``python -m tests.studio.pictures`` makes
them anew.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.device.assignment import new_id
from tests.browser.machines import browsing
from tests.studio.browsers import visitor
from tests.studio.collectors import Collector, collecting, crowd
from tests.waiting import until

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
WIDE = 1200
PEOPLE = 41_237
REGIONS = ["north", "south", "east", "west"]
ROWS = (
    ("smoker", "yes or no", {}),
    ("drinks", "one of a list", {"Values": "never, weekly, daily"}),
    ("age", "a whole number", {"Lowest": "18", "Highest": "97", "Groups": "4"}),
)


def main() -> None:
    """All three pages, with people who do not exist."""
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        collecting(Path(folder)) as collector,
        browsing() as browser,
        visitor(browser, viewport={"width": WIDE, "height": 1180}) as (page, _),
    ):
        make(page, collector)
        plan = surveyed(collector)
        take(page, collector, plan)
        watch(page, collector, plan)


def make(page: Any, collector: Collector) -> None:
    page.goto(f"{collector.studio}/new")
    page.get_by_label("Title").fill("Habits in our town")
    for place, (name, kind, options) in enumerate(ROWS):
        if place:
            page.get_by_role("button", name="Add an attribute").click()
        row = page.locator("fieldset.attribute").nth(place)
        row.get_by_label("Name, in a word or two").fill(name)
        row.get_by_label("Kind").select_option(label=kind)
        for label, value in options.items():
            row.get_by_label(label).fill(value)
    page.get_by_label("People you expect").fill("50000")
    until(lambda: "People: 50,000" in page.locator("#words").text_content())
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.screenshot(path=FOLDER / "studio-make.png")


def surveyed(collector: Collector) -> Any:
    schema = sv.Schema(
        smoker=sv.Boolean(),
        drinks=sv.Categorical(["never", "weekly", "daily"]),
        age=sv.Ordinal(18, 97, bins=4),
        exercise=sv.Boolean(),
        region=sv.Categorical(REGIONS),
    )
    plan = collector.survey(
        sv.Marginals(up_to=2), people=50_000, epsilon=2.0, title="Habits in our town", schema=schema
    )
    people = {
        **crowd(PEOPLE, 1),
        "region": np.random.default_rng(1).choice(REGIONS, PEOPLE, p=[0.35, 0.3, 0.2, 0.15]),
    }
    ids = np.frombuffer(b"".join(new_id() for _ in range(PEOPLE)), np.uint8).reshape(-1, 16)
    collector.service.store.append(plan, ids, sv.simulate(plan, people, 1))
    return plan


def take(page: Any, collector: Collector, plan: Any) -> None:
    page.goto(f"{collector.studio}/take/{plan.id}")
    page.get_by_role("group", name="smoker").get_by_label("Yes").check()
    page.get_by_label("weekly").check()
    page.get_by_label("age").fill("41")
    page.get_by_role("group", name="exercise").get_by_label("No").check()
    page.get_by_label("north").check()
    page.get_by_role("button", name="Randomise and send my answer").click()
    page.locator("#whisper").wait_for()
    page.screenshot(path=FOLDER / "studio-take.png", full_page=True)


def watch(page: Any, collector: Collector, plan: Any) -> None:
    page.set_viewport_size({"width": WIDE, "height": 1900})
    page.goto(f"{collector.studio}/watch/{plan.id}")
    page.locator(".chart.tree svg").wait_for()
    page.screenshot(path=FOLDER / "studio-watch.png")


if __name__ == "__main__":
    main()
