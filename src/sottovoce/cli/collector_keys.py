"""A collector's key: which plans need one, and where the batches wait that it opens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.store.urls import SqliteAddress, kind_of

if TYPE_CHECKING:
    from sottovoce.service.batches import Batches
    from sottovoce.service.survey_service import SurveyService


def check_collector_keys(plans: Sequence[Plan], last_hop: tuple[Path, str | None] | None) -> None:
    """Refuse a shuffled plan whose last layer this collector could not open."""
    sealed = [plan for plan in plans if plan.shuffling is not None and plan.shuffling.hops]
    if not sealed:
        return
    if last_hop is None:
        raise InvalidInput(
            f"key is required: plan {sealed[0].id[:16]} is shuffled, and its reports are sealed"
        )
    from sottovoce.shuffle.batch import hop_of, shuffling_of
    from sottovoce.shuffle.keys import read_key

    key = read_key(last_hop[0])
    for plan in sealed:
        if hop_of(plan, key) != shuffling_of(plan).shufflers:
            raise InvalidInput(
                f"key ({last_hop[0]}) must be the collector's of plan {plan.id[:16]}; the plan "
                "names it as a shuffler's"
            )


def opened_batches(
    service: SurveyService, served: Any, key: Path, batches_url: str | None
) -> Batches:
    """What takes batches, with its routes."""
    from sottovoce.service.batches import Batches, batch_routes
    from sottovoce.shuffle.keys import read_key
    from sottovoce.store.hops import HopStore

    url = batches_url or _beside(service.store.url)
    batches = Batches(service, read_key(key), HopStore(url))
    served.router.routes.extend(batch_routes(batches))
    batches.start()
    return batches


def _beside(url: str) -> str:
    """The file beside a store's own."""
    if kind_of(url) != "sqlite":
        raise InvalidInput("batches is required for a store in PostgreSQL: sqlite:///FILE")
    path = SqliteAddress.parse(url).path
    name = f"{path.stem}-batches{path.suffix or '.db'}"
    return f"sqlite:///{path.with_name(name)}"
