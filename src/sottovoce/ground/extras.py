"""Libraries that only some installs have: the extra of each, and one clear error without it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sottovoce.ground.errors import MissingLibrary

# The extra that brings each library, by the name it is imported under.
EXTRAS = {
    "dp_accounting": "accounting",
    "altair": "analysis",
    "numba": "analysis",
    "pandas": "analysis",
    "pyarrow": "analysis",
    "scipy": "analysis",
    "sklearn": "analysis",
    "threadpoolctl": "analysis",
    "vl_convert": "analysis",
    "fastapi": "collector",
    "msgspec": "collector",
    "pydantic": "collector",
    "starlette": "collector",
    "uvicorn": "collector",
    "cryptography": "shuffle",
    "gmpy2": "peos",
    "psycopg": "postgres",
    "pyspark": "spark",
    "duckdb": "queries",
    "sqlglot": "queries",
    "jinja2": "studio",
}


def imported(name: str) -> Any:
    """The module called ``name``, or :class:`MissingLibrary`.

    >>> imported("scipy.special").__name__
    'scipy.special'
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as wrong:
        explained = explained_import(wrong)
        if explained is None:
            raise
        raise explained from None


def explained_import(wrong: ModuleNotFoundError) -> MissingLibrary | None:
    """What to install, if the missing module is of an extra; None if it is of none."""
    library = str(wrong.name).partition(".")[0]
    if library not in EXTRAS:
        return None
    extra = EXTRAS[library]
    return MissingLibrary(
        f'{library} is not installed; it comes with: pip install "sottovoce[{extra}]"'
    )


def require_extra(extra: str, what: str) -> None:
    """Refuse to begin with ``what`` unless the libraries of an extra are there."""
    if not has_extra(extra):
        raise MissingLibrary(
            f'{what} needs libraries that are not installed: pip install "sottovoce[{extra}]"'
        )


def has_extra(extra: str) -> bool:
    """Whether every library of an extra is there.

    >>> has_extra("analysis")
    True
    """
    return all(find_spec(library) is not None for library, of in EXTRAS.items() if of == extra)
