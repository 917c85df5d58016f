"""A schema proposed from a table: what each column is, and which columns nobody can be asked about
as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import LARGEST_INTEGER, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.measure.populations import (
    MOST_TEXTS,
    Column,
    is_list,
    merged,
    quantile_edges,
    read_arrow,
)
from sottovoce.schema import Attribute, Boolean, Categorical, Items, Label, Ordinal, Schema
from sottovoce.schema.missing import with_missing

BINS = 8  # of a column of many numbers
MOST_VALUES = 16  # different values that are listed one by one; of texts the rarer ones are merged
FEW_PEOPLE = 64  # of fewer nobody can say whether a column is an id
LEAST_UNSHARED = 4  # so many people of whom no two have the same text
ID_SHARE = 2  # a text is one if more than one of so many people has a value of her own
NO_ANSWER = "no answer"
NO_EDGES: Mapping[str, Sequence[int]] = {}

CAUTION = (
    "A schema that was made from data tells something about these people: which values occur,",
    "even once, the lowest and the highest number, where many lie, and how many gave no answer.",
    "Make it from data that is public or your own, or write it by hand.",
)


@dataclass(frozen=True)
class ProposedColumn:
    """What a column of a table was taken for."""

    name: str
    attribute: Attribute | None  # None if it is left out
    note: str = ""  # why it is, or how its values were put together


@dataclass(frozen=True)
class Proposal:
    """A schema for a table, and what it leaves out."""

    source: str
    people: int
    columns: tuple[ProposedColumn, ...]

    @property
    def schema(self) -> Mapping[str, Attribute]:
        return {each.name: each.attribute for each in self.columns if each.attribute is not None}

    @property
    def question(self) -> dict[str, Any]:
        """Tables of any two attributes, or the shares of the only one."""
        plain = [name for name, each in self.schema.items() if not isinstance(each, Items)]
        if len(plain) >= 2:
            return {"kind": "marginals", "attributes": plain, "up_to": 2}
        if plain:
            return {"kind": "frequencies", "attributes": plain}
        return {"kind": "top-items", "attribute": next(iter(self.schema)), "top": 1}

    def to_json(self) -> dict[str, Any]:
        """The survey's parts, and a note for each column that has one."""
        return {
            "people": self.people,
            "schema": Schema(**self.schema).to_json(),
            "question": self.question,
            "left_out": {each.name: each.note for each in self.columns if each.attribute is None},
            "notes": {
                each.name: each.note for each in self.columns if each.attribute and each.note
            },
            "caution": " ".join(CAUTION),
        }

    def to_toml(self, epsilon: str) -> str:
        """A survey file, with comments for whoever reads it over."""
        lines = [
            f"# Proposed from {_comment(self.source)}: {self.people:,} people. Read it over.",
            *(f"# {line}" for line in CAUTION),
            '# What people read: title = "...", [texts], and question = "..." beside an attribute.',
            "",
            f"epsilon = {epsilon}",
            f"people = {self.people}",
        ]
        for each in self.columns:
            lines.append("")
            if each.attribute is None:
                lines.append(f"# left out: {_comment(each.name)}: {each.note}")
                continue
            lines += [f"# {each.note}"] if each.note else []
            lines.append(f"[schema.{_key(each.name)}]")
            lines.append(f"kind = {_toml(each.attribute.kind)}")
            options = each.attribute.options()
            lines += [
                f"{key} = {_toml(value)}" for key, value in options.items() if value is not None
            ]
        lines += ["", "[question]"]
        lines += [f"{key} = {_toml(value)}" for key, value in self.question.items()]
        return "\n".join(lines) + "\n"


def propose(
    path: Path,
    *,
    bins: int = BINS,
    values: int = MOST_VALUES,
    edges: Mapping[str, Sequence[int]] = NO_EDGES,
    columns: Sequence[str] | None = None,
    ignored: Sequence[str] = (),
    separator: str | None = None,
) -> Proposal:
    """A schema for the people of a CSV or Parquet file.

    Args:
        path: the file.
        bins: at most so many bins for a column of many different numbers, with about as many
            people in each.
        values: at most so many values of a column of texts; the rarer ones are one together.
        edges: by a column of numbers the smallest number of each of its bins, in place of bins of
            about as many people.
        columns: which of the file's; all of them by default.
        ignored: columns to leave alone.
        separator: of a CSV file's columns; by default the one that its header has most.
    """
    whole("bins", bins, 2, MOST_TEXTS)
    whole("values", values, 2, MOST_TEXTS)
    table = read_arrow(path, as_text=False, separator=separator)
    for parameter, names in (("columns", columns or ()), ("ignore", ignored), ("edges", edges)):
        for name in names:
            if name not in table.column_names:
                raise InvalidInput(
                    f"{parameter} ({name}) must be a column of the table "
                    f"(it has: {', '.join(table.column_names)})"
                )
    wanted = [name for name in columns or table.column_names if name not in ignored]
    if not table.num_rows:
        raise InvalidInput(f"table ({path}): there must be at least one row")
    found = [_proposed(name, table, bins, values, edges.get(name)) for name in wanted]
    if all(each.attribute is None for each in found):
        reasons = "; ".join(f"{each.name}: {each.note}" for each in found) or "it has none"
        raise InvalidInput(f"table ({path}): no column can be asked about: {reasons}")
    return Proposal(path.name, table.num_rows, tuple(found))


def _proposed(
    name: str, table: Any, bins: int, values: int, edges: Sequence[int] | None
) -> ProposedColumn:
    """What a column is taken for; a name that no attribute may have leaves it out."""
    if edges is not None:
        return _chosen_bins(name, table[name], edges)
    try:
        found = _column(name, table, bins, values)
        if found.attribute is not None:
            Schema(**{name: found.attribute})
    except InvalidInput as wrong:
        return ProposedColumn(name, None, str(wrong))
    return found


def _column(name: str, table: Any, bins: int, values: int) -> ProposedColumn:
    pa = imported("pyarrow")

    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_list(table.schema.field(name)):
        return _items(name, column)
    if pa.types.is_temporal(column.type):
        return ProposedColumn(name, None, "dates or times: make years, months or hours of them")
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not (is_text or pa.types.is_boolean(column.type) or _is_number(pa, column.type)):
        is_bytes = pa.types.is_binary(column.type)
        told = "bytes, not text" if is_bytes else f"values of type {column.type}"
        return ProposedColumn(name, None, told)
    people = len(column)
    if pa.types.is_floating(column.type):
        column = pa.array(column.to_numpy(), from_pandas=True)  # NaN is no answer
    if is_text:
        compute = imported("pyarrow.compute")
        blank = compute.equal(compute.utf8_trim_whitespace(column), "")
        column = compute.if_else(blank, None, column)
    held = column.drop_null()
    missing = people - len(held)
    distinct = len(held.unique())
    if distinct < 2:
        return ProposedColumn(name, None, "a single value" if distinct else "no values")
    if is_text:
        return _texts(name, held, distinct, missing, values)
    if pa.types.is_boolean(column.type):
        return _listed(name, ["false", "true"], missing) if missing else _yes_or_no(name)
    numbers = np.asarray(held.cast(pa.float64() if _is_decimal(pa, held) else held.type).to_numpy())
    return _numbers(name, numbers, distinct, missing, bins, values)


def _is_number(pa: Any, kind: Any) -> bool:
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(check(kind) for check in checks)  # a column without any value is null


def _is_decimal(pa: Any, held: Any) -> bool:
    return bool(pa.types.is_decimal(held.type))


def _yes_or_no(name: str) -> ProposedColumn:
    return ProposedColumn(name, Boolean())


def _items(name: str, column: Any) -> ProposedColumn:
    members = sorted({str(each) for each in column.combine_chunks().flatten().to_pylist()})
    if not 2 <= len(members) <= MOST_TEXTS:
        return ProposedColumn(name, None, f"lists of {len(members):,} different members")
    return ProposedColumn(name, Items(members), "a set: ask for its top items by itself")


def _texts(name: str, held: Any, distinct: int, missing: int, values: int) -> ProposedColumn:
    if distinct > MOST_TEXTS or (len(held) >= FEW_PEOPLE and distinct * ID_SHARE > len(held)):
        return ProposedColumn(
            name,
            None,
            f"{distinct:,} different texts of {len(held):,}: an id or free text "
            '(kind = "text" and a question of kind "heavy-hitters" find frequent ones)',
        )
    if distinct == len(held) >= LEAST_UNSHARED:
        return ProposedColumn(
            name, None, "texts of which everybody has another: an id or free text"
        )
    counted = held.value_counts()
    labels = counted.field("values").to_pylist()
    lower = {label.strip().lower() for label in labels}
    if not missing and lower in ({"no", "yes"}, {"false", "true"}):
        return _yes_or_no(name)
    codes = np.repeat(np.arange(len(labels)), counted.field("counts").to_numpy())
    order = np.argsort(np.array(labels, dtype=object))
    place = np.empty(len(labels), np.int64)
    place[order] = np.arange(len(labels))
    column = Column(Categorical([labels[code] for code in order]), place[codes])
    kept = merged(column, values)
    alone = _alone(kept.counts)
    if kept is column:
        return _listed(name, column.attribute.labels(), missing, alone)
    note = f"{distinct:,} different values: the {values - 1} most frequent, and the rest as one"
    note += _beside(missing) if missing else ""
    told = list(kept.attribute.labels())
    return ProposedColumn(
        name,
        Categorical(told, other=told[-1]),
        "; ".join(filter(None, (note, alone))),
    )


def _listed(name: str, labels: Sequence[Label], missing: int, alone: str = "") -> ProposedColumn:
    """All values one by one, and one for people without an answer."""
    if not missing:
        return ProposedColumn(name, Categorical(labels), alone)
    none = NO_ANSWER
    while none in labels:
        none += "s"
    return ProposedColumn(
        name,
        Categorical([*labels, none], other=none),
        "; ".join(filter(None, (_lacking(missing, f'"{none}"'), alone))),
    )


def _numbers(
    name: str, numbers: NDArray[Any], distinct: int, missing: int, bins: int, values: int
) -> ProposedColumn:
    whole_parts = np.floor(numbers)
    is_whole = bool((whole_parts == numbers).all())
    if float(np.abs(numbers).max()) > LARGEST_INTEGER / 2:
        return ProposedColumn(name, None, "numbers beyond 2^52")
    found = whole_parts.astype(np.int64)
    low, high = int(found.min()), int(found.max())
    if is_whole and distinct == len(numbers) >= FEW_PEOPLE and high - low < 2 * len(numbers):
        return ProposedColumn(name, None, "every row has a number of its own: an id")
    if low == high:
        return ProposedColumn(name, None, "decimals of one whole part: multiply them first")
    if (low, high, is_whole, missing) == (0, 1, True, 0):
        return _yes_or_no(name)
    if is_whole and distinct <= values:
        listed, counts = np.unique(found, return_counts=True)
        if not missing and high - low + 1 == distinct:
            return ProposedColumn(name, Ordinal(low, high))
        return _listed(name, listed.tolist(), missing, _alone(counts))
    ends = quantile_edges(found, bins)  # the last number of each bin but the last
    starts = [low, *(int(end) + 1 for end in ends if low <= end < high)]
    note = "" if is_whole else "decimals are in the bin of their whole part"
    if missing:
        # a number that nobody has; of numbers from 0 on it is -1, and means what it seems to
        below = min(low, 0) - 1
        note = "; ".join(filter(None, (note, _lacking(missing, str(below)))))
        return ProposedColumn(
            name, Ordinal(below, high, bins=[below, below + 1, *starts[1:]], other=below), note
        )
    if len(starts) < 2:
        starts.append(high)
    return ProposedColumn(name, Ordinal(low, high, bins=starts), note)


def _chosen_bins(name: str, column: Any, edges: Sequence[int]) -> ProposedColumn:
    """A column of numbers in bins that start where they were told to."""
    pa = imported("pyarrow")

    if not _is_number(pa, column.type):
        raise InvalidInput(f"edges: column {name!r} must hold numbers")
    numbers = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=float)
    held = np.floor(numbers[~np.isnan(numbers)])
    if not held.size:
        raise InvalidInput(f"edges: column {name!r} must hold numbers")
    below = int((held < edges[0]).sum())
    if below:
        raise InvalidInput(f"edges: {below:,} numbers of {name!r} lie below {edges[0]}")
    try:
        attribute = Ordinal(edges[0], max(int(held.max()), edges[-1]), bins=list(edges))
    except InvalidInput as wrong:
        raise InvalidInput(f"edges of {name!r}: {wrong}") from None
    missing = len(numbers) - held.size
    if not missing:
        return ProposedColumn(name, attribute)
    silent = edges[0] - 1
    return ProposedColumn(name, with_missing(attribute, silent), _lacking(missing, str(silent)))


def _alone(counts: NDArray[Any]) -> str:
    """What to look at where the list of values holds some that a single person has."""
    single = int((counts == 1).sum())
    if not single:
        return ""
    verb = "is" if single == 1 else "are"
    return f"{single} of these {verb} of one person alone: look whether that tells who it is"


def _lacking(missing: int, answer: str) -> str:
    return f"{missing:,} people have no answer, which is {answer} here"


def _beside(missing: int) -> str:
    return f", with {missing:,} people who have no answer"


def _toml(value: Any) -> str:
    """A value as TOML writes it, which is as JSON does for what a schema holds."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    """A name as a key of TOML, which quotes all but the plainest."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml(name)


def _comment(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)
