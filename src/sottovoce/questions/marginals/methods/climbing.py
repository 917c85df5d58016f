"""Expectation maximization (EM) over channels: answers of several attributes become a table.

f(x) is a table over cells x, P(y | x) the channel of an answer y, and h(y) the shares reported. A
joint answer is what one person says to several attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sottovoce.oracles import PureOracle
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.methods.coefficients import along, along_rows
from sottovoce.questions.marginals.models.structure import EVENNESS

Estimates = tuple[Floats, NDArray[np.int64]]  # (tables, *values) and (tables,)

# change of a cell at which EM stops: Omega of cormode2018marginal, section 5.4
CELL_TOLERANCE = 1e-5
EM_STEPS = 50_000  # of one table at most
EM_WORK = 1 << 34  # multiplications of one call of climb at most

MAX_JOINT_LAW_WORK = 1 << 18  # tables x cells x answers up to which one joint matrix is faster
MAX_CROWD_LAW = 1 << 16  # cells x answers up to which the people of a crowd are fixed
UNIFORM_PART = 0.01  # of a start, since a cell that starts at 0 stays there
TYPICAL_TIE = 0.25  # the share of such a population in which attributes go together in any way


@dataclass(frozen=True)
class Channel:
    """The randomizer of one attribute as a matrix, and its unbiased inverse."""

    law: Floats  # (values, answers): P(y | x), so that rows sum to 1
    inverse: Floats  # (values, answers): what an answer adds to each value's unbiased frequency

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, source: PureOracle) -> Channel:
        """Of ``grr`` or ``hr``: answers that support a value are alike, and so are all others."""
        values = np.arange(source.size)[:, None]  # (values, 1)
        if source.names[0] == "hr":
            # row x + 1 of the Hadamard matrix has a +1 at y where <x + 1, y> is even
            answers = np.arange(1 << source.bits)
            supports = np.bitwise_count((values + 1) & answers) & 1 == 0
        else:
            answers = np.arange(source.size)
            supports = values == answers
        # supports: (values, answers), and every value is supported by equally many answers
        supporting = int(supports[0].sum())
        chance_inside = source.p / supporting
        chance_outside = (1 - source.p) / (len(answers) - supporting)
        law = np.where(supports, chance_inside, chance_outside)
        # f(x) = (share of answers that support x - q) / (p - q)
        inverse = (supports - source.q) / source.gap
        return cls(law, inverse)


Channels = Sequence[Channel]  # one for each attribute of a table


def climb(
    heard: Floats,
    laws: Sequence[Floats],
    start: Floats,
    work: int = EM_WORK,
    steps: int = EM_STEPS,
    tolerance: float = CELL_TOLERANCE,
) -> Estimates:
    """EM for many tables over the same channels at once.

    A table stops when no cell of it changes by the tolerance any more; all stop at the limits.

    Args:
        heard: Shares h(y) of the joint answers, (tables, *answers): one axis for each attribute.
        laws: The channel of each attribute, (values, answers).
        start: First guesses, (tables, *values).
        work: Multiplications that may be spent on all tables together.
        steps: The most steps of one table.
        tolerance: The change of a cell at which a table stops.

    Returns:
        The guesses, shaped as ``start``, and the steps that each table took, (tables,).
    """
    batch, shape = len(start), start.shape[1:]
    answer_shape = [law.shape[1] for law in laws]
    cells, answers = prod(shape), prod(answer_shape)
    # One matrix for all axes is fastest while small; else the axes are multiplied one by one.
    joint = None
    if batch * cells * answers <= MAX_JOINT_LAW_WORK:
        joint = joint_law(laws)  # (cells, answers)
    transposed = [law.T for law in laws]
    affordable = max(2, work // (batch * cost(laws)))
    guess = start.reshape(batch, cells).copy()
    steps_taken = np.zeros(batch, np.int64)
    # Only the tables that still move are computed: ``active`` are their rows of ``guess``.
    active = np.arange(batch)
    current = guess.copy()  # (active, cells)
    shares = heard.reshape(batch, answers)  # (active, answers)
    for step in range(1, min(steps, affordable) + 1):
        # f(x) <- f(x) sum_y P(y|x) h(y) / sum_x' P(y|x') f(x')     cormode2018marginal, section 4.4
        if joint is not None:
            ratio = _ratio(shares, current @ joint)  # (active, answers)
            gain = ratio @ joint.T  # (active, cells)
        else:
            ratio = _ratio(shares, along_rows(current, shape, transposed))
            gain = along_rows(ratio, answer_shape, laws)
        update = current * gain
        is_moving = np.abs(update - current).max(axis=1) >= tolerance  # (active,)
        current = update
        steps_taken[active] = step
        if not is_moving.all():
            guess[active] = current
            active, current, shares = active[is_moving], current[is_moving], shares[is_moving]
            if not len(active):
                break
    guess[active] = current
    return guess.reshape(start.shape), steps_taken


def cost(laws: Sequence[Floats]) -> int:
    """About how many multiplications one step takes for one table."""
    answers = prod(law.shape[1] for law in laws)
    values = sum(law.shape[0] for law in laws)
    return int(2 * answers * values)  # there and back, one axis after the other


def joint_law(laws: Sequence[Floats]) -> Floats:
    """The chance of each joint answer (columns) for each cell (rows)."""
    joint: Floats = np.ones((1, 1))
    for law in laws:
        joint = np.asarray(np.kron(joint, law), dtype=float)
    return joint


def _ratio(shares: Floats, expected: Floats) -> Floats:
    """Reported over expected shares, 0 for answers that the guess makes impossible."""
    return np.divide(shares, expected, out=np.zeros_like(shares), where=expected > 0)


def unbiased(heard: Floats, channels: Channels) -> Floats:
    """The table (*values) whose product of channels gives the shares of joint answers (*answers).

    Unbiased, and linear in the shares; cells may be negative.
    """
    return along(heard, [channel.inverse for channel in channels])


def first_guess(heard: Floats, channels: Channels, is_uniform: bool) -> Floats:
    """Where EM starts: at the uniform tables, or at the unbiased ones brought to the simplex.

    The latter is the quick start of zhang2018calm, section 3.6, kept off the edges of the simplex.

    ``heard`` are shares of joint answers, (tables, *answers); the guesses are (tables, *values).
    """
    shape = tuple(len(channel.law) for channel in channels)
    uniform = np.full((len(heard), *shape), 1 / prod(shape))
    if is_uniform:
        return uniform
    projected = []
    for shares in heard:
        table = norm_sub(unbiased(shares, channels).ravel())
        projected.append(table.reshape(shape))
    return (1 - UNIFORM_PART) * np.stack(projected) + UNIFORM_PART * uniform


def crowds(truth: Floats, channels: Channels, people: int, count: int, draws: Generator) -> Floats:
    """Shares (count, *answers) of the joint answers of so many crowds who follow ``truth``."""
    answers = [channel.law.shape[1] for channel in channels]
    if truth.size * prod(answers) <= MAX_CROWD_LAW:
        # the people are fixed, as in a survey: only their answers are random
        cell_people = _rounded(truth.ravel() * people)  # (cells,)
        law = joint_law([channel.law for channel in channels])  # (cells, answers)
        law /= law.sum(axis=1, keepdims=True)  # rounding may leave a sum just above 1
        answer_counts = [draws.multinomial(cell_people, law).sum(axis=0) for _ in range(count)]
        shares = np.asarray(np.stack(answer_counts) / people)
    else:
        # too many joint answers for that: people are drawn anew, which varies a little more
        expected = along(truth, [channel.law.T for channel in channels]).ravel()  # (answers,)
        shares = np.asarray(draws.multinomial(people, expected / expected.sum(), count) / people)
    return shares.reshape(count, *answers)


def _rounded(people: Floats) -> NDArray[np.int64]:
    """Numbers of people as integers of the same sum: those nearest to the next one round up."""
    whole = np.floor(people).astype(np.int64)
    missing = round(float(people.sum())) - int(whole.sum())
    nearest_first = np.argsort(whole - people, kind="stable")
    whole[nearest_first[:missing]] += 1
    return whole


def typical(shape: Sequence[int], draws: Generator) -> Floats:
    """A table of attributes that are loosely tied: mostly independent, partly any table."""
    singles = [draws.dirichlet([EVENNESS] * size) for size in shape]
    tied = draws.dirichlet([EVENNESS] * prod(shape)).reshape(shape)
    independent = reduce(np.multiply.outer, singles)
    return (1 - TYPICAL_TIE) * independent + TYPICAL_TIE * tied
