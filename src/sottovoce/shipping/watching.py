"""Totals as surveys of a store, so that whatever shows a store shows them too."""

from __future__ import annotations

from sottovoce.ground.errors import InvalidInput, SottovoceError
from sottovoce.protocol.texts import Texts
from sottovoce.shipping.layout import Listing, plan_folder
from sottovoce.shipping.places import Place
from sottovoce.shipping.totals import collected, plan_ids, read_plan
from sottovoce.store import Store, open_store

_taken: dict[tuple[str, str, str], list[str]] = {}  # the days that a survey was taken from


def take_totals(store: Store, place: Place) -> int:
    """Have the surveys of a store say what was folded at a place by now; how many have changed.

    Plans of which nothing was folded yet are passed over. If some cannot be taken, all others are,
    and the first error is raised then.
    """
    changed = 0
    failures: list[SottovoceError] = []
    for plan_id in plan_ids(place):
        try:
            changed += _take(store, place, plan_id)
        except SottovoceError as wrong:
            failures.append(wrong)
    if failures:
        raise failures[0]
    return changed


def _take(store: Store, place: Place, plan_id: str) -> bool:
    """The same of one survey; whether it has changed."""
    key = (store.address, place.key, plan_id)
    days = Listing.of(place.names(plan_folder(plan_id))).last_days
    names = [day.name for day in days.values()]
    if not names or _taken.get(key) == names:
        return False
    plan = read_plan(place, plan_id)
    store.set_sums(plan, Texts(plan.asked["kind"]), collected(plan, place).aggregate)
    _taken[key] = names
    return True


def take_totals_at(url: str, address: str) -> int:
    """The same in a process of its own, given addresses."""
    with open_store(url) as store:
        return take_totals(store, Place.at(address))


def check_totals(address: str) -> None:
    """One clear error for a place to which nothing was shipped."""
    place = Place.at(address)
    if not plan_ids(place):
        raise InvalidInput(
            f"totals ({place.shown}) must be where `sottovoce ship` wrote to, and holds no plan"
        )
