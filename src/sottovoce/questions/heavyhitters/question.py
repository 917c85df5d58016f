"""The question: which values of an attribute are the most frequent,
of more than anybody can list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

from sottovoce.ground.arguments import plain_options, share, whole, written
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question, check_single
from sottovoce.questions.heavyhitters.method import HeavyHitterMethod, Target
from sottovoce.questions.heavyhitters.methods import AUTO, DEFAULT, METHODS
from sottovoce.questions.prediction import Figure, Prediction
from sottovoce.results.findings import Findings
from sottovoce.schema import MOST_SPELLED, Items, Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_TOP = 4096


class SearchOptions(TypedDict, total=False):
    """What a search for popular values may be told.
    Each method takes its own and refuses others.
    """

    fresh: Any  # windows
    width: int  # windows
    lengths: Sequence[int]  # pem, pem1, tree-hist: bits of the prefixes
    keep: int  # of the same: prefixes that go on
    scramble: Any  # of the same
    queries: int  # pem: prefixes that may be looked at
    seconds: Any  # pem: or the time that looking may take
    split: str  # spm, hash: whether people or the budget are shared out
    segment: int  # spm: bits of a segment
    block: int  # hash
    strict: bool  # hash
    batches: int  # priv-trie
    factor: Any  # priv-trie
    known: Any  # priv-trie
    cohorts: int  # rappor, o-rr: and the other options of these oracles
    buckets: int
    hashes: int
    salt: int | str
    alphabet: Any
    instantaneous: Any  # rappor
    decoder: str  # rappor, o-rr


@dataclass(frozen=True, init=False)
class HeavyHitters(Question):
    """The most frequent values of an attribute whose values nobody can list: text, addresses, large
    numbers.

    ``top``: how many of them; or ``above``: all whose frequency is at least that. ``method`` is
    ``auto`` or one of ``windows``, ``pem``, ``pem1``, ``tree-hist``, ``spm``, ``hash``,
    ``priv-trie``, ``rappor``, ``o-rr``, with its ``options`` (:class:`SearchOptions`).

    >>> HeavyHitters("word", top=16).top
    16
    """

    kind: ClassVar[str] = "heavy-hitters"
    finds: ClassVar[bool] = True
    attribute: str
    top: int | None
    above: str | None
    method: str
    options: Mapping[str, Any] = field(hash=False)

    def __init__(
        self,
        attribute: str,
        *,
        top: int | None = None,
        above: Any = None,
        method: str = AUTO,
        **options: Unpack[SearchOptions],
    ) -> None:
        if (top is None) == (above is None):
            raise InvalidInput(
                "heavy hitters need top (how many) or above (a frequency), and not both"
            )
        if method not in (AUTO, *(each.name for each in METHODS)):
            names = ", ".join(each.name for each in METHODS)
            raise InvalidInput(f"method ({method}) must be {AUTO} or one of {names}")
        for name, value in (
            ("attribute", attribute),
            ("top", None if top is None else whole("top", top, 1, MOST_TOP)),
            ("above", None if above is None else _above(above)),
            ("method", method),
            ("options", plain_options(options)),
        ):
            object.__setattr__(self, name, value)
        known = self._method_class.options
        for key in options:
            if key not in known:
                raise InvalidInput(
                    f"option {key!r} is not one of {method}'s ({', '.join(known) or 'it has none'})"
                )

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        check_single(options)
        return super().from_survey(options)

    def attributes_in(self, schema: Schema) -> tuple[str, ...]:
        return (self.attribute,)

    @property
    def _method_class(self) -> type[HeavyHitterMethod]:
        name = DEFAULT if self.method == AUTO else self.method
        return next(each for each in METHODS if each.name == name)

    def _method(self, schema: Schema) -> HeavyHitterMethod:
        attribute = schema[self.attribute]
        if isinstance(attribute, Items):
            raise InvalidInput(f"attribute {self.attribute!r} is a set of items; ask for TopItems")
        if not attribute.sensitive:
            raise InvalidInput(
                f"attribute {self.attribute!r} is public; only sensitive attributes are whispered"
            )
        if self._method_class.spells and attribute.spelling_bits > MOST_SPELLED:
            bits = attribute.spelling_bits
            raise InvalidInput(
                f"attribute {self.attribute!r} has {bits} bits; values of at most {MOST_SPELLED} "
                "bits are found"
            )
        above = None if self.above is None else Fraction(self.above)
        top = self.top if above is None else min(int(1 / above), MOST_TOP)
        target = Target(
            self.attribute, attribute, top or 1, None if above is None else float(above)
        )
        return self._method_class(target, self.options)

    def settled(self, schema: Schema, terms: Terms) -> HeavyHitters:
        method = self._method(schema)
        return HeavyHitters(
            self.attribute,
            top=self.top,
            above=self.above,
            method=method.name,
            **method.settled(terms),
        )

    def rounds(self, schema: Schema, terms: Terms) -> tuple[int, ...]:
        return self._method(schema).rounds(terms)

    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        return self._method(schema).cohorts(terms)

    def estimate(
        self,
        aggregate: Aggregate,
        candidates: Sequence[Any] | None = None,
        complete: bool = False,
        **options: Any,
    ) -> Findings:
        """The popular values. ``candidates``: values that are likely, such as names; a list may
        come afterwards. ``complete`` declares that nobody says anything else (rappor, o-rr).
        """
        if options:
            raise InvalidInput(
                f"option {next(iter(options))!r} is not one of estimate's (candidates, complete)"
            )
        aggregate.require_people()
        method = self._method(aggregate.plan.schema)
        return (method.find_all if complete else method.find)(aggregate, self, candidates)

    def predict(self, schema: Schema, terms: Terms, series: Series | None = None) -> Prediction:
        """The share of people who must hold a value for an even chance that it is found."""
        made = self.plan(schema, terms, series)
        share = self._method(schema).threshold(made)
        # of a value that was found, if everybody of the round tells about it
        figure = Figure(
            "a popular value", sqrt(made.cohorts[0].asks[0].oracle.variance(made.round_people))
        )
        if share is None:
            reason = f"method ({self.method}): how frequent a value must be is not known beforehand"
            return Prediction(nan, self.method, (figure,), is_share=True, unknown=reason)
        return Prediction(share, self.method, (figure,), is_share=True)

    def explain(self, plan: Plan) -> list[str]:
        method = self._method(plan.schema)
        attribute = plan.schema[self.attribute]
        wanted = (
            f"the {self.top} most frequent values"
            if self.above is None
            else f"values held by {self.above} or more"
        )
        lines = [
            f"Question: {wanted} of {self.attribute}, of 2^{attribute.spelling_bits} spellings",
            f"Method: {method.name} ({method.about})",
            f"People: {plan.round_people:,} in {len(plan.cohorts)} "
            f"cohort{'s' if len(plan.cohorts) > 1 else ''}",
            *method.explain(plan),
        ]
        even, likely = method.threshold(plan), method.threshold(plan, 0.9)
        if even is not None and likely is not None:
            lines.append(_found_at(even, likely, plan.people))
        return lines

    def to_json(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute,
            "top": self.top,
            "above": self.above,
            "method": self.method,
            "options": dict(sorted(self.options.items())),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            data["attribute"],
            top=data["top"],
            above=data["above"],
            method=data["method"],
            **data["options"],
        )


def _found_at(even: float, likely: float, people: int) -> str:
    """How frequent a value must be to be found here."""
    count = f"{even * people:,.0f} of {people:,}"
    line = f"A value is found with about an even chance if {even:.2%} of people hold it ({count})"
    return f"{line}, and with one of about 90% from {likely:.2%}"


def _above(value: Any) -> str:
    exact = share("above", value)
    if not 0 < exact < 1:
        raise InvalidInput(f"above ({value}) must lie between 0 and 1")
    return str(written(exact))
