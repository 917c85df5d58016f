"""Run inside a peer's own environment: one oracle of its public API on the bench's population, one
JSON line.

``python -m bench.peer_child PACKAGE ORACLE PEOPLE SIZE``. Nothing here imports sottovoce.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from bench.resident import Above

EPSILON = 1.0
EM_ITERATIONS = 1000
Side = Callable[[Any], Any]


def _toolbox(oracle: str, size: int) -> tuple[Side, Side]:
    module, name, options = {
        "oue": ("ue", "UnaryEncoding", {"optimal": True}),
        "sue": ("ue", "UnaryEncoding", {"optimal": False}),
        "ss": ("ss", "SubsetSelection", {}),
        "the": ("he", "HistogramEncoding", {"thresholding": True}),
    }[oracle]
    kind = getattr(import_module(f"ldp_toolbox.protocols.frequency.{module}"), name)
    protocol = kind(size, EPSILON, **options)
    return protocol.obfuscate, protocol.estimate


def _multifreq(oracle: str, size: int) -> tuple[Side, Side]:
    home = "multi_freq_ldpy.pure_frequency_oracles"
    if oracle == "olh":
        hashing: Any = import_module(f"{home}.LH")
        return (
            lambda value: hashing.LH_Client(value, size, EPSILON, True),
            lambda reports: hashing.LH_Aggregator_MI(reports, size, EPSILON, True),
        )
    direct: Any = import_module(f"{home}.GRR")
    return (
        lambda value: direct.GRR_Client(value, size, EPSILON),
        lambda reports: direct.GRR_Aggregator_IBU(reports, size, EPSILON, nb_iter=EM_ITERATIONS),
    )


def _pure(oracle: str, size: int) -> tuple[Side, Side]:
    oracles: Any = import_module("pure_ldp.frequency_oracles")
    if oracle == "grr":
        client, server = oracles.DEClient(EPSILON, size), oracles.DEServer(EPSILON, size)
    else:
        server = oracles.HadamardResponseServer(EPSILON, size)
        client = oracles.HadamardResponseClient(EPSILON, size, server.get_hash_funcs())

    def estimate(reports: Any) -> Any:
        server.aggregate_all(reports)
        return server.estimate_all(range(1, size + 1), suppress_warnings=True)

    return lambda value: client.privatise(value + 1), estimate


def main(package: str, oracle: str, people: int, size: int) -> dict[str, float]:
    make = {"ldp-toolbox": _toolbox, "multi-freq-ldpy": _multifreq, "pure-ldp": _pure}[package]
    client, server = make(oracle, size)
    weights = 1.0 / np.arange(1, size + 1)
    values = np.random.default_rng(0).choice(size, people, p=weights / weights.sum()).tolist()
    for value in values[:50]:  # compiles what the peer compiles
        client(value)
    above = Above()
    start = time.perf_counter()
    reports = [client(value) for value in values]
    asked = time.perf_counter()
    server(reports)
    end = time.perf_counter()
    return {"client": asked - start, "server": end - asked, "above": above.mib(), "people": people}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
