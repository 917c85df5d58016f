"""The laws that every method for marginals obeys, of this package or of another one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.api.planning import plan
from sottovoce.audit.laws import alike, must
from sottovoce.audit.part_checks import PartCheck, checked_laws
from sottovoce.audit.plans import audit_plan
from sottovoce.audit.repeated import REPEATS, RepeatedTable, is_off, variance_ratio, worst_bias
from sottovoce.device.simulation import simulate
from sottovoce.ground.arguments import plain_options
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals import Marginals
from sottovoce.questions.marginals.estimate import MarginalEstimate
from sottovoce.questions.marginals.method import Fit, MarginalMethod
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.schema import Boolean, Categorical, Schema

CASE_PEOPLE = 2000
CASE_DRAWS = 2000  # reports of an audit with real coins
LEAST_REPEATS = REPEATS // 2  # that say of a table that it is unbiased, or else none should
CASE_WAYS = 100_000  # that an audit enumerates, about
# of these the first that a method takes
CASE_SCHEMAS = (
    Schema(a=Boolean(), b=Categorical(["x", "y", "z"]), c=Boolean()),
    Schema(a=Boolean(), b=Boolean(), c=Boolean()),
)


@dataclass(frozen=True, eq=False)
class MethodCase:
    """A method, and a small survey by it."""

    method: MarginalMethod
    schema: Schema
    terms: Terms
    options: Mapping[str, Any]  # as a person would give them

    @cached_property
    def question(self) -> Marginals:
        return Marginals(2, method=self.method.name, options=self.options)

    @cached_property
    def work(self) -> Workload:
        return self.question.work(self.schema)

    @cached_property
    def plan(self) -> Plan:
        epsilon, people = self.terms.epsilon, self.terms.people
        return plan(self.schema, self.question, epsilon=epsilon, people=people)

    @property
    def settled(self) -> Mapping[str, Any]:
        """The options that the plan holds."""
        found: Mapping[str, Any] = self.plan.asked["options"]
        return found

    @cached_property
    def people(self) -> dict[str, NDArray[Any]]:
        """Codes of people whose attributes go together."""
        draws = np.random.default_rng(1)
        first = draws.random(self.terms.people) < 0.3
        out: dict[str, NDArray[Any]] = {}
        for name, attribute in self.schema.items():
            other = draws.integers(0, attribute.size, self.terms.people)
            codes = np.where(draws.random(self.terms.people) < 0.6, first, other)
            out[name] = np.asarray(attribute.labels(), dtype=object)[codes.astype(np.int64)]
        return out

    def truth(self, places: Places) -> NDArray[np.float64]:
        """The true table of some attributes, flat."""
        shape = self.work.shape(places)
        codes = []
        for name in self.work.attributes(places):
            labels = list(self.schema[name].labels())
            codes.append(np.array([labels.index(value) for value in self.people[name]]))
        cells = np.ravel_multi_index(codes, shape)
        return np.bincount(cells, minlength=int(np.prod(shape))) / self.terms.people

    @cached_property
    def sets(self) -> list[Places]:
        """Every set of attributes."""
        count = range(len(self.work.names))
        return [each for size in range(1, len(count) + 1) for each in combinations(count, size)]

    def aggregate(self, seed: int) -> Aggregate:
        return Aggregate(self.plan).add(simulate(self.plan, self.people, seed))

    def estimate(self, seed: int) -> MarginalEstimate:
        found = self.aggregate(seed).estimate()
        assert isinstance(found, MarginalEstimate)
        return found

    @cached_property
    def fit(self) -> Fit:
        return self.estimate(1).fit

    @property
    def holds_over_salts(self) -> bool:
        """Whether an oracle of the plan is unbiased on average over salts alone."""
        kinds = self.plan.cohorts.kinds
        return any(oracle.holds_over_salts for cohort in kinds for oracle in cohort.oracles)

    @cached_property
    def unbiased(self) -> dict[Places, RepeatedTable]:
        """Runs of every table that is said to be unbiased."""
        chosen = [places for places in self.sets if self.fit.is_unbiased(places)]
        found = {places: RepeatedTable() for places in chosen}
        for seed in range(1, REPEATS + 1) if chosen else ():
            estimate = self.estimate(seed)
            for places, runs in found.items():
                if estimate.fit.is_unbiased(places):
                    runs.add(estimate.marginal(*self.work.attributes(places)))
        for places, runs in found.items():
            names = ", ".join(self.work.attributes(places))
            said = f"{names}: said to be unbiased of {runs.runs} of {REPEATS} crowds' reports"
            must(runs.runs >= LEAST_REPEATS, said)
        return found


def options_stand_in_a_plan(case: MethodCase) -> None:
    first = case.method.settle(case.work, case.terms, case.options)
    again = case.method.settle(case.work, case.terms, case.options)
    must(first == again, "the same options are settled in two ways")
    text = json.dumps(plain_options(first))
    must(text == json.dumps(first), "settled options hold floats, or numbers in another spelling")
    settled = case.plan.question
    must(
        settled.settled(case.schema, case.terms) == settled,
        "a plan's question is settled in another way again",
    )
    try:
        case.method.settle(case.work, case.terms, {**case.options, "no_such_option": 1})
    except InvalidInput:
        return
    must(False, "an option that it does not have is not refused")


def plans_are_read_back_as_they_were_written(case: MethodCase) -> None:
    read = Plan.from_json(case.plan.text)
    must(read.question == case.plan.question, "the question that is read back is another one")
    must(read.cohorts == case.plan.cohorts, "the cohorts that are read back are other ones")


def one_report_costs_at_most_epsilon(case: MethodCase) -> str:
    found = audit_plan(case.plan, CASE_DRAWS, seed=bytes(16), limit=CASE_WAYS)
    must(found.passed, "; ".join(found.faults))
    return found.kind


def shares_are_those_of_who_is_heard(case: MethodCase) -> None:
    parts = case.work.parts
    shares = case.method.shares(case.work, case.settled, parts)
    must(len(shares) == len(parts), "there must be a share for each attribute and pair")
    for part, share in zip(parts, shares, strict=True):
        names = ", ".join(case.work.attributes(part))
        must(0 <= share <= 1, f"the share of {names} is {share:.4g}")
        # with so many people nobody is left out by chance
        must(
            case.fit.is_heard(part) == (share > 0),
            f"the share of {names} is {share:.4g}, and is_heard says {case.fit.is_heard(part)}",
        )


def tables_are_whole(case: MethodCase) -> None:
    tables, variances = case.fit.tables(case.sets), case.fit.variances(case.sets)
    for places, table, variance in zip(case.sets, tables, variances, strict=True):
        names, cells = ", ".join(case.work.attributes(places)), case.work.cells(places)
        must(
            table.shape == (cells,), f"the table of {names} has shape {table.shape}, not ({cells},)"
        )
        must(variance.shape == (cells,), f"the variances of {names} have shape {variance.shape}")
        must(np.isfinite(table).all(), f"the table of {names} is not finite")
        is_fine = np.isfinite(variance).all() and (variance >= 0).all()
        must(is_fine, f"the variances of {names} must be finite and at least 0")
        is_same = np.allclose(case.fit.tables([places])[0], table, rtol=1e-6, atol=1e-9)
        must(is_same, f"the table of {names} alone is another one")


def the_same_reports_give_the_same_tables(case: MethodCase) -> None:
    total = case.aggregate(1)
    before = total.to_bytes()
    first, again = total.estimate().marginals(2), total.estimate().marginals(2)
    must(total.to_bytes() == before, "an estimate changes what was heard")
    for names, table in first.items():
        alike(table.values, again[names].values, f"{', '.join(names)}: another table each time")
        alike(
            table.variances, again[names].variances, f"{', '.join(names)}: another error each time"
        )


def unbiased_tables_are_right_on_average(case: MethodCase) -> str:
    if case.holds_over_salts:
        return "not checked: its oracle is unbiased over salts alone"
    for places, runs in case.unbiased.items():
        distance, limit = worst_bias(runs, case.truth(places))
        names = ", ".join(case.work.attributes(places))
        must(distance <= limit, f"{names}: a cell is off by {distance:.1f} standard errors")
    return _said(case)


def unbiased_tables_err_as_they_say(case: MethodCase) -> str:
    if case.holds_over_salts:
        return "not checked: its oracle's errors are those over salts"
    for places, runs in case.unbiased.items():
        ratio = variance_ratio(runs, case.truth(places))
        names = ", ".join(case.work.attributes(places))
        must(not is_off(ratio, runs.runs), f"{names}: measured over stated variance is {ratio:.3g}")
    return _said(case)


def _said(case: MethodCase) -> str:
    count = len(case.unbiased)
    return f"{count} tables" if count else "no table is said to be unbiased"


def more_people_are_predicted_to_err_less(case: MethodCase) -> None:
    errors = []
    for people in (case.terms.people, 4 * case.terms.people):
        terms = case.terms.among(people)
        errors.append(case.method.predict(case.work, terms, case.settled))
    must(all(np.isfinite(error) and error > 0 for error in errors), f"it predicts {errors}")
    must(errors[1] <= errors[0], f"four times the people err more: {errors}")


MethodLaw = Callable[[MethodCase], str | None]
METHOD_LAWS: tuple[MethodLaw, ...] = (
    options_stand_in_a_plan,
    plans_are_read_back_as_they_were_written,
    one_report_costs_at_most_epsilon,
    shares_are_those_of_who_is_heard,
    tables_are_whole,
    the_same_reports_give_the_same_tables,
    unbiased_tables_are_right_on_average,
    unbiased_tables_err_as_they_say,
    more_people_are_predicted_to_err_less,
)


def method_case(
    name: str, epsilon: Any = 1, options: Mapping[str, Any] | None = None
) -> MethodCase:
    """A small survey by the method of this name: on mixed attributes, or on yes and no."""
    found, terms = method(name), Terms.of(epsilon, CASE_PEOPLE)
    reasons = []
    for schema in CASE_SCHEMAS:
        case = MethodCase(found, schema, terms, options or {})
        reason = found.refuse(case.work, terms)
        if reason is None:
            if options:
                _check_given(case)
            return case
        reasons.append(reason)
    raise InvalidInput(f"method ({name}) fits no small survey: {'; '.join(reasons)}")


def _check_given(case: MethodCase) -> None:
    """Refuse options that the method refuses; whatever else goes wrong in it is for its laws."""
    try:
        case.method.settle(case.work, case.terms, case.options)
    except InvalidInput:
        raise
    except Exception:
        return


def check_method(
    name: str,
    epsilon: Any = 1,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> PartCheck:
    """Check every law that a method for marginals obeys, on a small survey.

    Args:
        name: of the method; one of another package must be installed.
        epsilon: what a report may cost.
        options: those that a question would give.
        progress: told how many laws were checked.

    >>> check_method("marg-ps").passed
    True
    """
    case = method_case(name, epsilon, options)
    sizes = " x ".join(str(size) for size in case.work.sizes)
    about = f"{sizes} values, {case.terms.people:,} people, epsilon {case.terms.epsilon}"
    return PartCheck(f"method {name}", about, checked_laws(METHOD_LAWS, case, progress))
