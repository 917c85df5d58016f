"""A release as a folder, whole or not there; and the ledger beside it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.central.guarantee import CentralGuarantee
from sottovoce.central.method import Integers, TupleCounts
from sottovoce.central.result import Release, ReleasedAttribute
from sottovoce.central.summary import summary_html
from sottovoce.central.values import label_of, text_of
from sottovoce.ground.errors import BudgetExceeded, InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import new_folder, reading_table
from sottovoce.ground.labels import csv_cell

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
    csv = imported("pyarrow.csv")
    with new_folder(folder) as draft:
        for k in sorted(release.tuples):
            pq.write_table(tidy_table(release, k), draft / tuples_file(k, "parquet"))
            csv.write_csv(tidy_table(release, k, csv_cell), draft / tuples_file(k, "csv"))
        body = json.dumps(_to_json(release), ensure_ascii=False, indent=1, allow_nan=False)
        (draft / RELEASE_FILE).write_text(body + "\n", encoding="utf-8")
        (draft / SUMMARY_FILE).write_text(summary_html(release), encoding="utf-8")


def tidy_table(release: Release, k: int, written: Callable[[str], str] = str) -> Any:
    """The k-tuples as an Arrow table: a row each, with their figures.

    Args:
        release: of which.
        k: how many values a tuple has.
        written: how names and texts are written.
    """
    pa = imported("pyarrow")
    counts = release.tuples[k]
    columns: dict[str, Any] = {}
    if release.is_sets:
        items = _item_array(release.attributes[0], written)
        for place in range(k):
            columns[f"item_{place + 1}"] = items.take(pa.array(counts.codes[:, place]))
    else:
        names = pa.array([written(name) for name in release.columns], pa.string())
        texts, first = _all_texts(release, written)
        for place in range(k):
            attributes, codes = counts.attributes[:, place], counts.codes[:, place]
            columns[f"attribute_{place + 1}"] = names.take(pa.array(attributes))
            columns[f"value_{place + 1}"] = texts.take(pa.array(first[attributes] + codes))
    low, high = release.interval(k)
    figures = (counts.counts, counts.std_errors, low, high)
    for name, figure in zip(TIDY_FIGURES, figures, strict=False):
        columns[name] = pa.array(figure, pa.float64(), from_pandas=True)
    columns[TIDY_FIGURES[-1]] = pa.array(counts.may_be_spurious, pa.bool_())
    return pa.table(columns)


def _all_texts(release: Release, written: Callable[[str], str]) -> tuple[Any, Integers]:
    """The values of all attributes as text, one after the other, and where each begins."""
    pa = imported("pyarrow")
    texts: list[str] = []
    first = []
    for attribute in release.attributes:
        first.append(len(texts))
        texts += [written(text_of(value)) for value in attribute.values]
    return pa.array(texts, pa.string()), np.array(first, np.int64)


def _item_array(attribute: ReleasedAttribute, written: Callable[[str], str]) -> Any:
    """Items as what they are; as text where they are mixed, or beyond Arrow's integers."""
    pa = imported("pyarrow")
    is_text = any(isinstance(value, str) for value in attribute.values)
    try:
        if attribute.values and not is_text:
            return pa.array(attribute.values)
    except (pa.ArrowException, OverflowError):
        pass
    return pa.array([written(text_of(value)) for value in attribute.values], pa.string())


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
        "is_known": attribute.is_known,
        "values": list(attribute.values),
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
    return ReleasedAttribute(body["name"], body["is_known"], tuple(body["values"]))


def _read_tuples(
    place: Path, k: int, attributes: tuple[ReleasedAttribute, ...], is_sets: bool
) -> TupleCounts:
    pq = imported("pyarrow.parquet")
    path = place / tuples_file(k, "parquet")
    with reading_table("release", path):
        table = pq.read_table(path)
    places = np.zeros((table.num_rows, k), np.int64)
    codes = np.zeros((table.num_rows, k), np.int64)
    numbers = {attribute.name: number for number, attribute in enumerate(attributes)}
    for number in range(k):
        if not is_sets:
            places[:, number] = _numbered(table[f"attribute_{number + 1}"], numbers)
        column = table[f"item_{number + 1}" if is_sets else f"value_{number + 1}"]
        for own, attribute in enumerate(attributes):
            (rows,) = np.nonzero(places[:, number] == own)
            known = {text_of(value): code for code, value in enumerate(attribute.values)}
            codes[rows, number] = _numbered(column.take(rows), known)
    figures = {name: table[name].to_numpy() for name in ("count", "std_error")}
    is_doubtful = table["may_be_spurious"].to_numpy()
    return TupleCounts(places, codes, figures["count"], figures["std_error"], is_doubtful)


def _numbered(column: Any, known: Mapping[str, int]) -> Integers:
    """The number of each value of an Arrow column, by its text."""
    encoded = column.combine_chunks().dictionary_encode()
    if len(encoded) == 0:
        return np.zeros(0, np.int64)
    listed = [known[text_of(label_of(value))] for value in encoded.dictionary.to_pylist()]
    found: Integers = np.array(listed, np.int64)[encoded.indices.to_numpy()]
    return found
