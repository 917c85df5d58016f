"""The methods by name: their settings, and the rounds that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sottovoce.ground.arguments import share, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import ADAPTIVE
from sottovoce.questions.base import AUTO, SPLITS
from sottovoce.questions.itemsets.padding import PLAIN, WHOLE_SETS

FIND, SIZES, COUNT = "find", "sizes", "count"  # what a round is for
# lengths that follow from what was heard: the 90th percentile of sizes, the least predicted error,
# all candidates
PERCENTILE, BEST, CANDIDATES = "percentile", "best", "candidates"
FROM_SIZES = (PERCENTILE, BEST)
MAX_ITEM_CANDIDATES = 1 << 16
MOST_SIZES = 32  # that are told apart to choose a length by predicted error
LEAST_SIZES = 64  # that are told apart when whole sets are counted


@dataclass(frozen=True)
class RoundStep:
    """One round: what it is for, and its share of the people."""

    name: str
    share: int


@dataclass(frozen=True)
class Setting:
    """What a method's settings depend on."""

    items: int
    top: int
    epsilon: Decimal
    people: int
    sets: bool  # whether itemsets are wanted, or items


LDPMINER = {
    "first_oracle": "blh",
    "first_length": PERCENTILE,
    "second_oracle": "sue",
    "second_length": CANDIDATES,
    "update": False,
}
SVIM = {
    "first_oracle": ADAPTIVE,
    "first_length": 1,
    "second_oracle": ADAPTIVE,
    "second_length": PERCENTILE,
    "update": True,
}
WHEEL = {
    "first_oracle": BEST,
    "first_length": BEST,
    "second_oracle": BEST,
    "second_length": BEST,
    "update": True,
    "combine": True,
    "sizes_oracle": "adaptive",
}
ABOUT = {
    "psfo": ("padding and sampling, one round", "wang2021thesis, section 5.2"),
    "ldpminer": (
        "candidates, then counts padded to their number",
        "wang2021thesis, sections 5.1.1 and 5.4",
    ),
    "svim": (
        "candidates, sizes, then counts padded to the 90th percentile",
        "wang2021thesis, section 5.3.1",
    ),
    "wheel": (
        "whole sets through one hash, lengths by predicted error, both rounds' evidence",
        "wang2020set",
    ),
    "svsm": (
        "items as by svim, then sets of them by guessed frequency",
        "wang2021thesis, section 5.3.2",
    ),
}


def settle(method: str, options: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    """Every option of a method, with those not given as the method has them."""
    if method == "psfo" and not setting.sets:
        return _settle_psfo(options)
    two_phases = {"ldpminer": LDPMINER, "svsm" if setting.sets else "svim": SVIM, "wheel": WHEEL}
    if method not in two_phases:
        known = ", ".join([AUTO, *two_phases] if setting.sets else [AUTO, "psfo", *two_phases])
        raise InvalidInput(f"method ({method}) must be one of {known}")
    return _settle_phases(method, two_phases[method], options, setting)


def _settle_psfo(options: Mapping[str, Any]) -> dict[str, Any]:
    _allowed("psfo", options, ("length", "oracle", "delta"))
    delta = options.get("delta")
    return {
        "length": whole("length", options.get("length", 1), 1, MAX_ITEM_CANDIDATES),
        "oracle": _oracle_name(
            "oracle", options.get("oracle", ADAPTIVE if delta is None else "olh-seeded")
        ),
        "delta": None if delta is None else str(share("delta", delta)),
    }


def _settle_phases(
    method: str, defaults: Mapping[str, Any], options: Mapping[str, Any], setting: Setting
) -> dict[str, Any]:
    chosen = {"split": "people", "sizes_oracle": "olh", "combine": False, **defaults}
    _allowed(method, options, (*chosen, "candidates", "shares"))
    chosen |= options
    if chosen["split"] not in SPLITS:
        raise InvalidInput(f"split ({chosen['split']}) must be one of {', '.join(SPLITS)}")
    for phase, words in (("first", FROM_SIZES), ("second", (*FROM_SIZES, CANDIDATES))):
        chosen[f"{phase}_oracle"] = _oracle_name(f"{phase}_oracle", chosen[f"{phase}_oracle"])
        if chosen[f"{phase}_length"] not in words:
            chosen[f"{phase}_length"] = whole(
                f"{phase}_length", chosen[f"{phase}_length"], 1, MAX_ITEM_CANDIDATES
            )
    if chosen["sizes_oracle"] not in (known := ("adaptive", "grr", *PLAIN)):
        raise InvalidInput(
            f"sizes_oracle ({chosen['sizes_oracle']}) must be one of {', '.join(known)}"
        )
    for name in ("update", "combine"):
        if not isinstance(chosen[name], bool):
            raise InvalidInput(f"{name} ({chosen[name]}) must be true or false")
    asks_sizes = any(chosen[f"{phase}_length"] in FROM_SIZES for phase in ("first", "second"))
    if chosen["split"] == "budget" and (setting.sets or asks_sizes):
        raise InvalidInput(
            "split (budget) has two phases for items: first_length and second_length must be given"
        )
    chosen["candidates"] = whole(
        "candidates", chosen.get("candidates", 2 * setting.top), 1, MAX_ITEM_CANDIDATES
    )
    chosen["shares"] = _shares(chosen.get("shares"), _names(chosen, setting), setting)
    return chosen


def _oracle_name(option: str, name: Any) -> str:
    known = (ADAPTIVE, BEST, "grr", WHOLE_SETS, *PLAIN)
    if name not in known:
        raise InvalidInput(f"{option} ({name}) must be one of {', '.join(known)}")
    return str(name)


def _allowed(method: str, options: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for option in options:
        if option not in names:
            raise InvalidInput(f"option {option!r} is not one of {method}'s ({', '.join(names)})")


def _names(chosen: Mapping[str, Any], setting: Setting) -> tuple[str, ...]:
    """What the rounds are for, in order."""
    names: list[str] = []
    if (
        setting.items > chosen["candidates"]
    ):  # or else every item is a candidate, and none need be found
        names += [SIZES, FIND] if chosen["first_length"] in FROM_SIZES else [FIND]
    counts = [SIZES, COUNT] if chosen["second_length"] in FROM_SIZES else [COUNT]
    return (*names, *counts, *(counts if setting.sets else ()))


# Shares of people in percent, by the rounds of the items' part   wang2021thesis, section 5.4.2
_SHARES = {
    (SIZES, FIND, COUNT): (10, 40, 50),
    (FIND, COUNT): (50, 50),
    (FIND, SIZES, COUNT): (50, 10, 40),
    (SIZES, FIND, SIZES, COUNT): (5, 60, 5, 30),
    (SIZES, COUNT): (10, 90),
    (COUNT,): (100,),
}


def _shares(given: Any, names: tuple[str, ...], setting: Setting) -> list[int]:
    if given is not None:
        if not isinstance(given, list | tuple) or len(given) != len(names):
            raise InvalidInput(
                f"shares must be {len(names)} whole numbers, for the rounds: {', '.join(names)}"
            )
        return [whole("shares", each, 1, 1 << 20) for each in given]
    if not setting.sets:
        return list(_SHARES[names])
    counts = 2 if names[-2:] == (SIZES, COUNT) else 1
    # half of the people find items; sizes of sets 10% and their counts 40% of all
    #     wang2021thesis, section 5.4.3
    later = (20, 80) if counts == 2 else (100,)
    return [*_SHARES[names[:-counts]], *later]


def steps(method: str, options: Mapping[str, Any], setting: Setting) -> tuple[RoundStep, ...]:
    """The rounds of a settled method."""
    if method == "psfo":
        return (RoundStep(COUNT, 1),)
    return tuple(
        RoundStep(name, part)
        for name, part in zip(_names(options, setting), options["shares"], strict=True)
    )
