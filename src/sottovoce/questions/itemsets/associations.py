"""Association rules: who holds these items also holds those, with support, confidence, lift and
their uncertainty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import NormalDist
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.results.estimate import Table
from sottovoce.results.findings import Findings
from sottovoce.schema import Label

Itemset = tuple[Label, ...]


@dataclass(frozen=True)
class Measured:
    """A number with the standard error of its estimate."""

    value: float
    std_error: float

    def __format__(self, form: str) -> str:
        """The number and its error, each in this form."""
        return f"{self.value:{form}} ± {self.std_error:{form}}"

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """(low, high): a normal interval."""
        if not 0.5 < (1 + level) / 2 < 1:
            raise InvalidInput(f"level ({level}) must lie between 0 and 1")
        reach = NormalDist().inv_cdf((1 + level) / 2) * self.std_error
        return self.value - reach, self.value + reach

    def to_json(self, level: float) -> dict[str, float]:
        """With its interval, ready for JSON."""
        low, high = self.interval(level)
        return {"value": self.value, "std_error": self.std_error, "low": low, "high": high}


@dataclass(frozen=True)
class Rule:
    """Who holds ``given`` also holds ``then``: how many hold both, what part of the former, and
    against independence.

    Standard errors are by the delta method, with the errors of different sets' frequencies taken as
    independent. Sets that were counted in one round share their noise only weakly: a report speaks
    for each of them with its own chance.
    """

    given: Itemset
    then: Itemset
    support: Measured
    confidence: Measured
    lift: Measured | None  # None if the consequence was not found by itself

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        """The rule with intervals, ready for JSON."""
        return {
            "given": list(self.given),
            "then": list(self.then),
            "support": self.support.to_json(level),
            "confidence": self.confidence.to_json(level),
            "lift": None if self.lift is None else self.lift.to_json(level),
        }

    def __str__(self) -> str:
        parts = [
            f"{_named(self.given)} -> {_named(self.then)}: support {self.support:.4f}",
            f"confidence {self.confidence:.2f}",
        ]
        if self.lift is not None:
            parts.append(f"lift {self.lift:.2f}")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False, repr=False)
class SetFindings(Findings):
    """Findings about sets: items or itemsets, and the rules between them."""

    def rules(self, *, least_confidence: float = 0.0, significant: bool = True) -> list[Rule]:
        """The rules between what was found: see :func:`rules`."""
        return rules(self, least_confidence=least_confidence, significant=significant)


def rules(
    findings: Findings, *, least_confidence: float = 0.0, significant: bool = True
) -> list[Rule]:
    """The rules between itemsets that were found, the most confident first.

    A rule needs the frequencies of both its sides together and of its antecedent.

    Args:
        findings: of a ``TopItemsets`` question.
        least_confidence: that a rule must have.
        significant: whether to leave out whatever noise alone may explain.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(basket=sv.Items(["milk", "bread", "tea", "jam"]))
    >>> plan = sv.plan(schema, sv.TopItemsets("basket", top=4), epsilon=4.0, people=20_000)
    >>> baskets = [["bread", "jam"], ["bread", "jam"], ["bread"], ["tea"]] * 5_000
    >>> found = sv.simulate_rounds(plan, {"basket": baskets}, seed=1)
    >>> rule = rules(found, least_confidence=0.8)[0]
    >>> rule.given, rule.then
    (('jam',), ('bread',))
    """
    if not 0 <= least_confidence <= 1:
        raise InvalidInput(f"least_confidence ({least_confidence}) must lie between 0 and 1")
    known = _frequencies(findings, significant)
    confident = [rule for rule in _all_rules(known) if rule.confidence.value >= least_confidence]
    return sorted(confident, key=lambda rule: -rule.confidence.value)


def _frequencies(findings: Findings, significant: bool) -> dict[frozenset[Label], Measured]:
    """The sets that were found, with their frequencies; an item is a set of one."""
    table: Table = findings.table
    marks = findings.significant()
    values = table.values.tolist()
    errors = table.std_error.tolist()
    known = {}
    for row, label in enumerate(table.labels):
        is_left_out = significant and not marks[row]
        if not is_left_out and values[row] > 0:
            members = label if isinstance(label, tuple) else (label,)
            known[frozenset(members)] = Measured(values[row], errors[row])
    return known


def _all_rules(known: dict[frozenset[Label], Measured]) -> Iterator[Rule]:
    """Every way to split a set that was found in two, of which the first was found too."""
    for union, both in known.items():
        members = sorted(union, key=str)
        for size in range(1, len(members)):
            for given in combinations(members, size):
                before = known.get(frozenset(given))
                if before is not None:
                    then = tuple(sorted(union - set(given), key=str))
                    confidence = _quotient(both, before)
                    after = known.get(frozenset(then))
                    lift = None if after is None else _quotient(confidence, after)
                    yield Rule(given, then, both, confidence, lift)


def _quotient(top: Measured, bottom: Measured) -> Measured:
    """A quotient of independent estimates, by the delta method: relative variances add."""
    value = top.value / bottom.value
    # s_q = q sqrt((s_a/a)^2 + (s_b/b)^2)
    of_top = top.std_error / top.value
    of_bottom = bottom.std_error / bottom.value
    relative = sqrt(of_top**2 + of_bottom**2)
    return Measured(value, value * relative)


def _named(items: Itemset) -> str:
    return "{" + ", ".join(str(item) for item in items) + "}"
