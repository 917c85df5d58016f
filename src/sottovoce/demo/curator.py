"""The demo's other trust model: the same people, if one organisation held their answers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sottovoce.central.result import Release
    from sottovoce.demo.survey import Finding
    from sottovoce.schema import Schema

RELEASE_DELTA = "1e-6"
RELEASE_FOLDER = "release"


@dataclass(frozen=True)
class Curated:
    """One table as a curator released it, beside what whispers said of it and the truth."""

    release: Release
    central: Finding
    local: Finding

    @property
    def sentence(self) -> str:
        """How far both are from the truth."""
        far, near = table_error(self.local), table_error(self.central)
        names = ", ".join(self.central.table.attributes)
        return (
            f"With a trusted curator, who has seen everybody's answers, the same epsilon gives a "
            f"table of {names} whose cells are off by {near:.5f} (root mean square), where "
            f"whispers are off by {far:.5f}: {far / near:.0f} times as far."
        )


def table_error(finding: Finding) -> float:
    """The root mean square error of a table's cells."""
    return float(np.sqrt(((finding.table.values - finding.truth) ** 2).mean()))


def curated(
    people: Mapping[str, Sequence[Any]],
    schema: Schema,
    epsilon: Any,
    up_to: int,
    local: Finding,
    output: Path,
    seed: int | None,
) -> Curated:
    """Release the people's table into the demo's folder, and compare one table of it.

    Args:
        people: made up, so an earlier demo's release may go, with its ledger.
        schema: of their attributes.
        epsilon: of the survey and of the release.
        up_to: attributes of a released table.
        local: a table as it was whispered.
        output: the demo's folder.
        seed: of the noise; None for the system's.
    """
    from sottovoce.accounting import Ledger
    from sottovoce.central.choice import choose
    from sottovoce.central.methods import METHODS
    from sottovoce.central.release import parse_terms, released
    from sottovoce.central.storage import ledger_path, write_release
    from sottovoce.central.tables import read_table
    from sottovoce.demo.survey import Finding
    from sottovoce.ground.entropy import Seeded, System
    from sottovoce.questions.method import AUTO

    folder = output / RELEASE_FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    ledger_path(folder).unlink(missing_ok=True)
    table = read_table(people, schema=schema)
    terms = parse_terms(epsilon, RELEASE_DELTA, up_to, "add-remove", {})
    choice = choose(AUTO, METHODS, table, terms)
    entropy = System() if seed is None else Seeded(seed)
    budget: dict[str, Any] = {"epsilon": terms.epsilon, "delta": terms.delta}
    with Ledger(**budget, path=ledger_path(folder)) as ledger:
        release = released(table, terms, choice, ledger, entropy)
    write_release(release, folder)
    central = Finding(release.marginal(*local.table.attributes), local.truth)
    return Curated(release, central, local)
