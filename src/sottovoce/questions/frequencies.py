"""How often each value of an attribute occurs: the smallest protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sottovoce.ground.arguments import named_salt, plain_options
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import (
    ADAPTIVE,
    CohortOracle,
    Noise,
    Oracle,
    PureOracle,
    SummedOracle,
    options_of,
    oracle_with,
    plain_name,
)
from sottovoce.oracles.cohorts import DECODERS
from sottovoce.oracles.direct import GeneralizedRandomizedResponse
from sottovoce.oracles.thresholds import shared
from sottovoce.oracles.unary import UnaryEncoding
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import SHUFFLED, Terms
from sottovoce.questions.base import Question, ShuffledChoice, are_names, round_terms
from sottovoce.questions.decoded import marked
from sottovoce.questions.method import SPLITS, given
from sottovoce.questions.prediction import Figure, Prediction
from sottovoce.questions.shuffled_oracles import (
    FOCUSES,
    check_oracle_name,
    shuffled_error,
    shuffled_ways,
)
from sottovoce.results.cells import PureLaw
from sottovoce.results.estimate import Estimate, Table
from sottovoce.schema import Items, Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

# candidates for which the error of an oracle of cohorts is predicted: it takes a matrix of them
MOST_SOLVED = 512
COMMON = 0.1  # how many hold a value that is not rare


@dataclass(frozen=True, init=False)
class Frequencies(Question):
    """The frequency of each value of one attribute, or of several, each by itself.

    What is not given, the oracle chooses; an option that it does not take is refused.

    Args:
        attributes: one or more names.
        oracle: any name or alias of ``sv.oracle``.
        split: whether several attributes share out the ``people`` (each person is asked one) or the
            ``budget`` (each person is asked all, at a part of epsilon).
        bytes: adaptive: that a report may weigh.
        target: adaptive: what should vary least, one ``cell`` or a ``half-sum`` of cells.
        theta: the: the threshold, between 0 and 1.
        chosen: ss: how many values a report names.
        hash_bits: blh, olh, olh-wide: bits of a hashed value.
        hash_size: olh-field, olh-seeded, olh-sets: how many values are hashed to.
        length: olh-sets: how many items a set has at most.
        hashes: cms, hcms, rappor, o-rr, o-rappor: how many hash functions.
        width: cms, hcms: how many values each of them has.
        salt: of the same hash functions; by default one of the schema's and the attribute's own.
        cohorts: rappor, o-rr, o-rappor: how many families of hash functions.
        buckets: rappor, o-rr, o-rappor: how many values are hashed to.
        alphabet: rappor, o-rr, o-rappor: ``open``, or ``closed`` if all values are known.
        people: rappor, o-rr, o-rappor: how many the cohorts are chosen for, if not the plan's.
        instantaneous: rappor: the chances that a kept 1 and a kept 0 are reported as 1.
        half_width: square-wave: how many places to either side of a value are near.
        focus: of shuffled plans whose oracle is chosen: whether errors are least on ``average``
            over all values, or no value's own frequency may add to its error by much (``head``).
        thesis: of shuffled plans and ``solh``: the hash size and the epsilon of a report that
            wang2021thesis's own formulas give, to compare with.

    >>> Frequencies("age", oracle="ss").attributes
    ('age',)
    """

    kind: ClassVar[str] = "frequencies"
    attributes: tuple[str, ...]
    oracle: str
    split: str
    options: Mapping[str, Any] = field(hash=False)
    focus: str | None  # with thesis, how a shuffled plan is made: no plan holds them
    thesis: bool
    takes_fakes: ClassVar[bool] = True

    def __init__(
        self,
        *attributes: str,
        oracle: str = ADAPTIVE,
        split: str = "people",
        bytes: int | None = None,
        target: str | None = None,
        theta: Any = None,
        chosen: int | None = None,
        hash_bits: int | None = None,
        hash_size: int | None = None,
        length: int | None = None,
        hashes: int | None = None,
        width: int | None = None,
        salt: int | str | None = None,
        cohorts: int | None = None,
        buckets: int | None = None,
        alphabet: str | None = None,
        people: int | None = None,
        instantaneous: Sequence[Any] | None = None,
        half_width: int | None = None,
        focus: str | None = None,
        thesis: bool = False,
    ) -> None:
        if focus not in (None, *FOCUSES):
            raise InvalidInput(f"focus ({focus}) must be one of {', '.join(FOCUSES)}")
        if not attributes or len(set(attributes)) < len(attributes):
            raise InvalidInput("attributes must be one or more different names")
        if split not in SPLITS:
            raise InvalidInput(f"split ({split}) must be one of {', '.join(SPLITS)}")
        options = given(
            bytes=bytes,
            target=target,
            theta=theta,
            chosen=chosen,
            hash_bits=hash_bits,
            hash_size=hash_size,
            length=length,
            hashes=hashes,
            width=width,
            salt=salt,
            cohorts=cohorts,
            buckets=buckets,
            alphabet=alphabet,
            people=people,
            instantaneous=instantaneous,
            half_width=half_width,
        )
        for name, value in (
            ("attributes", attributes),
            ("oracle", plain_name(oracle)),
            ("split", split),
            ("options", plain_options(options)),
            ("focus", focus),
            ("thesis", thesis),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        named = dict(options)
        attributes = named.pop("attributes", None)
        if not are_names(attributes):
            raise InvalidInput('question: attributes must be a list of names, such as ["age"]')
        cls.check_names(named)
        try:
            return cls(*attributes, **named)
        except TypeError:
            raise InvalidInput(
                f"question: options ({', '.join(named)}) do not fit {cls.kind}"
            ) from None

    def attributes_in(self, schema: Schema) -> tuple[str, ...]:
        return self.attributes

    def settled(self, schema: Schema, terms: Terms) -> Frequencies:
        check_oracle_name(self.oracle, is_shuffled=terms.trust == SHUFFLED)
        if terms.trust != SHUFFLED:
            for name, is_given in (("focus", self.focus is not None), ("thesis", self.thesis)):
                if is_given:
                    raise InvalidInput(f"{name} is for shuffled plans (trust='shuffled')")
        return self

    def shuffled_choices(
        self, schema: Schema, epsilon: float, delta: float, people: int, fakes: int
    ) -> Sequence[ShuffledChoice]:
        sizes = [schema[name].size for name in self.attributes]
        ways = shuffled_ways(
            self.oracle, self.options, sizes, self.thesis, epsilon, delta, people, fakes
        )
        return [
            ShuffledChoice(
                Frequencies(*self.attributes, oracle=name, split=self.split, **options),
                cap,
                self.focus,
                name,  # its hash sizes rise
            )
            for name, options, cap in ways
        ]

    def shuffled_loss(self, schema: Schema, terms: Terms, focus: str | None) -> float:
        """The mean squared error of a value, over all values; with ``head`` that of a rare one, if
        what a frequency adds to its own is not too much.
        """
        losses = []
        cohorts = self.cohorts(schema, terms)
        for cohort in cohorts:
            people = max(1, terms.people * cohort.weight // cohorts.weight)
            for ask in cohort.asks:
                source, reports = _heard(ask.oracle, people, terms)
                noise = source.noise(reports)
                losses.append(shuffled_error(noise, ask.oracle.size, people, focus))
        return sum(losses) / len(losses)

    def candidates(self, schema: Schema, words: Sequence[str]) -> dict[str, Sequence[str]]:
        """For the open attributes, or for all if none is open."""
        open_ones = [name for name in self.attributes if schema[name].is_open]
        return dict.fromkeys(open_ones or self.attributes, words)

    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        share = (
            terms.epsilon if self.split == "people" else shared(terms.epsilon, len(self.attributes))
        )
        people = terms.people if self.split == "budget" else terms.people // len(self.attributes)
        asks = [self._ask(schema, name, share, max(people, 1)) for name in self.attributes]
        if self.split == "budget":
            return Listed([Cohort(tuple(asks))])
        return Listed([Cohort((ask,)) for ask in asks])

    def _ask(self, schema: Schema, name: str, epsilon: Decimal, people: int) -> Ask:
        attribute = schema[name]
        if isinstance(attribute, Items):
            raise InvalidInput(
                f"attribute {name!r} is a set of items; Frequencies takes a single value"
            )
        if not attribute.sensitive:
            raise InvalidInput(
                f"attribute {name!r} is public; only sensitive attributes are whispered"
            )
        options = dict(self.options)
        if "salt" in options_of(self.oracle) and "salt" not in options:
            options["salt"] = named_salt(schema.to_json(), name)
        if "people" in options_of(self.oracle) and "people" not in options:
            options["people"] = people
        source = oracle_with(self.oracle, attribute.size, epsilon, options)
        return Ask(Cells.of(schema, name), source)

    def estimate(
        self,
        aggregate: Aggregate,
        candidates: Mapping[str, Sequence[Any]] | Sequence[Any] | None = None,
        decoder: str | None = None,
        complete: bool = False,
    ) -> Estimate:
        """One table per attribute.

        Args:
            aggregate: what the crowd said.
            candidates: the values to estimate, needed for open alphabets.
            decoder: for oracles of cohorts, ``least-squares`` (unbiased, the default), ``nnls`` or
                ``lasso``.
            complete: for oracles of cohorts, whether the candidates are declared to be all that
                people say.
        """
        if complete and candidates is None:
            raise InvalidInput("complete is said of candidates; give them too")
        aggregate.require_people()
        if isinstance(candidates, Mapping):
            unknown = [name for name in candidates if name not in self.attributes]
            if unknown:
                raise InvalidInput(f"candidates: attribute {unknown[0]!r} was not asked for")
        tables: dict[tuple[str, ...], Table] = {}
        for place, name in enumerate(self.attributes):
            cohort, ask = (0, place) if self.split == "budget" else (place, 0)
            listed = candidates.get(name) if isinstance(candidates, Mapping) else candidates
            is_all = complete and listed is not None
            tables[(name,)] = _table(aggregate, name, (cohort, ask), listed, decoder, is_all)
        people = round(aggregate.people * (1 - aggregate.fake_share))
        return Estimate(tables, people, schema=aggregate.plan.schema)

    def predict(self, schema: Schema, terms: Terms, series: Series | None = None) -> Prediction:
        """The standard error of a rare value, by attribute."""
        cohorts = self.cohorts(schema, terms)
        terms = round_terms(self, schema, terms, series)
        people = terms.people
        figures, oracles = [], []
        for cohort in cohorts:
            share = max(1, people * cohort.weight // cohorts.weight)
            for ask in cohort.asks:
                source = ask.oracle
                if _is_unpredicted(source):
                    reason = (
                        f"error: of {source.names[0]} over an open alphabet it depends on the "
                        "candidates"
                    )
                    return Prediction(nan, source.names[0], unknown=reason)
                heard, reports = _heard(source, share, terms)
                figures.append(Figure(ask.encoding.attributes[0], sqrt(heard.variance(reports))))
                oracles.append(source.names[0])
        order = sorted(
            range(len(figures)), key=lambda place: (-figures[place].error, oracles[place])
        )
        worst = order[0]
        told = tuple(figures[place] for place in order)
        return Prediction(figures[worst].error, oracles[worst], told, tuple(sorted(set(oracles))))

    def explain(self, plan: Plan) -> list[str]:
        lines = [
            f"Question: the frequency of each value of {', '.join(self.attributes)}",
            f"People: {plan.round_people:,} in {len(plan.cohorts)} "
            f"cohort{'s' if len(plan.cohorts) > 1 else ''}",
        ]
        for index in range(len(plan.cohorts)):
            for ask in plan.cohorts[index].asks:
                lines.append(self._explain_ask(ask, plan.cohort_people(index), plan.round_terms))
        return lines

    def _explain_ask(self, ask: Ask, people: int, terms: Terms) -> str:
        chosen = ask.oracle
        if _is_unpredicted(chosen):
            error = "predicted error depends on the candidates"
        else:
            heard, reports = _heard(chosen, people, terms)
            rare, common = (sqrt(heard.variance(reports, f)) for f in (0, COMMON))
            error = f"predicted standard error {rare:.2g} for a rare value"
            if terms.trust == SHUFFLED:  # where oracles differ most in it
                error += f", {common:.2g} for one that a tenth hold"
        name = ask.encoding.attributes[0]
        size = "an open alphabet" if chosen.size >= 1 << 64 else f"{chosen.size:,} values"
        about = chosen.about
        if chosen.package:
            about += f"; of the package {chosen.package}"
        return (
            f"  {name}: {size}, oracle {chosen.names[0]} ({about}), {people:,} people, "
            f"{chosen.bits:,} bit{'s' if chosen.bits > 1 else ''} per report, epsilon "
            f"{chosen.epsilon:.6g}, {error}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "attributes": list(self.attributes),
            "oracle": self.oracle,
            "split": self.split,
            "options": dict(sorted(self.options.items())),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            *data["attributes"], oracle=data["oracle"], split=data["split"], **data["options"]
        )


def _heard(source: Oracle, people: int, terms: Terms) -> tuple[Oracle, int]:
    """An oracle among the fakes of shufflers, and how many reports are heard from a cohort."""
    share = terms.fake_share
    if not share or not isinstance(source, PureOracle):
        return source, people
    return source.among_fakes(share), round(people / (1 - share))


def _is_unpredicted(source: Oracle) -> bool:
    """Whether an oracle's error depends on candidates that nobody has named yet."""
    return isinstance(source, CohortOracle) and source.size > MOST_SOLVED


def _table(
    aggregate: Aggregate,
    name: str,
    asked: tuple[int, int],
    listed: Sequence[Any] | None,
    decoder: str | None,
    is_all: bool,
) -> Table:
    """The table of an attribute, which is what one ask of one cohort is about.

    Args:
        aggregate: what the crowd said.
        name: of the attribute.
        asked: the places of the cohort and of its ask.
        listed: the candidates, if there are any.
        decoder: for an oracle of cohorts.
        is_all: whether what is listed is all that people say.
    """
    cohort, ask = asked
    schema = aggregate.plan.schema
    source = aggregate.oracle(cohort, ask)
    reports = aggregate.cohort_people(cohort)
    people = round(reports * (1 - aggregate.fake_share))
    if people == 0:
        raise InvalidInput(f"attribute {name!r}: nobody of its cohort was heard yet")
    if listed is not None:
        listed = list(listed)
        if not listed:
            raise InvalidInput(f"attribute {name!r}: candidates must be at least one value")
    codes = (
        None
        if listed is None
        else np.array([schema.code(name, value) for value in listed], np.uint64)
    )
    labels = schema[name].labels() if listed is None else list(listed)
    if isinstance(source, CohortOracle):
        decoder = DECODERS[0] if decoder is None else decoder
        decoded = source.decode(
            aggregate.state(cohort, ask), reports, codes, decoder=decoder, is_complete=is_all
        )
        table = Table(
            (name,),
            labels,
            decoded.frequencies,
            decoded.variances,
            people,
            Noise(float(decoded.variances.mean()), 0.0),
            method=source.names[0],
            is_complete=is_all or len(labels) == source.size,
        )
        return marked(table, decoded, decoder)
    for option, value in (("decoder", decoder), ("complete", is_all or None)):
        if value is not None:
            raise InvalidInput(
                f"{option} ({value}) is for rappor, o-rr and o-rappor, not for {source.names[0]}"
            )
    support = aggregate.support(cohort, ask, codes)
    values, variances = aggregate.frequencies(cohort, ask, codes)
    noise = source.noise(reports)
    if isinstance(source, SummedOracle) and source.uses_state:
        noise = source.observed_noise(aggregate.state(cohort, ask), reports)
    law = (
        PureLaw(support, source.p, source.q, _encoding(source))
        if isinstance(source, PureOracle)
        else None
    )
    return Table(
        (name,),
        labels,
        values,
        variances,
        people,
        noise,
        method=source.names[0],
        is_complete=len(labels) == source.size,
        law=law,
        sum_noise=partial(source.sum_noise, reports) if isinstance(source, PureOracle) else None,
    )


def _encoding(source: PureOracle) -> str:
    if isinstance(source, GeneralizedRandomizedResponse):
        return "direct"
    return "bits" if isinstance(source, UnaryEncoding) else "other"
