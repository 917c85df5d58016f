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
    from sottovoce.store import Entry


def check_collector_keys(
    plans: Sequence[Plan], last_hop: tuple[Path, str | None] | None
) -> str | None:
    """The collector's public key, if it has one; refuses a shuffled plan whose last layer it could
    not open, or that has no layers.
    """
    for plan in plans:
        if plan.shuffling is not None and not plan.shuffling.hops:
            raise InvalidInput(
                f"plan {plan.id[:16]} is shuffled and names no keys of shufflers, so that no "
                "report is sealed for it, and none is taken unsealed: plan it again with hops "
                "(see docs/shufflers.md)"
            )
    sealed = [plan for plan in plans if plan.shuffling is not None]
    if last_hop is None and not sealed:
        return None
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
    return key.public


def notes_on_surveys(
    entries: Sequence[Entry], key: str | None, *, has_pages: bool, shuffler: str | None
) -> list[str]:
    """What whoever starts a collector has to know of the open shuffled surveys in its store."""
    from sottovoce.service.survey_service import hops_of, why_unheard

    notes, sealed = [], []
    for entry in entries:
        if entry.closed or entry.plan.shuffling is None:
            continue
        unheard = why_unheard(hops_of(entry.plan), key)
        if unheard is not None:
            notes.append(f"Survey {entry.plan.id[:16]} will hear nobody: {unheard}")
        else:
            sealed.append(entry.plan.id[:16])
    if sealed and has_pages and shuffler is None:
        notes.append(
            f"Nobody can answer survey {', '.join(sealed)} on a page of this studio: it does not "
            "know where the first shuffler is (--shuffler URL)"
        )
    return notes


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
