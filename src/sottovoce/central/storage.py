"""A release as a folder, whole or not there; and the ledger beside it."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.central.guarantee import CentralGuarantee
from sottovoce.central.method import TupleCounts
from sottovoce.central.result import Release, ReleasedAttribute
from sottovoce.central.summary import summary_html
from sottovoce.central.values import BOOLEAN_KIND, NUMBER_KIND, WHOLE_KIND, parsed, text_of
from sottovoce.ground.errors import BudgetExceeded, InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import new_folder, reading_table, write_csv

RELEASE_FORMAT = 1
RELEASE_FILE = "release.json"
SUMMARY_FILE = "summary.html"
TIDY_FIGURES = ("count", "std_error", "low", "high", "may_be_spurious")


def tuples_file(k: int, ending: str) -> str:
    """The name of the file of k-tuples.

    >>> tuples_file(2, "csv")
    'tuples-2.csv'
    """
    return f"tuples-{k}.{ending}"


def ledger_path(folder: Path) -> Path:
    """Where the ledger of a release lies.

    >>> ledger_path(Path("out/census")).name
    'census.ledger.json'
    """
    return folder.with_name(f"{folder.name}.ledger.json")


def check_output(folder: Path) -> None:
    """Refuse a folder that is there, has no place, or whose budget another release has spent."""
    if not folder.name:
        raise InvalidInput(f"output ({folder}) must be the name of a new folder")
    if folder.exists() or folder.is_symlink():
        raise InvalidInput(f"output ({folder}) must not exist yet")
    if not folder.parent.is_dir():
        raise InvalidInput(f"output ({folder}) must lie in a folder that exists")
    ledger = ledger_path(folder)
    if ledger.is_file() and len(ledger.read_bytes().splitlines()) > 1:
        raise BudgetExceeded(
            f"ledger ({ledger}) shows what a release spent that is not there: its noise may have "
            "been seen, so its budget is gone; choose another output, and count both"
        )


def versions() -> dict[str, str]:
    """What a release was made with."""
    libraries = {name: version(name) for name in ("numpy", "pyarrow")}
    return {"sottovoce": _own_version(), "python": platform.python_version(), **libraries}


def _own_version() -> str:
    from sottovoce import __version__

    return __version__


def write_release(release: Release, folder: Path) -> None:
    """Write all files of a release, or none."""
    pq = imported("pyarrow.parquet")
    with new_folder(folder) as draft:
        for k in sorted(release.tuples):
            table = tidy_table(release, k)
            pq.write_table(table, draft / tuples_file(k, "parquet"))
            with open(draft / tuples_file(k, "csv"), "w", encoding="utf-8", newline="") as file:
                _write_csv(file, table)
        body = json.dumps(_to_json(release), ensure_ascii=False, indent=1, allow_nan=False)
        (draft / RELEASE_FILE).write_text(body + "\n", encoding="utf-8")
        (draft / SUMMARY_FILE).write_text(summary_html(release), encoding="utf-8")


def tidy_table(release: Release, k: int) -> Any:
    """The k-tuples as an Arrow table: a row each, with their figures."""
    pa = imported("pyarrow")
    counts = release.tuples[k]
    labels = release.labels(k)
    columns: dict[str, Any] = {}
    for place in range(k):
        pairs = [label[place] for label in labels]
        if release.is_sets:
            kind = release.attributes[0].kind
            columns[f"item_{place + 1}"] = _item_array([value for _, value in pairs], kind)
        else:
            columns[f"attribute_{place + 1}"] = pa.array([name for name, _ in pairs], pa.string())
            texts = [text_of(value) for _, value in pairs]
            columns[f"value_{place + 1}"] = pa.array(texts, pa.string())
    low, high = release.interval(k)
    figures = (counts.counts, counts.std_errors, low, high)
    for name, figure in zip(TIDY_FIGURES, figures, strict=False):
        columns[name] = pa.array(figure, pa.float64(), from_pandas=True)
    columns[TIDY_FIGURES[-1]] = pa.array(counts.may_be_spurious, pa.bool_())
    return pa.table(columns)


def _item_array(values: list[Any], kind: str) -> Any:
    """Items as what they are; numbers that Arrow's integers cannot hold as text."""
    pa = imported("pyarrow")
    types = {WHOLE_KIND: pa.int64(), NUMBER_KIND: pa.float64(), BOOLEAN_KIND: pa.bool_()}
    try:
        return pa.array(values, types.get(kind, pa.string()))
    except (pa.ArrowException, OverflowError):
        return pa.array([text_of(value) for value in values], pa.string())


def _write_csv(file: Any, table: Any) -> None:
    write_csv(file, [table.column_names])
    for batch in table.to_batches():
        columns = [column.to_pylist() for column in batch.columns]
        write_csv(file, zip(*columns, strict=True))


def _to_json(release: Release) -> dict[str, Any]:
    counts = {str(k): len(found.counts) for k, found in sorted(release.tuples.items())}
    return {
        "release": RELEASE_FORMAT,
        "guarantee": release.guarantee.to_json(),
        "parameters": dict(release.parameters),
        "choice": dict(release.choice),
        "is_sets": release.is_sets,
        "attributes": [_attribute_json(attribute) for attribute in release.attributes],
        "tuples": counts,
        "total": release.total,
        "notes": list(release.notes),
        "ledger": dict(release.ledger),
        "versions": dict(release.versions),
    }


def _attribute_json(attribute: ReleasedAttribute) -> dict[str, Any]:
    return {
        "name": attribute.name,
        "kind": attribute.kind,
        "is_known": attribute.is_known,
        "values": [text_of(value) for value in attribute.values],
    }


def load_release(folder: Any) -> Release:
    """A release that :func:`sottovoce.release` wrote.

    Args:
        folder: its path.

    >>> import sottovoce as sv, tempfile
    >>> schema = sv.Schema(tea=sv.Categorical(["green", "black"]))
    >>> people = {"tea": ["green", "black"] * 500}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     told = sv.release(people, 1, "1e-6", 1, schema=schema, output=f"{place}/teas")
    ...     sv.load_release(f"{place}/teas").rows(1) == told.rows(1)
    True
    """
    place = Path(folder)
    path = place / RELEASE_FILE
    if not path.is_file():
        raise InvalidInput(f"release ({place}) must be a folder that sottovoce release wrote")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["release"] != RELEASE_FORMAT:
            raise InvalidInput(
                f"release ({place}): format ({data['release']}) must be {RELEASE_FORMAT}"
            )
        return _from_json(data, place)
    except (KeyError, TypeError, AttributeError, IndexError, json.JSONDecodeError, UnicodeError):
        raise InvalidInput(f"release ({place}) is damaged") from None


def _from_json(data: Mapping[str, Any], place: Path) -> Release:
    attributes = tuple(_attribute_of(body) for body in data["attributes"])
    is_sets = data["is_sets"]
    tuples = {int(k): _read_tuples(place, int(k), attributes, is_sets) for k in data["tuples"]}
    return Release(
        attributes=attributes,
        is_sets=is_sets,
        tuples=tuples,
        guarantee=CentralGuarantee.from_json(data["guarantee"]),
        parameters=data["parameters"],
        choice=data["choice"],
        ledger=data["ledger"],
        notes=tuple(data["notes"]),
        versions=data["versions"],
        total=data["total"],
    )


def _attribute_of(body: Mapping[str, Any]) -> ReleasedAttribute:
    values = tuple(parsed(text, body["kind"]) for text in body["values"])
    return ReleasedAttribute(body["name"], body["kind"], body["is_known"], values)


def _read_tuples(
    place: Path, k: int, attributes: tuple[ReleasedAttribute, ...], is_sets: bool
) -> TupleCounts:
    pq = imported("pyarrow.parquet")
    path = place / tuples_file(k, "parquet")
    with reading_table("release", path):
        table = pq.read_table(path)
    numbers = {attribute.name: number for number, attribute in enumerate(attributes)}
    codes_of = [
        {text_of(value): code for code, value in enumerate(attribute.values)}
        for attribute in attributes
    ]
    places = np.zeros((table.num_rows, k), np.int64)
    codes = np.zeros((table.num_rows, k), np.int64)
    for number in range(k):
        if not is_sets:
            names = table[f"attribute_{number + 1}"].to_pylist()
            places[:, number] = [numbers[name] for name in names]
        column = f"item_{number + 1}" if is_sets else f"value_{number + 1}"
        texts = [_item_text(value) for value in table[column].to_pylist()]
        pairs = zip(places[:, number].tolist(), texts, strict=True)
        codes[:, number] = [codes_of[attribute][text] for attribute, text in pairs]
    figures = {name: np.array(table[name].to_pylist(), float) for name in ("count", "std_error")}
    is_doubtful = np.array(table["may_be_spurious"].to_pylist(), bool)
    return TupleCounts(places, codes, figures["count"], figures["std_error"], is_doubtful)


def _item_text(value: Any) -> str:
    """An item as attributes write it: a float that is whole has no decimals."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return text_of(int(value))
    return text_of(value)
