"""What shuffling makes of local epsilons: the tables of docs/shuffle.md.

``python -m bench.shuffled`` prints them, with the CPU time of the slowest upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import sottovoce as sv
from sottovoce.accounting import (
    Mixture,
    colluding_epsilon,
    column_epsilon,
    column_lower_epsilon,
    lower_epsilon,
    shuffled_epsilon,
)
from sottovoce.accounting.shuffling.thesis import (
    binary_epsilon,
    blanket_epsilon,
    subsampled_epsilon,
    unary_epsilon,
)
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.unary import SymmetricUnaryEncoding

DELTA = 1e-9
CROWDS = (10**4, 10**6, 10**8)
LOCALS = (1, 2, 4, 6, 8)


def mixture_of(name: str, size: int, local: float) -> Mixture:
    """One oracle's reports."""
    return [(1, [sv.oracle(name, size=size, epsilon=local).blanket()])]


def bounds() -> Iterator[str]:
    """Upper and lower bounds beside the thesis's closed form, for each crowd."""
    yield "| people | local | grr of 16: upper | lower | thesis | olh: upper | lower | thesis |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    slowest = 0.0
    for people in CROWDS:
        for local in LOCALS:
            row = [f"10^{len(str(people)) - 1}", str(local)]
            for name in ("grr", "olh"):
                mixture = mixture_of(name, 16 if name == "grr" else 4096, local)
                begun = process_time()
                upper = shuffled_epsilon(mixture, people, DELTA)
                slowest = max(slowest, process_time() - begun)
                lower = lower_epsilon(mixture, people, DELTA, claimed=upper)
                size = round(1 / mixture[0][1][0].q)
                row += [f"{upper:.5f}", f"{lower:.5f}", told_blanket(size, local, people)]
            yield f"| {' | '.join(row)} |"
    yield f"\nSlowest upper bound: {slowest:.2f} CPU seconds."


def gaps() -> Iterator[str]:
    """The upper bound over the lower one, the largest over crowds, and that at each."""
    yield "| reports | largest | 10^4 | 10^6 | 10^8 |"
    yield "| --- | --- | --- | --- | --- |"
    cases = [("grr", size, {}) for size in (2, 3, 4, 8, 16, 64)]
    cases += [("olh", 4096, {"hash_bits": bits}) for bits in (2, 4, 6, 9)]
    for name, size, options in cases:
        row = []
        for people in CROWDS:
            worst = 0.0
            for local in (0.25, 0.5, *LOCALS):
                mixture = [(1, [sv.oracle(name, size=size, epsilon=local, **options).blanket()])]
                upper = shuffled_epsilon(mixture, people, DELTA)
                lower = lower_epsilon(mixture, people, DELTA, claimed=upper)
                worst = max(worst, upper / lower)
            row.append(worst)
        told = " | ".join(f"{each:.4f}" for each in (max(row), *row))
        yield f"| {name} of {size if name == 'grr' else 2 ** options['hash_bits']} | {told} |"


def told_blanket(size: int, local: float, people: int) -> str:
    """The thesis's closed form, or that it proves nothing."""
    try:
        return f"{blanket_epsilon(size, local, people, DELTA):.4f}"
    except InvalidInput:
        return "not proved"


def fakes() -> Iterator[str]:
    """Fakes and colluding people, for olh with 512 hash values."""
    people = 10**6
    blanket = sv.oracle("olh", size=4096, epsilon=6, hash_bits=9).blanket()
    mixture = [(1, [blanket])]
    yield "| fakes | nobody colludes | half | 90% | 99% | everybody |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for count in (0, people // 10, people):
        row = [f"{count:,}"]
        for share in (0, 0.5, 0.9, 0.99):
            row.append(f"{shuffled_epsilon(mixture, people, DELTA, count, share):.4f}")
        row.append(f"{colluding_epsilon(mixture, count, DELTA):.4f}")
        yield f"| {' | '.join(row)} |"


def columns() -> Iterator[str]:
    """Unary encoding, whole and by columns."""
    people = 10**6
    yield "| local | whole vectors: upper | lower | columns: upper | lower | one column | thesis |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for local in (2, 4, 6, 8, 10):
        oracle = sv.oracle("sue", size=16, epsilon=local)
        assert isinstance(oracle, SymmetricUnaryEncoding)
        mixture = [(1, [oracle.blanket()])]
        coins = oracle.exact_p, oracle.exact_q
        row = [
            shuffled_epsilon(mixture, people, DELTA),
            lower_epsilon(mixture, people, DELTA),
            column_epsilon(*coins, people, DELTA),
            column_lower_epsilon(*coins, people, DELTA),
            column_epsilon(*coins, people, DELTA, is_removal=True),
            unary_epsilon(local, people, DELTA),
        ]
        yield f"| {local} | {' | '.join(f'{each:.4f}' for each in row)} |"


def earlier() -> Iterator[str]:
    """The rows of the thesis's table 9.1 for two values, beside ours."""
    people = 10**6
    yield "| local | first row | second row | third row | ours: upper | lower |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for local in (0.25, 0.4, 1, 2, 4):
        mixture = mixture_of("rr", 2, local)
        row = []
        for claim in (
            lambda local: subsampled_epsilon(local, people, DELTA),
            lambda local: binary_epsilon(local, people, DELTA),
            lambda local: blanket_epsilon(2, local, people, DELTA),
        ):
            try:
                row.append(f"{claim(local):.4f}")
            except InvalidInput:
                row.append("not proved")
        row.append(f"{shuffled_epsilon(mixture, people, DELTA):.4f}")
        row.append(f"{lower_epsilon(mixture, people, DELTA):.4f}")
        yield f"| {local} | {' | '.join(row)} |"


def main() -> None:
    """Print every table."""
    for title, table in (
        ("Bounds", bounds),
        ("Upper over lower, local epsilons from 0.25 to 8", gaps),
        ("Fakes", fakes),
        ("Columns", columns),
        ("Table 9.1", earlier),
    ):
        print(f"\n{title}, delta {DELTA:g}\n")
        for line in table():
            print(line, flush=True)


if __name__ == "__main__":
    main()
