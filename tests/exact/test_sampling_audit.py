"""The sampling audit never accuses a private mechanism, and convicts mutants, also where nothing
can be listed.
"""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from sottovoce import audit
from sottovoce.ground.entropy import Entropy, Seeded
from sottovoce.oracles.bloom import Rappor
from sottovoce.oracles.histogram import SummedHistogramEncoding
from sottovoce.oracles.unary import OptimizedUnaryEncoding
from tests.oracles import NAMES, ordinary

DRAWS = 20_000


def sampled(oracle: object, draws: int = DRAWS) -> audit.SampledAudit:
    return audit.sample(oracle, draws, 0.9999, Seeded(11))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_private_mechanism_is_never_accused(name: str, epsilon: float) -> None:
    found = sampled(ordinary(name, epsilon, size=16), 8_000 if name == "she" else DRAWS)
    assert found.passed, str(found)
    assert found.lower_bound <= found.epsilon_claimed


class NeverCleared(OptimizedUnaryEncoding):
    def randomize(self, value: int, entropy: Entropy) -> int:
        return super().randomize(value, entropy) | 1 << value


class LeakyRappor(Rappor):
    """The permanent step is skipped."""

    def memorize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        (cohort,) = self.public_coins(entropy)
        return self._filter(cohort, value), cohort


def test_mutants_are_convicted() -> None:
    unary = ordinary("oue", 1.0, size=1024)
    assert isinstance(unary, OptimizedUnaryEncoding)
    assert sampled(unary).passed
    mutant = NeverCleared(unary.size, unary.requested, unary.one, unary.zero)
    assert sampled(mutant).lower_bound > 3
    assert not sampled(mutant).passed

    noisy = ordinary("she", 1.0, size=4)
    assert isinstance(noisy, SummedHistogramEncoding)
    assert not sampled(_quieter(noisy)).passed

    rappor = ordinary("rappor", 1.0)
    assert isinstance(rappor, Rappor)
    leaky = LeakyRappor(*(getattr(rappor, part.name) for part in fields(rappor)))
    assert not sampled(leaky).passed


def _quieter(oracle: SummedHistogramEncoding) -> SummedHistogramEncoding:
    class Quieter(SummedHistogramEncoding):
        """Noise of a third of the scale, under the old claim."""

        epsilon = oracle.epsilon  # type: ignore[assignment]

    return Quieter(oracle.size, oracle.requested, oracle.scale, oracle.rate * 3)


def test_the_error_of_all_bounds_together_is_the_one_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares: list[float] = []
    real = audit.oracles.clopper_pearson
    monkeypatch.setattr(
        audit.oracles,
        "clopper_pearson",
        lambda hits, draws, alpha: shares.append(alpha) or real(hits, draws, alpha),
    )
    audit.sample(ordinary("grr", 1.0, size=4), 2000, 0.99, Seeded(1))
    assert len(shares) == 16
    assert sum(shares) == pytest.approx(0.01)


def test_tampered_thresholds_are_judged_by_what_was_asked_for() -> None:
    unary = ordinary("oue", 1.0, size=1024)
    assert not sampled(replace(unary, one=unary.one * 18 // 10)).passed  # type: ignore[attr-defined, call-arg]


@pytest.mark.parametrize("name", ["olh-seeded", "olh", "grr"])
def test_a_p_too_large_by_a_tenth_is_convicted(name: str) -> None:
    """Power: at epsilon 2 the ratio grows by 0.16 in the logarithm, and 75,000 draws a side
    resolve 0.07.
    """
    good = ordinary(name, 2.0, size=8)
    louder = replace(good, truth=good.truth * 110 // 100)  # type: ignore[attr-defined, call-arg]
    assert sampled(good, 150_000).passed
    assert not sampled(louder, 150_000).passed
