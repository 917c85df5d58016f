"""Addresses, understood or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sottovoce.ground.errors import InvalidInput
from sottovoce.store import is_store, open_store
from sottovoce.store.urls import SqliteAddress


@pytest.mark.parametrize(
    ("url", "path", "pages"),
    [
        ("sqlite:///survey.db", "survey.db", None),
        ("sqlite:////var/lib/a%20b.db", "/var/lib/a b.db", None),
        ("sqlite:///../x.db?max_page_count=12", "../x.db", 12),
    ],
)
def test_sqlite_addresses(url: str, path: str, pages: int | None) -> None:
    assert SqliteAddress.parse(url) == SqliteAddress(Path(path), pages)
    assert is_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "", "survey.db", "sqlite:", "sqlite://", "sqlite:///", "sqlite://survey.db",
        "sqlite:///folder/", "sqlite:///a%00b", "sqlite:///:memory:",
        "mysql://ann:hunter2@host/survey", "SQLITE:///x.db", "file:///x.db", None, 3,
    ],
)  # fmt: skip
def test_other_addresses_are_refused_without_quoting_them(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"^store must be sqlite:///relative.db") as wrong:
        open_store(url)
    assert "hunter2" not in str(wrong.value)


@pytest.mark.parametrize(
    "query", ["max_page_count=0", "max_page_count=x", "max_page_count=", "mode=ro"]
)
def test_options_are_checked(query: str) -> None:
    with pytest.raises(InvalidInput, match="max_page_count"):
        open_store(f"sqlite:///survey.db?{query}")


def test_files_are_not_stores() -> None:
    assert not is_store(Path("reports.parquet"))
    assert not is_store("reports/")
