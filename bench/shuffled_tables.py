"""What of chapter 9 of the thesis is computed by formulas, or simulated with the thesis's own
accountant: table 9.2, and words found level by level.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from sottovoce.accounting.shuffling import thesis
from sottovoce.ground.errors import InvalidInput

LETTERS = (*range(97, 123), 95)  # a to z, and what fills a short word: no other is tried
FILL = "_"
LEVELS = 6  # letters of a word
PEOPLE, VALUES, DELTA = 1_000_000, 42_178, 1e-9
EPSILONS = ("0.2", "0.4", "0.6", "0.8")
SIZES = (10, 100, 1000)


def thesis_words(crowd: Any, epsilon: float, delta: float, run: int) -> tuple[set[str], float]:
    """The most frequent words by a tree whose levels everybody answers, each with a sixth of
    epsilon and delta.

    Every level hashes as eq. (9.4) says, with the epsilon that theorem 9.3.2 gives; where it gives
    none, reports are not amplified. Only letters are tried, which helps the thesis.

    Args:
        crowd: with ``table``, ``top`` and ``people``.
        epsilon: against the analyst, of all levels.
        delta: of the same promise.
        run: a seed.

    Returns:
        The words found, and what a person's six reports cost by themselves.
    """
    from sottovoce.oracles import oracle

    texts = crowd.table()["value"]
    held, index = np.unique(texts.astype(str), return_inverse=True)
    padded = [word.ljust(LEVELS, FILL).encode() for word in held.tolist()]
    kept, local = [b""], 0.0
    for level in range(1, LEVELS + 1):
        options, own = _level(epsilon / LEVELS, delta / LEVELS, crowd.people)
        local += own
        spent = Decimal(f"{own:.9f}")
        asked = oracle("olh-seeded", size=256**level, epsilon=spent, **options)
        values = np.array([int.from_bytes(word[:level]) for word in padded], np.uint64)[index]
        reports = asked.simulate(values, seed=1000 * run + level)
        tried = [prefix + bytes([letter]) for prefix in kept for letter in LETTERS]
        codes = np.array([int.from_bytes(each) for each in tried], np.uint64)
        support = asked.support_rows(reports, None, codes)
        best = np.argsort(-support, kind="stable")[: crowd.top]
        kept = [tried[place] for place in best.tolist()]
    return {word.decode().rstrip(FILL) for word in kept}, local


def _level(epsilon: float, delta: float, people: int) -> tuple[dict[str, int], float]:
    """The options of a level's hashing, and its local epsilon."""
    size = int(thesis.best_hash_size(epsilon, people, delta))
    if size < 2:
        return {}, epsilon
    try:
        return {"hash_size": size}, thesis.local_for(epsilon, size, people, delta)
    except InvalidInput:
        return {}, epsilon


def hashed_variance(epsilon: float, size: int) -> float:
    """The thesis's variance of hashing to d' values: m^2/(n (m - d')^2 (d' - 1))."""
    m = epsilon**2 * (PEOPLE - 1) / (14 * np.log(2 / DELTA))
    if m <= size:  # nothing is amplified: 4 E/(n (E - 1)^2), wang2021thesis, table 3.1
        odds = np.exp(epsilon)
        return float(4 * odds / (PEOPLE * (odds - 1) ** 2))
    return float(m**2 / (PEOPLE * (m - size) ** 2 * (size - 1)))


def unary_variance(epsilon: float) -> float:
    """The same of RAP: (m - 1)/(n (m - 2)^2), m = eps^2 (n - 1)/(56 ln(4/delta))."""
    m = epsilon**2 * (PEOPLE - 1) / (56 * np.log(4 / DELTA))
    return float((m - 1) / (PEOPLE * (m - 2) ** 2)) if m > 2 else float("nan")


def appended_variance(epsilon: float) -> float:
    """The same of AUE: g (1 - g)/n, g = 200 ln(4/delta)/(eps^2 n)."""
    share = 200 * np.log(4 / DELTA) / (epsilon**2 * PEOPLE)
    return float(share * (1 - share) / PEOPLE)


def table(epsilon: str) -> dict[str, Any]:
    """A column of table 9.2: the thesis's mean squared errors, and ours, all by formula."""
    import sottovoce as sv
    from sottovoce.measure.simulated_shuffles import SIMULATED

    exact = float(epsilon)
    best = max(2, int(thesis.best_hash_size(exact, PEOPLE, DELTA)))
    found = {"SOLH, thesis": hashed_variance(exact, best)}
    for size in SIZES:
        found[f"SOLH of {size}, thesis"] = hashed_variance(exact, size)
    found["RAP, thesis"] = unary_variance(exact)
    found["RAP_R, thesis"] = unary_variance(2 * exact)
    found["AUE, thesis"] = appended_variance(exact)
    schema = sv.Schema(x=sv.Ordinal(0, VALUES - 1))
    locals_: dict[str, float | None] = {}
    for name, question in (
        ("auto", sv.Frequencies("x")),
        ("auto, head", sv.Frequencies("x", focus="head")),
    ):
        plan = sv.plan(
            schema,
            question,
            epsilon=epsilon,
            delta=str(DELTA),
            people=PEOPLE,
            least=PEOPLE,
            cap=12,
            trust="shuffled",
        )
        noise = plan.cohorts[0].asks[0].oracle.noise(PEOPLE)
        found[name] = noise.floor + noise.slope / VALUES
        locals_[name] = float(plan.epsilon)
    for name, kind in SIMULATED.items():
        built = kind.build(Decimal(epsilon), DELTA, PEOPLE)
        share = float(built.chance)
        gap = 1.0 if name == "aue" else 1 - 2 * share
        found[f"{name}, numeric"] = share * (1 - share) / gap**2 / PEOPLE
        locals_[f"{name}, numeric"] = built.local
    found["Laplace noise of a curator"] = 8 / (exact * PEOPLE) ** 2
    return {"errors": found, "locals": locals_}
