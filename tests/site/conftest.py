"""The site, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site.builder import build


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, whose links all lead somewhere."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    assert build(folder) == []
    return folder
