"""Where a page or a file of the repository stands on the site, and whether a link leads there."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

ROOT = Path(__file__).parents[2]

# what a browser shows by itself; any other file is shown as text
SHOWN_AS_IT_IS = {".svg", ".png", ".html", ".txt", ".ipynb"}


def target_of(source: str) -> str:
    """The address of a page.

    >>> target_of("docs/marginals.md"), target_of("docs/notebooks/README.md")
    ('marginals.html', 'notebooks/index.html')
    >>> target_of("README.md"), target_of("docs/notebooks/sql.ipynb")
    ('readme.html', 'notebooks/sql.html')
    """
    stem = posixpath.splitext(source.removeprefix("docs/"))[0]
    if stem.endswith("/README"):
        stem = f"{posixpath.dirname(stem)}/index"
    return f"{stem.lower()}.html"


def copy_of(source: str) -> str:
    """The address of a file that is no page.

    >>> copy_of("docs/pictures/popular-sets.svg"), copy_of("examples/shop.py")
    ('pictures/popular-sets.svg', 'files/examples/shop.py.txt')
    """
    is_picture = posixpath.splitext(source)[1] in {".svg", ".png"}
    address = source.removeprefix("docs/") if is_picture else f"files/{source}"
    return address if posixpath.splitext(source)[1] in SHOWN_AS_IT_IS else f"{address}.txt"


def between(page: str, target: str) -> str:
    """How one address names another one.

    >>> between("trials/oracle.html", "people.html")
    '../people.html'
    """
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def file_of(page: str, path: str) -> str | None:
    """The file of the repository that a link of a page names; None if there is none."""
    source = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    if os.path.isdir(ROOT / source):
        source = f"{source}/README.md"
    return source if os.path.isfile(ROOT / source) else None
