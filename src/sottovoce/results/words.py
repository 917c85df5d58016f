"""What marks a table, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sottovoce.results.cells import Total

CLOSED_FORM = "closed form"  # where variances come from, unless a table says otherwise


class _Marked(Protocol):
    @property
    def people(self) -> int: ...
    @property
    def is_unbiased(self) -> bool: ...
    @property
    def is_reconstructed(self) -> bool: ...
    @property
    def method(self) -> str: ...
    @property
    def repair(self) -> str | None: ...
    @property
    def errors(self) -> str: ...
    @property
    def remark(self) -> str: ...
    @property
    def never_asked(self) -> tuple[tuple[str, ...], ...]: ...
    @property
    def partly_heard(self) -> Mapping[tuple[str, ...], float]: ...
    @property
    def off_list(self) -> Total | None: ...
    @property
    def origin(self) -> str: ...
    @property
    def unasked(self) -> str: ...
    @property
    def partly(self) -> str: ...
    @property
    def left(self) -> str: ...


class TableWords:
    """What marks a table, in words for whoever reads it."""

    @property
    def unasked(self: _Marked) -> str:
        """What no report tells of, in words; empty if there is nothing of the kind."""
        named = ", ".join(" x ".join(part) for part in self.never_asked)
        return f"never asked: {named}, of which this table says nothing" if named else ""

    @property
    def partly(self: _Marked) -> str:
        """What reports tell only in part, in words; empty if there is nothing of the kind."""
        named = ", ".join(
            f"{' x '.join(part)} ({share:.0%})" for part, share in self.partly_heard.items()
        )
        return f"partly heard: {named}" if named else ""

    @property
    def left(self: _Marked) -> str:
        """What is left for anything off the list, in words; empty if it is not known."""
        if self.off_list is None:
            return ""
        return f"anything off the list: {self.off_list:.4f} ± {self.off_list.std_error:.4f}"

    @property
    def origin(self: _Marked) -> str:
        """Whether it is biased, how it was collected, and what was done to it, in a few words.

        >>> import numpy as np
        >>> from sottovoce.oracles import Noise
        >>> from sottovoce.results.estimate import Table
        >>> table = Table(("x",), "ab", np.zeros(2), np.ones(2), 9, Noise(1.0, 0.0), method="grr")
        >>> table.origin, table.repaired(table.values, "norm-sub").origin
        ('unbiased, by grr', 'biased, by grr, repaired by norm-sub')
        """
        parts = ["unbiased" if self.is_unbiased else "biased"]
        if self.method:
            parts.append(f"by {self.method}")
        if self.repair is not None:
            parts.append(f"repaired by {self.repair}")
        return ", ".join(parts)

    @property
    def notes(self: _Marked) -> list[str]:
        """Where its figures come from, and what a reader should know of them."""
        notes = [f"{self.people:,} people", self.origin]
        if self.is_reconstructed:
            notes.append("reconstructed: not all of it was asked")
        if self.never_asked:
            notes.append(self.unasked)
        if self.partly_heard:
            notes.append(self.partly)
        if self.off_list is not None:
            notes.append(self.left)
        if self.errors != CLOSED_FORM:
            notes.append(f"errors by {self.errors}")
        if self.remark:
            notes.append(self.remark)
        return notes
