"""The addresses of stores. A password in one never gets into a message."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from sottovoce.ground.errors import InvalidInput

_SCHEMES = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
_RULE = "store must be sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/name"


def is_store(text: object) -> bool:
    """Whether a command's argument is a store's address rather than a file.

    >>> is_store("sqlite:///survey.db"), is_store("reports.parquet")
    (True, False)
    """
    return str(text).partition("://")[0] in _SCHEMES and "://" in str(text)


def kind_of(url: str) -> str:
    """``sqlite`` or ``postgresql``; one clear error for anything else, without quoting it."""
    if not isinstance(url, str) or not is_store(url):
        raise InvalidInput(_RULE)
    return _SCHEMES[url.partition("://")[0]]


@dataclass(frozen=True)
class SqliteAddress:
    """A file, and the most pages it may grow to (None: as the disk allows)."""

    path: Path
    most_pages: int | None = None

    @classmethod
    def parse(cls, url: str) -> SqliteAddress:
        """Read ``sqlite:///path``, with ``?max_page_count=N`` if wanted.

        >>> SqliteAddress.parse("sqlite:////var/lib/survey.db?max_page_count=1000").most_pages
        1000
        """
        place, _, query = url.partition("?")
        path = unquote(place.removeprefix("sqlite:///"))
        if (
            not place.startswith("sqlite:///")
            or not path
            or path.endswith("/")
            or "\0" in path
            or ":memory:" in path
        ):
            raise InvalidInput(_RULE)
        options = dict(parse_qsl(query, keep_blank_values=True))
        pages = options.pop("max_page_count", None)
        if options:
            raise InvalidInput(f"store: option ({next(iter(options))}) must be max_page_count")
        if pages is not None and not (
            pages.isascii() and pages.isdecimal() and 0 < int(pages) < 1 << 32
        ):
            raise InvalidInput("store: max_page_count must be a whole number of at least 1")
        return cls(Path(path), None if pages is None else int(pages))
