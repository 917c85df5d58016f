"""What an oblivious shuffle under encryption costs: ``python -m bench.peos [REPORTS ...]``.

Every party is a process of its own, with a key of full size; times are CPU seconds, so that other
load does not matter.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

import sottovoce as sv
from sottovoce.ground.entropy import System
from sottovoce.shuffle.peos import (
    FULL_MODULUS_BITS,
    TEST_MODULUS_BITS,
    DgkPrivateKey,
    PeosResult,
    peos_run,
)
from sottovoce.shuffle.peos.shares import uniform_words

VALUES, HASH_BITS = 1024, 5  # reports of 55 bits: words of 64, as the thesis has
REPORTS = (1_000, 10_000)
MEGABYTE = 1e6


@dataclass(frozen=True)
class PaperCosts:
    """A column of wang2021thesis, table 9.3: PEOS for a million reports, no fakes, 32 threads."""

    user_ms: float
    user_bytes: int
    shuffler_s: float
    shuffler_mb: float
    server_s: float
    server_mb: float


PAPER_REPORTS = 1_000_000
TABLE_9_3 = {
    3: PaperCosts(1.6, 400, 0.2, 429.8, 65.0, 392.0),
    7: PaperCosts(1.6, 432, 0.7, 3293.3, 65.0, 408.0),
}


def measure(people: int, parties: int, fakes: int, modulus_bits: int) -> PeosResult:
    """Shuffle reports of a crowd, and check that none is lost or changed."""
    schema = sv.Schema(x=sv.Categorical(range(VALUES)))
    question = sv.Frequencies("x", oracle="olh", hash_bits=HASH_BITS)
    plan = sv.plan(schema, question, epsilon=3.5, people=people)
    sent = sv.simulate(plan, {"x": np.arange(people) % VALUES}, seed=1)
    found = peos_run(
        plan, sent, fakes=fakes, least=people, parties=parties, modulus_bits=modulus_bits
    )
    if len(found.reports) != people + fakes or found.malformed:
        raise RuntimeError("peos: there are not as many reports as people and fakes")
    before, after = (_counts(each.payload) for each in (sent, found.reports))
    if any(after.get(payload, 0) < count for payload, count in before.items()):
        raise RuntimeError("peos: a report is lost or changed")
    return found


def _counts(payload: np.ndarray) -> dict[bytes, int]:
    rows, counts = np.unique(payload, axis=0, return_counts=True)
    return {row.tobytes(): count for row, count in zip(rows, counts.tolist(), strict=True)}


def lines(found: PeosResult) -> list[str]:
    """What it cost, and the thesis's table 9.3 beside where it has the number of parties."""
    costs, parties = found.costs, len(found.costs.shufflers)
    shufflers = [sum(each.values()) for each in costs.shufflers]
    megabytes = [each / MEGABYTE for each in costs.shuffler_bytes]
    server = sum(costs.server.values())
    rows = [
        f"r = {parties}, {found.people:,} reports, {found.fakes:,} fakes",
        f"  a user          {costs.user_ms:.2f} ms, {costs.user_bytes} bytes",
        f"  shufflers, CPU  {_listed(shufflers)} s",
        f"  shufflers, sent {_listed(megabytes)} MB",
        f"  server          {server:.2f} s, {costs.server_bytes / MEGABYTE:.2f} MB received",
    ]
    if parties in TABLE_9_3:
        paper, times = TABLE_9_3[parties], PAPER_REPORTS / (found.people + found.fakes)
        average = sum(shufflers) / parties, sum(megabytes) / parties
        rows.append(
            f"  a million (times {times:g}): a shuffler {average[0] * times:.0f} s, "
            f"{average[1] * times:.0f} MB on average; server {server * times:.0f} s, "
            f"{costs.server_bytes / MEGABYTE * times:.0f} MB"
        )
        rows.append(
            f"  thesis, table 9.3: user {paper.user_ms} ms, {paper.user_bytes} bytes; "
            f"a shuffler {paper.shuffler_s} s (masks stay: it leaks), {paper.shuffler_mb} MB; "
            f"server {paper.server_s:g} s, {paper.server_mb:g} MB"
        )
    return rows


def operations(modulus_bits: int, repeats: int = 200) -> str:
    """CPU microseconds of each operation, for words of 64 bits."""
    key = DgkPrivateKey.generate(System(), modulus_bits=modulus_bits)
    public = key.public
    words = uniform_words(repeats, 64, System())
    ciphers = public.encrypt_many(words, System())  # which makes the tables, too
    key.decrypt(ciphers[:1])

    def each(run: Callable[[], object]) -> float:
        begun = process_time()
        run()
        return 1e6 * (process_time() - begun) / repeats

    alone = each(lambda: [public.encrypt(word, System()) for word in words.tolist()])
    many = each(lambda: public.encrypt_many(words, System()))
    sums = each(lambda: [public.add(cipher, ciphers[0]) for cipher in ciphers])
    moved = each(lambda: public.fresh(public.add_words(ciphers, words), System()))
    found = each(lambda: key.decrypt(ciphers))
    return (
        f"{modulus_bits} bits, us: encrypt on a device {alone:.0f}, with tables {many:.0f}; "
        f"add ciphertexts {sums:.1f}; add a word and a fresh zero {moved:.0f}; decrypt {found:.0f}"
    )


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peos", description=__doc__)
    parser.add_argument("reports", type=int, nargs="*", default=REPORTS)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--fakes", type=int, default=0)
    parser.add_argument("--test-key", action="store_true", help="a small key, to try the bench")
    asked = parser.parse_args(arguments)
    modulus_bits = TEST_MODULUS_BITS if asked.test_key else FULL_MODULUS_BITS
    print(operations(modulus_bits), flush=True)
    for people in asked.reports:
        found = measure(people, asked.parties, asked.fakes, modulus_bits)
        print("\n".join(lines(found)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
