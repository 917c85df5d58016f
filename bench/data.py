"""The folder of public tables that measurements read; docs/data.md says where each table comes
from.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

VARIABLE = "SOTTOVOCE_DATA"


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """``--data FOLDER``, or what the environment says."""
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        default=os.environ.get(VARIABLE),
        help=f"the folder of public tables, by default ${VARIABLE}; "
        "docs/data.md says where they come from",
    )


def data_folder(parser: argparse.ArgumentParser, given: str | None) -> Path:
    """The folder that was given, or one clear error."""
    if not given:
        parser.error(
            f"give --data FOLDER or set {VARIABLE}: the folder of public tables (see docs/data.md)"
        )
    folder = Path(given)
    if not folder.is_dir():
        parser.error(f"data ({given}) must be a folder that exists (see docs/data.md)")
    return folder
