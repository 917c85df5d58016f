"""``python -m docs.site``: writes the site, and fails if a link leads nowhere."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs.site.builder import build


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("--output", "-o", type=Path, default=Path("out/site"), metavar="FOLDER")
    parser.add_argument("--notebooks", action="store_true", help="run them and show what they show")
    given = parser.parse_args()
    output = given.output
    faults = build(output, given.notebooks)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(list(output.rglob('*.html')))} pages: {output / 'index.html'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
