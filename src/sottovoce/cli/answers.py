"""What `sottovoce estimate` was asked for: which tables, drawn or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.estimate import Estimate, Table
    from sottovoce.front import Plan
    from sottovoce.guarantee import Guarantee


def asked_tables(found: Estimate, marginals: Sequence[str], k: int | None) -> list[Table]:
    """The tables named ``a,b``, then all of ``k`` attributes; those that the plan asked for if nobody names any."""
    tables = [found.marginal(*(name.strip() for name in names.split(","))) for names in marginals]
    if k is not None:
        from sottovoce.marginals import MarginalEstimate

        if not isinstance(found, MarginalEstimate):
            raise InvalidInput(f"k ({k}) is for a plan whose question is marginals")
        tables += found.marginals(k).values()
    return tables if marginals or k is not None else list(found.tables.values())


def candidates(made: Plan, path: Path) -> dict[str, list[str]]:
    """The words of a file, for the open attributes of a plan, or for all if none is open."""
    try:
        lines = [line.rstrip("\r") for line in path.read_text(encoding="utf-8-sig").split("\n")]
    except UnicodeDecodeError:
        raise InvalidInput(f"candidates ({path}): the file is not UTF-8") from None
    words = list(dict.fromkeys(line for line in lines if line))
    if not words:
        raise InvalidInput(f"candidates ({path}): there must be at least one, each on its own line")
    asked = made.cohorts.attributes
    open_ones = [name for name in asked if made.schema[name].is_open]
    return dict.fromkeys(open_ones or asked, words)


def draw(tables: Sequence[Table], plot: Path) -> None:
    """One picture of all tables, one below the other."""
    import altair as alt

    from sottovoce.plots import save

    charts = [table.plot() for table in tables]
    save(charts[0] if len(charts) == 1 else alt.vconcat(*charts).resolve_scale(color="independent"), str(plot))


def guarantee_json(guarantee: Guarantee) -> dict[str, float]:
    """The two numbers of a guarantee."""
    return {"per_report": guarantee.per_report, "lifetime": guarantee.lifetime}


def estimate_json(made: Plan, tables: Sequence[Table], level: float) -> dict[str, Any]:
    """Tables with all that marks them."""
    return {
        "plan": made.id,
        "guarantee": guarantee_json(made.guarantee),
        "level": level,
        "tables": [table.to_json(level) for table in tables],
    }
