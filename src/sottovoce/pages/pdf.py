"""A page as PDF, printed by a Chromium that is on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.files import replacing

BROWSER_VARIABLE = "SOTTOVOCE_CHROMIUM"  # names a browser that is not found by itself
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
PRINTING_SECONDS = 120


def find_browser() -> str:
    """A Chromium, Chrome or Edge of this machine, or one clear error."""
    named = os.environ.get(BROWSER_VARIABLE)
    for candidate in [named] if named else BROWSERS:
        found = shutil.which(candidate)
        if found is not None:
            return found
    where = f"at {named} ({BROWSER_VARIABLE})" if named else "on this machine"
    raise InvalidInput(
        f"pdf: there is no Chromium {where}; install one, name it in {BROWSER_VARIABLE}, or open "
        "the page in any browser and print it"
    )


def write_pdf(html: str, path: str | os.PathLike[str]) -> None:
    """Print a page that loads nothing to a PDF, whole or not at all."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="sottovoce-pdf-") as folder, replacing(path) as draft:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        # a sandbox cannot be set up by root, and the page holds no scripts
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            *(["--no-sandbox"] if is_root else []),
            f"--user-data-dir={folder}/profile",
            "--no-pdf-header-footer",
            f"--print-to-pdf={folder}/page.pdf",
            page.as_uri(),
        ]
        try:
            ended = subprocess.run(
                command, capture_output=True, timeout=PRINTING_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise InvalidInput(
                f"pdf: {browser} did not print the page within {PRINTING_SECONDS} seconds"
            ) from None
        printed = Path(folder) / "page.pdf"
        if ended.returncode != 0 or not printed.exists():
            raise InvalidInput(f"pdf: {browser} could not print the page (code {ended.returncode})")
        draft.write_bytes(printed.read_bytes())
