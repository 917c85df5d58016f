"""What pieces of large tables weigh, and what cutting, adding up and gathering them costs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import sottovoce as sv
from bench.rows import Row
from bench.timing import Timing
from sottovoce.aggregation.piece_bytes import MAX_PIECE_BYTES
from sottovoce.aggregation.pieces import Piece, sum_pieces
from sottovoce.protocol.reports import STREAM_BATCH

MEBI = 1 << 20


@dataclass(frozen=True)
class PieceShape:
    """How large the cases are."""

    parts: int = 4
    blocks: int = 8  # of 2^17 people in each part
    bits: tuple[int, ...] = (24, 26)  # of the tables


def pieces(_: Any, __: Mapping[str, Any], shape: PieceShape = PieceShape()) -> Iterator[Row]:
    """Tables of ``olh``: what one part sends, and the sum of several."""
    for bits in shape.bits:
        yield from _table(bits, shape)


def _table(bits: int, shape: PieceShape) -> Iterator[Row]:
    schema = sv.Schema(x=sv.Integer(bits=bits))
    plan = sv.plan(schema, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=10**8)
    what = f"olh, d = 2^{bits}"

    def row(name: str, unit: str, figure: float, **more: Any) -> Row:
        return Row("pieces", f"{what}: {name}", unit, Timing(figure, figure, 1), **more)

    bodies, cut = defaultdict[int, list[bytes]](list), []
    whole = sv.Aggregate(plan)
    for number in range(shape.parts):
        part = _part(plan, number, shape)
        seconds, own = _timed(lambda part=part: list(part.pieces()))  # type: ignore[misc]
        cut.append(seconds)
        for piece in own:
            bodies[piece.number].append(piece.body)
        whole.absorb(part)
    sizes = [len(body) for each in bodies.values() for body in each]
    people = f"{shape.blocks * STREAM_BATCH:,} people"
    total = sum(sizes) / shape.parts / MEBI
    yield row("pieces of a part", "MiB", total, note=f"{len(bodies):,} pieces, {people}")
    yield row("cutting a part", "s", min(cut), note="CPU")
    seconds, summed = _timed(
        lambda: [Piece(number, sum_pieces(number, each)) for number, each in bodies.items()]
    )
    yield row("adding up", "s", seconds, note=f"CPU, {shape.parts} parts")
    total = sum(len(piece.body) for piece in summed) / MEBI
    yield row("pieces of the sum", "MiB", total, note=f"{shape.parts} parts")
    largest = max([*sizes, *(len(piece.body) for piece in summed)])
    limit = MAX_PIECE_BYTES / MEBI
    yield row("largest piece", "MiB", largest / MEBI, limit=limit, note="of parts and of the sum")
    seconds, found = _timed(lambda: sv.Aggregate(plan).add_pieces(summed))
    yield row("gathering", "s", seconds, note="CPU, from pieces to an aggregate")
    wrong = not np.array_equal(found.state(0), whole.state(0))
    yield row("gathered tables that differ", "wrong", float(wrong), limit=0.0)


def _part(plan: sv.Plan, number: int, shape: PieceShape) -> sv.Aggregate:
    total = sv.Aggregate(plan)
    for block in range(shape.blocks):
        seed = number * shape.blocks + block
        values = np.random.default_rng(seed).integers(0, 256, STREAM_BATCH)
        total.add(sv.simulate(plan, {"x": values}, seed=seed))
    return total


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """(CPU seconds, what it gave)."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found
