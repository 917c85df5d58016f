"""How much a survey may ask for if it is made over HTTP."""

from __future__ import annotations

from math import prod

from sottovoce.api.surveys import POPULAR
from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.base import Question
from sottovoce.questions.frequencies import Frequencies
from sottovoce.questions.marginals import Marginals
from sottovoce.schema import Schema

MOST_VALUES = 1 << 20  # of a survey made over HTTP, unless whoever runs the collector chooses
MOST_ATTRIBUTES = 64  # the same


def values_of(schema: Schema, question: Question) -> int:
    """How many values an answer may hold: those of all attributes, or the cells of the largest table.

    An open alphabet has none to list.
    """
    if isinstance(question, Marginals):
        work = question.work(schema)
        if work.sets is not None:
            largest = max(work.cells(each) for each in work.sets)
        else:
            largest = prod(sorted(work.sizes)[-work.order :])
        return max(largest, sum(work.sizes))
    names: tuple[str, ...] = ()
    if isinstance(question, Frequencies):
        names = question.attributes
    elif isinstance(question, POPULAR):
        names = (question.attribute,)
    return sum(schema[name].size for name in names if not schema[name].is_open)


def check_attributes(schema: Schema, most: int) -> None:
    """Refuse a survey of too many attributes: planning takes long in their number."""
    if len(schema) > most:
        raise InvalidInput(
            f"attributes ({len(schema):,}) must be at most {most:,} in a survey that is made over HTTP; "
            "give a larger plan to the command that starts the collector"
        )


def check_values(schema: Schema, question: Question, most: int) -> None:
    """Refuse a question whose answers would hold too many values."""
    values = values_of(schema, question)
    if values > most:
        raise InvalidInput(
            f"values ({values:,}) must be at most {most:,} in a survey that is made over HTTP; "
            "give a larger plan to the command that starts the collector"
        )
