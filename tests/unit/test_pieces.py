"""Pieces: however a crowd is parted, and in whatever order and groups the pieces of its parts are
added up, they give the integers of all reports together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.aggregation import piece_bytes
from sottovoce.aggregation import pieces as module
from sottovoce.aggregation.aggregate import fold
from sottovoce.aggregation.answer_counts import AnswerCounts
from sottovoce.aggregation.cells import PlacedCells
from sottovoce.aggregation.piece_bytes import MAX_PIECE_BYTES, PIECE_CELLS
from sottovoce.aggregation.pieces import Piece, sum_pieces
from sottovoce.aggregation.row_counts import RowCounts
from sottovoce.aggregation.rows import CountedRows
from sottovoce.aggregation.sum_counts import SumCounts
from sottovoce.aggregation.table_counts import TableCounts
from sottovoce.ground.errors import CorruptReport, InvalidInput, PlanMismatch
from tests.family_plans import KINDS, plan_of, reports_of
from tests.vectors.aggregates import plans

QUERIES = ("hi", "hio", "sc", "tree", "haar", "square-wave", "ahead", "unbiased")

Crowd = tuple[sv.Plan, sv.Reports]


def of_methods() -> dict[str, Callable[[], Crowd]]:
    return {
        name: lambda plan=plan, columns=columns: (plan, sv.simulate(plan, columns, seed=2))
        for name, plan, columns in plans()
    }


def of_families() -> dict[str, Callable[[], Crowd]]:
    return {kind: lambda kind=kind: (plan_of(kind), reports_of(plan_of(kind))) for kind in KINDS}


def of_queries() -> dict[str, Callable[[], Crowd]]:
    """Plans of SQL, whose measures are weights."""
    schema = sv.Schema(
        age=sv.Ordinal(0, 29), amount=sv.Number(0, 100, step="0.01", sensitive=False)
    )
    draws = np.random.default_rng(3)
    people = {"age": draws.integers(0, 30, 300), "amount": draws.integers(0, 100, 300)}

    def crowd(method: str) -> Crowd:
        question = sv.Queries(["age"], measures=["amount"], method=method)
        plan = sv.plan(schema, question, epsilon=2.0, people=1000)
        return plan, sv.simulate(plan, people, seed=3)

    return {f"queries/{name}": partial(crowd, name) for name in QUERIES}


CROWDS = of_families() | of_methods() | of_queries()
each_crowd = pytest.mark.parametrize("name", list(CROWDS))


def parts_of(plan: sv.Plan, reports: sv.Reports, weights: Any = None) -> list[sv.Aggregate]:
    """The aggregates of five parts of a crowd, one of them empty."""
    numbers = np.random.default_rng(4).integers(0, 4, len(reports))
    return [
        fold(
            plan,
            reports[np.flatnonzero(numbers == part)],
            None if weights is None else weights[numbers == part],
        )
        for part in range(5)
    ]


def by_number(pieces: Iterable[Piece]) -> dict[int, list[bytes]]:
    found = defaultdict[int, list[bytes]](list)
    for piece in pieces:
        found[piece.number].append(piece.body)
    return found


def summed(pieces: Iterable[Piece]) -> list[Piece]:
    return [
        Piece(number, sum_pieces(number, bodies)) for number, bodies in by_number(pieces).items()
    ]


def ways(parts: Sequence[sv.Aggregate]) -> list[list[Piece]]:
    """All pieces of some parts: as they are, in another order, added up at once, and in groups."""
    cut = [list(part.pieces()) for part in parts]
    plain = [piece for pieces in cut for piece in pieces]
    shuffled = [plain[place] for place in np.random.default_rng(5).permutation(len(plain))]
    left = summed([*summed([*cut[0], *cut[1]]), *cut[2]])
    right = summed([*cut[4], *summed(cut[3])])
    return [plain, shuffled, summed(plain), summed(shuffled), [*left, *right], summed(left + right)]


def pieces_give_the_whole(plan: sv.Plan, reports: sv.Reports, weights: Any = None) -> None:
    whole = fold(plan, reports, weights)
    parts = parts_of(plan, reports, weights)
    for pieces in ways(parts):
        found = sv.Aggregate(plan).add_pieces(pieces)
        assert found == whole
        assert found.people == whole.people
        assert found.counts.magnitude == whole.counts.magnitude
        assert found.to_bytes() == whole.to_bytes()
        assert found.digest == whole.digest
        assert all(len(piece.body) <= MAX_PIECE_BYTES for piece in pieces)
    assert parts[0].add_pieces(summed(p for part in parts[1:] for p in part.pieces())) == whole


@each_crowd
def test_pieces_of_parts_give_the_whole(name: str) -> None:
    plan, reports = CROWDS[name]()
    pieces_give_the_whole(plan, reports)


@pytest.mark.parametrize("name", [name for name in CROWDS if name not in dict(of_methods())])
def test_pieces_of_weighted_reports_give_the_whole(name: str) -> None:
    plan, reports = CROWDS[name]()
    draws = np.random.default_rng(6)
    pieces_give_the_whole(plan, reports, draws.integers(-3, 5, len(reports)))


def test_there_are_crowds_of_every_kind_of_counts() -> None:
    kinds = {type(sv.Aggregate(make()[0]).counts) for make in CROWDS.values()}
    assert kinds == {AnswerCounts, RowCounts, SumCounts, TableCounts}


def large_plan(size: int = 1 << 20) -> sv.Plan:
    schema = sv.Schema(x=sv.Integer(bits=size.bit_length() - 1))
    return sv.plan(schema, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=10_000)


def large_crowd(count: int = 20_000) -> Crowd:
    plan = large_plan()
    values = np.random.default_rng(7).integers(0, 1 << 20, count)
    return plan, sv.simulate(plan, {"x": values}, seed=8)


def test_a_large_table_travels_in_many_pieces() -> None:
    plan, reports = large_crowd()
    pieces_give_the_whole(plan, reports)
    pieces = list(fold(plan, reports).pieces())
    assert sorted(piece.number for piece in pieces) == list(range(16))  # 2^20 cells
    assert sum(len(piece.body) for piece in pieces) < len(fold(plan, reports).to_bytes())


def test_empty_ranges_do_not_travel() -> None:
    plan = large_plan()
    (only,) = sv.Aggregate(plan).pieces()
    assert only.number == 0
    assert len(only.body) < 100
    assert sv.Aggregate(plan).add_pieces([only]) == sv.Aggregate(plan)
    one = sv.Aggregate(plan).add(large_crowd(1)[1])
    assert len(list(one.pieces())) <= 5
    assert sv.Aggregate(plan).add_pieces([]) == sv.Aggregate(plan)


@pytest.mark.parametrize("largest", [1, 100, 30_000, 1 << 20, 1 << 40])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_cells_survive_in_few_bytes(largest: int, share: float) -> None:
    draws = np.random.default_rng(9)
    places = np.flatnonzero(draws.random(PIECE_CELLS) < share)
    values = draws.integers(1, largest + 1, len(places)) * draws.choice([-1, 1], len(places))
    body = piece_bytes.PieceBody("ab" * 32, 5, 7, PlacedCells(places, values))
    data = piece_bytes.packed(3, body)
    again = piece_bytes.body_of(3, data)
    assert again[:3] == body[:3]
    assert np.array_equal(again.content[0], places)
    assert np.array_equal(again.content[1], values)
    width = next(width for width in (1, 2, 4, 8) if largest < 1 << (8 * width - 1))
    assert len(data) <= 1.01 * width * PIECE_CELLS + 100 <= MAX_PIECE_BYTES


def test_what_is_lost_or_taken_twice_is_refused_and_changes_nothing() -> None:
    for plan, reports in (large_crowd(500), CROWDS["kept"]()):
        parts = [fold(plan, reports[:200]), fold(plan, reports[200:])]
        pieces = [piece for part in parts for piece in part.pieces()]
        into = fold(plan, reports[:3])
        for place in range(len(pieces)):
            for wrong in (pieces[:place] + pieces[place + 1 :], [*pieces, pieces[place]]):
                with pytest.raises(CorruptReport, match="missing, or there twice"):
                    into.add_pieces(wrong)
        assert into == fold(plan, reports[:3])
        assert into.counts.magnitude == 3


def test_bad_bodies_name_their_piece() -> None:
    plan, reports = large_crowd(500)
    pieces = {piece.number: piece.body for piece in fold(plan, reports).pieces()}
    body = pieces[4]
    turned = bytearray(body)
    turned[60] ^= 1
    for wrong, rule in [
        (b"", "not a piece"),
        (b"SVA\x01" + body[4:], "not a piece"),
        (body[:-1], "checksum"),
        (bytes(turned), "checksum"),
        (pieces[5], "checksum"),
    ]:
        with pytest.raises(CorruptReport, match=f"^piece 4: .*{rule}"):
            sum_pieces(4, [body, wrong])
        with pytest.raises(CorruptReport, match=f"^piece 4: .*{rule}"):
            sv.Aggregate(plan).add_pieces([Piece(4, wrong)])
    with pytest.raises(InvalidInput, match=r"^piece 4: there are no bodies"):
        sum_pieces(4, [])


def test_pieces_of_other_plans_are_refused() -> None:
    one, other = plan_of("kept", 2.0), plan_of("kept", 1.0)
    bodies = {piece.number: piece.body for piece in fold(one, reports_of(one)).pieces()}
    others = {piece.number: piece.body for piece in fold(other, reports_of(other)).pieces()}
    with pytest.raises(PlanMismatch, match="piece 0: its bodies are of different plans"):
        sum_pieces(0, [bodies[0], others[0]])
    with pytest.raises(PlanMismatch, match="piece 0: it belongs to another plan"):
        sv.Aggregate(one).add_pieces([Piece(0, others[0])])


def packed(number: int, plan: sv.Plan, content: Any) -> Piece:
    return Piece(number, piece_bytes.packed(number, piece_bytes.PieceBody(plan.id, 0, 0, content)))


def test_content_that_no_reports_give_is_refused() -> None:
    cell = PlacedCells(np.array([50]), np.array([1]))
    far = PlacedCells(np.array([60_000]), np.array([1]))
    for kind, number, content, rule in [
        ("signs", 0, cell, "answer|oracle"),
        ("listed", 0, far, "cells must be below"),
        ("kept", 0, far, "cells must be below"),
        ("kept", 0, PlacedCells(np.array([10]), np.array([1])), "more cells"),
        ("kept", 1, cell, "no such piece"),
        ("listed", 1, CountedRows(np.zeros((1, 9), np.uint8), None), "keeps no reports"),
        ("kept", 1, CountedRows(np.zeros((1, 9), np.uint8), None), "other bytes"),
    ]:
        plan = plan_of(kind)
        with pytest.raises(CorruptReport, match=rf"^piece {number}: .*({rule})"):
            sv.Aggregate(plan).add_pieces([packed(number, plan, content)])


def test_rows_that_no_device_sends_are_refused() -> None:
    plan = plan_of("kept")
    pieces = fold(plan, reports_of(plan)).pieces()
    good = next(piece_bytes.body_of(1, piece.body).content for piece in pieces if piece.number == 1)
    for place, value, rule in [
        (0, 255, "cohort must be below"),
        (5, 1, "keeps none"),
        (5, 9, "keeps none"),
        (-1, 255, "padding|below"),
    ]:
        rows = good.payload.copy()
        rows[:, place] = value
        with pytest.raises(CorruptReport, match=f"^piece 1: .*({rule})"):
            sv.Aggregate(plan).add_pieces([packed(1, plan, CountedRows(rows, None))])


def test_sums_beyond_64_bits_are_refused() -> None:
    plan = plan_of("listed")
    many = packed(0, plan, PlacedCells(np.array([1]), np.array([1 << 62]))).body
    assert sum_pieces(0, [many])
    with pytest.raises(InvalidInput, match=r"^piece 0: .*64 bits"):
        sum_pieces(0, [many, many])


def test_more_weight_than_fits_is_refused_and_changes_nothing() -> None:
    plan = plan_of("listed")
    reports = reports_of(plan, 1)
    heavy = fold(plan, reports, [1 << 49])
    with pytest.raises(InvalidInput, match="absolute values"):
        heavy.add_pieces([piece for _ in range(3) for piece in heavy.pieces()])
    assert heavy == fold(plan, reports, [1 << 49])


def test_far_more_rows_than_planned_are_refused() -> None:
    plan = sv.plan(
        sv.Schema(x=sv.Categorical(range(100))),
        sv.Frequencies("x", oracle="olh-seeded"),
        epsilon=1.0,
        people=10,
    )
    people = {"x": np.zeros(80_000, int)}
    with pytest.raises(InvalidInput, match="the plan expects fewer people"):
        list(sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).pieces())


def test_adding_up_that_forgets_a_body_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law above is not empty: a sum that drops what comes last breaks it."""
    plan, reports = CROWDS["listed"]()
    add = module._Sum.add

    def deaf(self: Any, body: Any) -> None:
        if not self._most:
            add(self, body)

    monkeypatch.setattr(module._Sum, "add", deaf)
    with pytest.raises((AssertionError, CorruptReport)):
        pieces_give_the_whole(plan, reports)


@pytest.mark.parametrize("kind", list(KINDS))
def test_digests_are_of_the_integers(kind: str) -> None:
    plan, reports = CROWDS[kind]()
    whole = fold(plan, reports)
    gone = fold(plan, reports[:9]).absorb(fold(plan, reports[:9], [-1] * 9))
    assert whole.digest == whole.merge(gone).digest  # whatever was taken away on the way
    assert len({whole.digest, fold(plan, reports[1:]).digest, sv.Aggregate(plan).digest}) == 3
    assert whole.digest != fold(plan_of(kind, 1.0), reports_of(plan_of(kind, 1.0))).digest
