"""The peers' own code in the same run: each in its own environment under out/peers, one oracle per
process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from bench.peer_child import EM_ITERATIONS
from bench.published import PEOPLE, SIZE
from bench.timing import ROOT, child

INSTALLS = {
    "mbi": ("mbi==2.0.0",),
    "ldp-toolbox": ("ldp-toolbox==0.1.3", "xxhash<4"),
    "multi-freq-ldpy": ("multi-freq-ldpy==0.2.5", "xxhash<4", "scipy"),
    "pure-ldp": ("pure-ldp==1.2.0", "xxhash<4", "scikit-learn", "statsmodels"),
}
# oracle -> package and how many people it is run on; seconds are scaled to all of them
RUNS = {
    "oue": ("ldp-toolbox", PEOPLE),
    "sue": ("ldp-toolbox", PEOPLE),
    "ss": ("ldp-toolbox", PEOPLE),
    "olh": ("multi-freq-ldpy", 5000),
    "grr-em": ("multi-freq-ldpy", PEOPLE),
    "grr": ("pure-ldp", PEOPLE),
    "hr": ("pure-ldp", PEOPLE),
}


@dataclass(frozen=True)
class Found:
    """A peer's figures in this run. ``above`` (MiB) is not scaled:
    None if it ran on fewer people.
    """

    client: float
    server: float
    above: float | None


def python_of(package: str) -> str:
    """The interpreter of the package's own environment, made on first use."""
    home = ROOT / "out" / "peers" / package
    stamp = home / ".installed"
    if not stamp.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *INSTALLS[package]]
        subprocess.run(pip, check=True, capture_output=True)
        stamp.touch()
    return str(home / "bin" / "python")


def run(say: Callable[[str], None], em_iterations: int) -> dict[str, Found]:
    """Every peer that can be installed and runs; the others are named and left out."""
    found = {}
    for oracle, (package, people) in RUNS.items():
        say(f"{package}: {oracle}")
        try:
            arguments = ("bench.peer_child", package, oracle, str(people), str(SIZE))
            figures = child(*arguments, python=python_of(package))
        except (subprocess.SubprocessError, OSError, RuntimeError) as wrong:
            say(f"{package}: {oracle} left out: {wrong}")
            continue
        scale = PEOPLE / people
        server = figures["server"] * (
            em_iterations / EM_ITERATIONS if oracle == "grr-em" else scale
        )
        found[oracle] = Found(
            figures["client"] * scale, server, figures["above"] if scale == 1 else None
        )
    return found
