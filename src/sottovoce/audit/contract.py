"""The contract of an oracle, law by law: what ``sottovoce check-oracle`` and the tests run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from sottovoce.audit.channels import ENUMERATED, STATED, errors_of_crowds_are_those_of_the_formula
from sottovoce.audit.laws import LAWS, Law, LawBroken, must
from sottovoce.audit.oracles import AUDIT_DRAWS, CONFIDENCE, sample
from sottovoce.ground.entropy import System
from sottovoce.ground.errors import InvalidInput, NotEnumerable
from sottovoce.ground.packages import named_thing
from sottovoce.oracles import ORACLES, Oracle
from sottovoce.oracles.outside import checked_kind

KEYS = ("Guarantee:", "Assumes:", "Source:")  # of the docstring of every oracle


@dataclass(frozen=True)
class LawCheck:
    """Whether one law holds, and why not."""

    law: str
    passed: bool
    detail: str = ""

    def __str__(self) -> str:
        reason = f": {self.detail}" if self.detail else ""
        return f"{'ok  ' if self.passed else 'FAIL'} {self.law}{reason}"


@dataclass(frozen=True)
class ContractCheck:
    """What was found of an oracle: every law, in order. It passed if all hold."""

    oracle: str
    size: int
    epsilon: Decimal
    outputs: int | None  # reports that were enumerated; None if there are too many to list
    laws: tuple[LawCheck, ...]

    @property
    def passed(self) -> bool:
        return all(law.passed for law in self.laws)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "oracle": self.oracle,
            "size": self.size,
            "epsilon": float(self.epsilon),
            "passed": self.passed,
            "outputs": self.outputs,
            "laws": [asdict(law) for law in self.laws],
        }

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        how = (
            "reports are too many to list, and were sampled"
            if self.outputs is None
            else f"{self.outputs:,} reports enumerated"
        )
        held = sum(law.passed for law in self.laws)
        return "\n".join(
            [
                *map(str, self.laws),
                f"{verdict} {self.oracle} (size {self.size:,}, epsilon {self.epsilon}): {how}, "
                f"{held} of {len(self.laws)} laws hold",
            ]
        )


def check_oracle(oracle: Oracle, progress: Callable[[int], None] | None = None) -> ContractCheck:
    """Check every law that an oracle obeys; ``progress`` is told how many were checked.

    >>> from sottovoce.oracles import oracle
    >>> check_oracle(oracle("grr", size=4, epsilon=1.0)).passed
    True
    """
    outputs, laws = _laws_of(oracle)
    found = []
    for law in laws:
        found.append(_checked(law, oracle))
        if progress is not None:
            progress(len(found))
    return ContractCheck(oracle.names[0], oracle.size, oracle.requested, outputs, tuple(found))


def _laws_of(oracle: Oracle) -> tuple[int | None, Sequence[Law]]:
    """(number of reports if they can be listed, the laws to check)."""
    try:
        outputs = len(oracle.outputs())
    except NotEnumerable:
        sampled = (draws_show_no_more_than_epsilon, errors_of_crowds_are_those_of_the_formula)
        return None, (*STATED, *sampled, *LAWS)
    except Exception:  # its own mistakes: the laws meet them again, and say so
        return None, (*STATED, *ENUMERATED, *LAWS)
    return outputs, (*STATED, *ENUMERATED, *LAWS)


def _checked(law: Law, oracle: Oracle) -> LawCheck:
    name = law.__name__.replace("_", " ")
    try:
        law(oracle)
    except Exception as wrong:  # a law that is broken, or a mistake of the oracle's own code
        kind = "" if isinstance(wrong, LawBroken) else f"{type(wrong).__name__}: "
        return LawCheck(name, False, f"{kind}{wrong}")
    return LawCheck(name, True)


def draws_show_no_more_than_epsilon(oracle: Oracle) -> None:
    """Where reports are too many to list: a lower bound on epsilon from draws with real coins."""
    found = sample(oracle, AUDIT_DRAWS, CONFIDENCE, System())
    must(found.passed, f"one report costs at least {found.lower_bound:.4g}")


def oracle_class(target: str) -> type[Oracle]:
    """The oracle's class at ``module:Class``; refused unless plans can name it.

    >>> oracle_class("sottovoce.oracles.subset:SubsetSelection").names
    ('ss',)
    """
    thing = named_thing("oracle", target, "mypackage:MyOracle")
    kind = checked_kind(thing, f"oracle ({target})")
    for own in ORACLES:
        if own is not kind and set(own.names) & set(kind.names):
            shared = ", ".join(sorted(set(own.names) & set(kind.names)))
            raise InvalidInput(f"oracle ({target}): {shared} is the name of one of sottovoce's own")
    lacking = [key for key in KEYS if key not in (kind.__doc__ or "")]
    if lacking:
        raise InvalidInput(f"oracle ({target}): its docstring must state {' '.join(lacking)}")
    return kind
