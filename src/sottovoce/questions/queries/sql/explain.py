"""How a query was answered: what ran in clear, what was whispered, and what to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sottovoce.questions.queries.fitted import Term
from sottovoce.questions.queries.sql.source import WhisperedColumn

MAX_SHOWN_TERMS = 6
MAX_SHOWN_RUNS = 4


@dataclass
class Explanation:
    """The parts of an explanation, each a list of lines."""

    clear: list[str] = field(default_factory=list)
    whispered: list[str] = field(default_factory=list)
    terms: dict[str, list[str]] = field(default_factory=dict)  # by aggregate
    groups: int = 0  # of reports
    tables: int = 0  # fitted
    method: str = ""
    is_unbiased: bool = True
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "clear": self.clear,
            "whispered": self.whispered,
            "terms": self.terms,
            "groups": self.groups,
            "tables": self.tables,
            "method": self.method,
            "notes": self.notes,
        }

    def __str__(self) -> str:
        lines = [f"In clear: {each}" for each in self.clear] or ["In clear: nothing"]
        lines += [f"Whispered: {each}" for each in self.whispered] or ["Whispered: nothing"]
        if self.clear:
            lines.append(f"Groups of reports, by what is public: {self.groups:,}")
        for name, terms in self.terms.items():
            lines.append(f"{name}: {len(terms):,} selection{'s' if len(terms) != 1 else ''}")
            lines += [f"  {each}" for each in terms[:MAX_SHOWN_TERMS]]
            if len(terms) > MAX_SHOWN_TERMS:
                lines.append(f"  and {len(terms) - MAX_SHOWN_TERMS:,} more")
        how = "unbiased" if self.is_unbiased else "a model's, which may be biased"
        fitted = f"{self.tables:,} by {self.method} ({how})"
        lines.append(f"Fitted tables: {fitted if self.tables else 'none, all is public'}")
        lines += [f"Note: {each}" for each in self.notes]
        return "\n".join(lines)


def term_text(term: Term, dimensions: tuple[WhisperedColumn, ...]) -> str:
    """A selection in words.

    >>> from sottovoce.schema import Ordinal
    >>> age = WhisperedColumn("age", Ordinal(18, 25))
    >>> term_text({0: np.array([0, 0, 1, 1, 1, 0, 0, 0.0])}, (age,))
    'age 20..22'
    """
    if not term:
        return "everybody"
    parts = [_weights_text(term[number], dimensions[number]) for number in sorted(term)]
    return " and ".join(parts)


def _weights_text(weights: Any, dimension: WhisperedColumn) -> str:
    inside = weights != 0
    if not inside.any():
        return f"{dimension.name} of nobody"
    labels = [str(label) for label in dimension.attribute.labels()]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(int), [0]])))
    runs = edges.reshape(-1, 2)  # first, one past the last
    written = [
        labels[first] if last - first == 1 else f"{labels[first]}..{labels[last - 1]}"
        for first, last in runs[:MAX_SHOWN_RUNS]
    ]
    more = f" and {len(runs) - MAX_SHOWN_RUNS} more" if len(runs) > MAX_SHOWN_RUNS else ""
    weighted = "" if (weights[inside] == 1).all() else ", weighted"
    return f"{dimension.name} {', '.join(written)}{more}{weighted}"
