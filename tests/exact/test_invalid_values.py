"""Silence tells, so a device that is asked reports whatever its person's value is: the laws,
enumerated.

A value that the schema does not have is reported as the attribute's ``other``, or as a drawn one:
the law of the report is then a mixture of the laws of valid values, so no two records differ by
more than e^epsilon.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Tape, exact_law
from sottovoce.oracles.thresholds import exceeds
from sottovoce.protocol.encodings import Ask, Cells, Drawn, Extensions, Held, Padded, Window
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from tests.vectors.asks import asking

SCHEMA = sv.Schema(
    x=sv.Categorical(["a", "b", "c"]),
    named=sv.Categorical(["a", "b", "other"], other="other"),
    yes=sv.Boolean(other=False),
    number=sv.Integer(bits=3),
    letter=sv.Text(bytes=1, alphabet="abc"),
    basket=sv.Items(["milk", "bread", "tea"]),
)
EPSILON = Decimal("0.9")
INVALID = ("hiv", None, 17, 0.5, [], {}, object())
SILENT = b"nothing"


def _asks(*encodings: Any) -> Plan:
    """A plan with a cohort for each encoding."""

    def build(schema: sv.Schema, epsilon: Decimal) -> Family:
        oracles = ["olh-sets" if isinstance(each, Drawn) else "grr" for each in encodings]
        options = [{"length": each.length} if isinstance(each, Drawn) else {} for each in encodings]
        made = [
            Ask(each, sv.oracle(name, size=each.size, epsilon=epsilon, **more))
            for each, name, more in zip(encodings, oracles, options, strict=True)
        ]
        return Listed([Cohort((ask,)) for ask in made])

    return asking(f"invalid {[each.kind for each in encodings]}", SCHEMA, build, str(EPSILON))


CODES = _asks(Cells.of(SCHEMA, "x", "named"), Cells.of(SCHEMA, "yes"), Cells.of(SCHEMA, "number"))
SPELLINGS = _asks(
    Window("number", 3, 0, 2),
    Extensions("number", 3, 1, ((1, 0), (1, 1))),
    Window("letter", 2, 0, 2),
    Window("x", 2, 0, 2),
)
MEMBERS = _asks(Padded("basket", 3, None, 2), Held("basket", 3, None, 2))
VALID: dict[str, Sequence[Any]] = {
    "x": ("a", "c"), "named": ("a", "other"), "yes": (True, False), "number": (0, 7),
    "letter": ("", "c"), "basket": ([], ["milk"], ["milk", "bread", "tea"]),
}  # fmt: skip


def law(plan: sv.Plan, record: Any, invalid: str = "draw") -> dict[bytes, Fraction]:
    """The exact law of all that a collector sees."""

    def seen(entropy: Any) -> bytes:
        try:
            return sv.Client(plan, entropy=entropy, invalid=invalid).report(record).to_bytes()
        except sv.InvalidInput:
            return SILENT

    return exact_law(seen, 1 << 14)


def worst(laws: Sequence[dict[bytes, Fraction]]) -> Fraction | None:
    """The largest ratio of the chances of one thing under two records; None if one of them never
    sees it.
    """
    largest = Fraction(1)
    for thing in {key for each in laws for key in each}:
        chances = [each.get(thing, Fraction(0)) for each in laws]
        if min(chances) == 0:
            return None
        largest = max(largest, max(chances) / min(chances))
    return largest


def records(plan: sv.Plan) -> list[dict[str, Any]]:
    """Valid records, those without a valid value in one attribute or in all, and with what nobody
    asks about.
    """
    asked = plan.cohorts.attributes
    first = {name: VALID[name][0] for name in asked}
    made: list[dict[str, Any]] = [
        first,
        {name: VALID[name][-1] for name in asked},
        {},
        {"mystery": 1, **first},
    ]
    for name in asked:
        made.append({key: value for key, value in first.items() if key != name})
        made += [{**first, name: value} for value in INVALID]
    return made


@pytest.mark.filterwarnings("ignore::sottovoce.device.client.InvalidValueWarning")
@pytest.mark.parametrize("plan", [CODES, SPELLINGS, MEMBERS], ids=["codes", "spellings", "members"])
def test_no_record_differs_from_another_by_more_than_epsilon(plan: sv.Plan) -> None:
    listed = records(plan)
    laws = [law(plan, record) for record in listed]
    assert all(sum(each.values()) == 1 and SILENT not in each for each in laws)
    found = worst(laws)
    assert found is not None
    assert not exceeds(found, EPSILON)


def test_a_device_that_raises_tells_by_its_silence() -> None:
    """The mutant: what the caller may choose, and what the collector then learns with certainty."""
    for plan, record in (
        (CODES, {}),
        (SPELLINGS, {"number": 1, "letter": "z", "x": "a"}),
        (MEMBERS, {"basket": ["hiv"]}),
    ):
        valid = {name: VALID[name][0] for name in plan.cohorts.attributes}
        assert law(plan, record, "raise") == {SILENT: 1}
        assert worst([law(plan, valid, "raise"), law(plan, record, "raise")]) is None


@pytest.mark.filterwarnings("ignore::sottovoce.device.client.InvalidValueWarning")
def test_an_invalid_value_is_a_mixture_of_valid_ones() -> None:
    """A drawn code has every value's law with equal weight; ``other`` has its own; no set is the
    empty set's.
    """
    number = _asks(Cells.of(SCHEMA, "number"))
    laws = [law(number, {"number": value}) for value in range(8)]
    mixed = {key: sum(each[key] for each in laws) / 8 for key in laws[0]}
    assert law(number, {"number": "hiv"}) == mixed
    named = _asks(Cells.of(SCHEMA, "named"))
    assert law(named, {"named": "hiv"}) == law(named, {"named": "other"})
    assert law(MEMBERS, {"basket": 5}) == law(MEMBERS, {}) == law(MEMBERS, {"basket": []})
    assert law(MEMBERS, {"basket": ["hiv", "tea", ["milk"]]}) == law(MEMBERS, {"basket": ["tea"]})


def test_the_developer_is_warned_without_the_value() -> None:
    with pytest.warns(
        sv.InvalidValueWarning, match="^attribute 'number': the record has no valid value of it"
    ) as told:
        sv.Client(_asks(Cells.of(SCHEMA, "number"))).report({"number": "hiv"})
    assert "hiv" not in str(told[0].message)


def test_what_is_no_record_raises_in_any_case() -> None:
    for record in (None, 5, "x", [("number", 1)]):
        with pytest.raises(sv.InvalidInput, match="record must be a mapping"):
            sv.Client(CODES, entropy=Tape(b"")).report(record)  # type: ignore[arg-type]
    with pytest.raises(sv.InvalidInput, match=r"invalid \(ignore\) must be one of draw, raise"):
        sv.Client(CODES, invalid="ignore")


def test_other_must_be_one_of_the_values() -> None:
    assert sv.Schema.from_json(SCHEMA.to_json()).to_json() == SCHEMA.to_json()
    for make in (
        lambda: sv.Categorical(["a", "b"], other="c"),
        lambda: sv.Ordinal(1, 9, other=10),
        lambda: sv.Integer(bits=3, other=8),
        lambda: sv.Integer(bits=60, other=1 << 59),
        lambda: sv.Boolean(other="perhaps"),
    ):
        with pytest.raises(sv.InvalidInput, match="other"):
            make()
    # the first of its bin: one spelling for each
    assert sv.Ordinal(18, 97, bins=16, other=25).other == 23


def test_names_that_javascript_would_move_are_refused() -> None:
    for name in ("0", "7", "2020"):
        with pytest.raises(sv.InvalidInput, match="must not be a number"):
            sv.Schema(**{name: sv.Boolean()})
    sv.Schema(**{"007": sv.Boolean(), "1.5": sv.Boolean()})


class Liar:
    """Equal to everything, and a number that no attribute has."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __int__(self) -> int:
        return 5


def test_no_value_makes_a_device_raise_even_where_warnings_do() -> None:
    plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (True, "perhaps", None, Liar(), float("nan")):
            assert sv.Client(plan, sv.ClientState()).report({"x": value}).plan_id == plan.id
