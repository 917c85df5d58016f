"""What other packages take, as published in shared/peers/README.md. Another machine: only `--peers`
compares fairly.
"""

from __future__ import annotations

from dataclasses import dataclass

NOTE = "measured once on two cores; other machine"
PEOPLE, SIZE, EPSILON = 100_000, 1024, 1.0
# MiB that ldp-toolbox held before it began in our own run (205 to 211); not part of that table
IMPORTS = 211.0


@dataclass(frozen=True)
class Peer:
    """The best peer for an oracle: client = a loop over its public API; server = aggregate and
    estimate all values.
    """

    package: str
    client: float  # seconds
    server: float  # seconds
    peak: float  # MiB of the whole process

    @property
    def above(self) -> float:
        """MiB above the imports, about."""
        return max(0.0, self.peak - IMPORTS)

    def server_for(self, people: int, size: int) -> float:
        """Server seconds if every pair of a report and a value is tested, as exact local hashing
        peers do.
        """
        return self.server * (people / PEOPLE) * (size / SIZE)


PUBLISHED = {
    "grr": Peer("pure-ldp", 0.09, 0.03, 189),
    "sue": Peer("ldp-toolbox", 2.6, 0.14, 1027),
    "oue": Peer("ldp-toolbox", 2.3, 0.13, 1027),
    "she": Peer("pure-ldp", 2.8, 0.13, 981),
    "the": Peer("ldp-toolbox", 3.1, 0.24, 537),
    "blh": Peer("ldp-toolbox", 0.53, 64.0, 209),
    "olh": Peer("multi-freq-ldpy", 0.43, 54.0, 209),
    "ss": Peer("ldp-toolbox", 2.2, 0.19, 510),
    "hr": Peer("pure-ldp", 0.79, 0.02, 192),
    "hcms": Peer("pure-ldp", 0.51, 0.28, 229),
    "grr-em": Peer("multi-freq-ldpy", 0.12, 107.0, 252),
}
