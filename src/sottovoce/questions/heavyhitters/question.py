"""The question: which values of an attribute are the most frequent,
of more than anybody can list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from sottovoce.ground.arguments import plain_options, share, whole, written
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question, check_single
from sottovoce.questions.heavyhitters import methods
from sottovoce.questions.heavyhitters.method import SearchTarget
from sottovoce.questions.method import AUTO, Options, given
from sottovoce.questions.prediction import Figure, Prediction
from sottovoce.results.findings import Findings
from sottovoce.schema import Items, Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_TOP_VALUES = 4096


@dataclass(frozen=True, init=False)
class HeavyHitters(Question):
    """The most frequent values of an attribute whose values nobody can list: text, addresses, large
    numbers.

    What is not given, the method chooses; an option that it does not take is refused.

    Args:
        attribute: its name.
        top: how many values.
        above: instead of ``top``: all values whose frequency is at least this.
        method: ``auto`` or one of windows, pem, pem1, tree-hist, spm, hash, priv-trie, rappor,
            o-rr.
        fresh: windows: the new bits of each window, a list.
        width: windows: bits of a window.
        lengths: pem, pem1, tree-hist: bits of each group's prefix, a rising list.
        keep: of the same: prefixes that go on.
        scramble: of the same: whether a public permutation of the bits comes first.
        queries: pem: prefixes that may be looked at.
        seconds: pem: instead of ``queries``, the time that looking may take.
        split: spm, hash: whether ``people`` or the ``budget`` are shared out.
        segment: spm: bits of a segment.
        block: hash: bits that a person tells beside her channel.
        strict: hash: whether a candidate must belong to the channel where it was found.
        batches: priv-trie: how many rounds.
        factor: priv-trie: of the threshold at which a prefix is accepted.
        cohorts: rappor, o-rr: how many families of hash functions.
        buckets: rappor, o-rr: how many values are hashed to.
        hashes: rappor, o-rr: how many hash functions.
        salt: rappor, o-rr: of the hash functions; by default the attribute's own.
        alphabet: rappor, o-rr: ``open``, or ``closed`` if all values are known.
        instantaneous: rappor: the chances that a kept 1 and a kept 0 are reported as 1.
        decoder: rappor, o-rr: ``least-squares``, ``nnls`` or ``lasso``.

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
        fresh: Sequence[int] | None = None,
        width: int | None = None,
        lengths: Sequence[int] | None = None,
        keep: int | None = None,
        scramble: bool | None = None,
        queries: int | None = None,
        seconds: Any = None,
        split: str | None = None,
        segment: int | None = None,
        block: int | None = None,
        strict: bool | None = None,
        batches: int | None = None,
        factor: Any = None,
        cohorts: int | None = None,
        buckets: int | None = None,
        hashes: int | None = None,
        salt: int | str | None = None,
        alphabet: str | None = None,
        instantaneous: Sequence[Any] | None = None,
        decoder: str | None = None,
    ) -> None:
        if (top is None) == (above is None):
            raise InvalidInput(
                "heavy hitters need top (how many) or above (a frequency), and not both"
            )
        options = given(
            fresh=fresh,
            width=width,
            lengths=lengths,
            keep=keep,
            scramble=scramble,
            queries=queries,
            seconds=seconds,
            split=split,
            segment=segment,
            block=block,
            strict=strict,
            batches=batches,
            factor=factor,
            cohorts=cohorts,
            buckets=buckets,
            hashes=hashes,
            salt=salt,
            alphabet=alphabet,
            instantaneous=instantaneous,
            decoder=decoder,
        )
        methods.method(method).check_options(options)
        for name, value in (
            ("attribute", attribute),
            ("top", None if top is None else whole("top", top, 1, MAX_TOP_VALUES)),
            ("above", None if above is None else _above(above)),
            ("method", method),
            ("options", plain_options(options)),
        ):
            object.__setattr__(self, name, value)

    def _with(self, method: str, options: Options) -> Self:
        """The same question by a method whose options are settled."""
        made = type(self)(self.attribute, top=self.top, above=self.above, method=method)
        object.__setattr__(made, "options", plain_options(options))
        return made

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        check_single(options)
        return super().from_survey(options)

    def attributes_in(self, schema: Schema) -> tuple[str, ...]:
        return (self.attribute,)

    def target(self, schema: Schema) -> SearchTarget:
        """What is looked for; refused of attributes that have no single, sensitive value."""
        attribute = schema[self.attribute]
        if isinstance(attribute, Items):
            raise InvalidInput(f"attribute {self.attribute!r} is a set of items; ask for TopItems")
        if not attribute.sensitive:
            raise InvalidInput(
                f"attribute {self.attribute!r} is public; only sensitive attributes are whispered"
            )
        if self.above is None:
            return SearchTarget(self.attribute, attribute, self.top or 1, None)
        above = Fraction(self.above)
        most = min(int(1 / above), MAX_TOP_VALUES)  # so many values can be as frequent
        return SearchTarget(self.attribute, attribute, most, float(above))

    def settled(self, schema: Schema, terms: Terms) -> Self:
        chosen, target = methods.method(self.method), self.target(schema)
        reason = chosen.refuse(target, terms)
        if reason is not None:
            raise InvalidInput(reason)
        return self._with(chosen.name, chosen.settle(target, terms, self.options))

    def rounds(self, schema: Schema) -> tuple[int, ...]:
        return methods.method(self.method).rounds(self.target(schema), self.options)

    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        chosen = methods.method(self.method)
        return chosen.cohorts(schema, self.target(schema), terms.epsilon, self.options)

    def estimate(
        self,
        aggregate: Aggregate,
        candidates: Sequence[Any] | None = None,
        complete: bool = False,
    ) -> Findings:
        """The popular values; ``next`` is the question of the round that follows, if there is one.

        Args:
            aggregate: what the crowd said.
            candidates: values that are likely, such as names; a list may come afterwards.
            complete: rappor, o-rr: whether the candidates are declared to be all that people say.
        """
        chosen = methods.method(self.method)
        if candidates is not None and not chosen.takes_candidates:
            takers = ", ".join(each.name for each in methods.METHODS if each.takes_candidates)
            raise InvalidInput(f"candidates are for methods {takers}, not for {chosen.name}")
        aggregate.require_people()
        target = self.target(aggregate.plan.schema)
        estimate = chosen.estimate_complete if complete else chosen.estimate
        result = estimate(target, aggregate, self.options, candidates)
        found = cast(Findings, result.estimate)
        if result.known is None:
            return found
        return replace(found, next=self._with(self.method, {**self.options, "known": result.known}))

    def predict(self, schema: Schema, terms: Terms, series: Series | None = None) -> Prediction:
        """The share of people who must hold a value for an even chance that it is found."""
        made = self.plan(schema, terms, series)
        share = methods.method(self.method).predict(self.target(schema), terms, self.options)
        # of a value that was found, if everybody of the round tells about it
        error = sqrt(made.cohorts[0].asks[0].oracle.variance(made.round_people))
        figure = Figure("a popular value", error)
        if share is None:
            reason = f"method ({self.method}): how frequent a value must be is not known beforehand"
            return Prediction(nan, self.method, (figure,), is_share=True, unknown=reason)
        return Prediction(share, self.method, (figure,), is_share=True)

    def explain(self, plan: Plan) -> list[str]:
        chosen, target = methods.method(self.method), self.target(plan.schema)
        wanted = f"the {self.top} most frequent values"
        if self.above is not None:
            wanted = f"values held by {self.above} or more"
        lines = [
            f"Question: {wanted} of {self.attribute}, of 2^{target.bits} spellings",
            f"Method: {chosen.name} ({chosen.about}), {chosen.source}",
            f"People: {plan.round_people:,} in {len(plan.cohorts)} "
            f"cohort{'s' if len(plan.cohorts) > 1 else ''}",
            *chosen.explain(target, plan, self.options),
        ]
        even = chosen.threshold(target, plan.terms, self.options, chance=0.5)
        likely = chosen.threshold(target, plan.terms, self.options, chance=0.9)
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
        name, options = data["method"], data["options"]
        methods.method(name).check_options(options)
        plain = cls(data["attribute"], top=data["top"], above=data["above"], method=name)
        return plain._with(name, options)


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
