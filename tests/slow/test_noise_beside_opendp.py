"""Our discrete Gaussian noise beside OpenDP's, in an environment of its own: one law."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sottovoce.ground.entropy import Seeded
from sottovoce.ground.noise import discrete_gaussian
from tests.statistics import chi_limit

pytestmark = pytest.mark.slow

DRAWS = 300_000
SCALES = (0.5, 3.0, 40.0)  # doubles that are exact fractions
WRONG = Fraction(11, 10)  # times our deviation: a mutant

# vectors of zeros with noise: what OpenDP publishes is its noise
THEIRS = """
import json, sys
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
draws = int(sys.argv[1])
told = {}
for scale in map(float, sys.argv[2:]):
    noisy = dp.m.make_gaussian(*space, scale=scale)
    told[scale] = noisy([0] * draws)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    home = tmp_path_factory.mktemp("opendp") / "venv"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / "bin" / "python"
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "opendp>=0.12"], check=False
    )
    if installed.returncode:
        pytest.skip("OpenDP cannot be installed here")
    return _drawn(python)


def _drawn(python: Path) -> dict[str, list[int]]:
    command = [python, "-c", THEIRS, str(DRAWS), *map(str, SCALES)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def two_sample(one: np.ndarray, other: np.ndarray) -> tuple[float, int]:
    """The chi-squared statistic of two samples of one size over cells of about equal chance."""
    edges = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 41)[1:-1]))
    first, second = (
        np.bincount(np.searchsorted(edges, sample, side="right"), minlength=len(edges) + 1)
        for sample in (one, other)
    )
    kept = first + second > 0
    gap = (first[kept] - second[kept]).astype(float)
    return float((gap**2 / (first + second)[kept]).sum()), int(kept.sum()) - 1


@pytest.mark.parametrize("scale", SCALES)
def test_both_draw_from_one_law(theirs: dict[str, list[int]], scale: float) -> None:
    other = np.array(theirs[str(scale)])
    ours = discrete_gaussian(Fraction(scale) ** 2, DRAWS, Seeded(31))
    statistic, degrees = two_sample(ours, other)
    assert statistic < chi_limit(degrees, len(SCALES))
    wider = discrete_gaussian((Fraction(scale) * WRONG) ** 2, DRAWS, Seeded(31))
    rejected, degrees = two_sample(wider, other)
    assert rejected > chi_limit(degrees, len(SCALES))
