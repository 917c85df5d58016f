"""Every error a caller can meet: the parameter, the value and the rule, never a person's data."""

from __future__ import annotations


class SottovoceError(Exception):
    """Base of all errors raised on purpose; the command line turns them into exit code 2."""


class InvalidInput(SottovoceError, ValueError):
    """An argument, a file or a record breaks a stated rule."""


class CorruptReport(SottovoceError, ValueError):
    """Bytes that cannot be a report: truncated, damaged, of an unknown version or payload."""


class PlanMismatch(SottovoceError, ValueError):
    """Two things that must belong to one plan belong to different ones."""


class BadAssignment(SottovoceError):
    """Assigned coins unsigned by the collector, expired, or not those that a report uses."""


class NotEnumerable(SottovoceError):
    """The outputs are too many (or infinite) to list; audit by sampling instead."""


class NotInThisRound(SottovoceError):
    """This person was drawn into another round of the series and must stay silent in this one."""


class BudgetExceeded(SottovoceError):
    """The plan would spend more than this device's cap on an attribute; nothing was drawn."""


class StoreError(SottovoceError):
    """A store cannot be used now: busy, out of reach or closed. Nothing of this write is there."""


class StoreFull(StoreError):
    """No room on the store's disk. Nothing of this write is there; all that was before is."""


class SurveyClosed(SottovoceError):
    """The survey takes no more reports."""


class BatchClosed(SottovoceError):
    """A shuffler's batch takes no more reports."""


class ClusterError(SottovoceError):
    """What was to work elsewhere cannot: nobody answers, or its workers have other versions."""


class UnknownPlan(InvalidInput):
    """The store has no such plan."""


class MissingLibrary(SottovoceError, ImportError):
    """A library that this install was made without. The message says which extra brings it."""
