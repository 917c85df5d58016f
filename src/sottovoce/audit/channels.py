"""The laws of an oracle's channel: privacy, p and q, unbiasedness and variances, by enumeration.

Every way that the coins of the randomizer's own code can fall is gone, with exact chances; what an
estimator makes of a single report is weighed with them. Where reports are too many to list, a crowd
is simulated instead.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.audit.laws import FALSE_ALARM, Law, crowd, must
from sottovoce.audit.oracles import exact
from sottovoce.ground.extras import imported
from sottovoce.oracles import CohortOracle, Oracle, PureOracle

Floats = NDArray[np.float64]

ROUNDING = 1e-8  # of estimates, which are doubles
CROWDS = 40  # simulated where reports are too many to list
SAMPLED_PEOPLE = 1000


def coins_and_options_are_text_and_integers(oracle: Oracle) -> None:
    """A plan holds no floats, and what it says of an oracle builds the same one again."""
    stated = oracle.to_json()
    must(not _has_float(stated), "a plan would hold a float")
    text = json.dumps(stated)
    again = type(oracle).build(oracle.size, oracle.requested, **json.loads(text)["options"])
    must(again.to_json() == stated, "its options and epsilon build another oracle")


def _has_float(part: Any) -> bool:
    if isinstance(part, dict):
        return any(_has_float(each) for each in part.values())
    if isinstance(part, list | tuple):
        return any(_has_float(each) for each in part)
    return isinstance(part, float)


def the_realised_epsilon_is_at_most_the_one_asked_for(oracle: Oracle) -> None:
    """What the oracle says of itself; enumeration says whether it is true."""
    claimed, asked = oracle.epsilon, float(oracle.requested)
    must(claimed <= asked, f"epsilon is {claimed:.12g} as realised, {asked:.12g} was asked for")


def chances_add_up_to_one(oracle: Oracle) -> None:
    """Of all ways that the coins can fall, for every value."""
    for law in oracle.exact_channel():
        must(sum(law.values()) == 1, "the chances of all reports on a value do not add up to 1")


def no_report_tells_two_values_apart_by_more_than_epsilon(oracle: Oracle) -> None:
    """Local differential privacy, exactly: the largest ratio of chances over all reports."""
    found = exact(oracle)
    must(found.passed, f"one report costs {found.epsilon_found:.12g}, see worst_ratio")


def p_and_q_are_those_of_the_channel(oracle: Oracle) -> None:
    """The chance that a report supports the true value, and any other, exactly."""
    if not isinstance(oracle, PureOracle) or oracle.holds_over_salts:
        return
    for value, law in enumerate(oracle.exact_channel()):
        for asked in range(oracle.size):
            hits = sum(
                (chance for output, chance in law.items() if oracle.supports(output, asked)),
                Fraction(0),
            )
            name, stated = ("p", oracle.exact_p) if asked == value else ("q", oracle.exact_q)
            must(
                hits == stated,
                f"exact_{name} is {float(stated):.9g}; enumerated it is {float(hits):.9g}",
            )


def estimates_are_unbiased(oracle: Oracle) -> None:
    """The mean of the estimates from one report, over all reports, is 1 at its value, else 0."""
    if oracle.holds_over_salts:
        return
    chances, estimates = _single_reports(oracle)
    bias = np.abs(chances @ estimates - np.eye(oracle.size)).max()  # (values, values)
    must(bias < ROUNDING * _scale(estimates), f"estimates are off by {bias:.3g} on average")


def variances_are_those_of_the_formula(oracle: Oracle) -> None:
    """The variance of the estimates from one report, over all reports, is what all_variances says,
    which follows from noise().
    """
    if oracle.holds_over_salts:
        return
    chances, estimates = _single_reports(oracle)
    means = chances @ estimates
    enumerated = chances @ estimates**2 - means**2
    one_person = np.eye(oracle.size)
    stated = np.array([oracle.all_variances(1, shares) for shares in one_person])
    worst = np.abs(enumerated - stated).max()
    must(
        worst < ROUNDING * _scale(estimates) ** 2,
        f"a variance differs by {worst:.3g} from the formula of one report",
    )


def _single_reports(oracle: Oracle) -> tuple[Floats, Floats]:
    """The channel (values, reports), and the estimates from each report (reports, values)."""
    estimates = np.array([oracle.estimate_reports([output])[0] for output in oracle.outputs()])
    return oracle.channel(), estimates


def _scale(estimates: Floats) -> float:
    return max(1.0, float(np.abs(estimates).max()))


def errors_of_crowds_are_those_of_the_formula(oracle: Oracle) -> None:
    """Where reports are too many to list: squared errors over their variances add up to a number
    that is chi-squared, nearly; both of its tails are refused.
    """
    if isinstance(oracle, CohortOracle) or oracle.holds_over_salts:
        return
    values = crowd(oracle, SAMPLED_PEOPLE)
    asked = np.arange(min(oracle.size, 4))
    shares = np.array([np.mean(values == value) for value in asked])
    variances = oracle.noise(SAMPLED_PEOPLE).variance(shares)
    errors = np.array(
        [
            oracle.estimate_reports(oracle.simulate(values, seed=100 + number), asked)[0] - shares
            for number in range(CROWDS)
        ]
    )  # (crowds, values)
    special = imported("scipy.special")
    chance = FALSE_ALARM / (3 * len(asked))
    bias = np.abs(errors.mean(axis=0)) / np.sqrt(variances / CROWDS)
    must(bias.max() < -special.ndtri(chance / 2), "estimates of simulated crowds are biased")
    squares = (errors**2).sum(axis=0) / variances
    low, high = special.chdtri(CROWDS, 1 - chance), special.chdtri(CROWDS, chance)
    must(
        low < squares.min() and squares.max() < high,
        "errors of simulated crowds do not have the variance of the formula",
    )


STATED: tuple[Law, ...] = (
    coins_and_options_are_text_and_integers,
    the_realised_epsilon_is_at_most_the_one_asked_for,
)
ENUMERATED: tuple[Law, ...] = (
    chances_add_up_to_one,
    no_report_tells_two_values_apart_by_more_than_epsilon,
    p_and_q_are_those_of_the_channel,
    estimates_are_unbiased,
    variances_are_those_of_the_formula,
)
