"""Messages between hops: under their keys, or not at all."""

from __future__ import annotations

import pytest

from sottovoce.ground.errors import CorruptReport
from sottovoce.shuffle.messages import (
    BATCH_KIND,
    CHUNK_BYTES,
    COMMIT_KIND,
    Chunk,
    HopLink,
    NotAuthentic,
    chunks,
    sender_of,
    split,
)
from tests.shuffle.plans import keys, shuffled_plan

KEYS = keys()
PLAN = shuffled_plan(KEYS)
OURS, THEIRS = HopLink(PLAN, 0, KEYS[0], 1), HopLink(PLAN, 1, KEYS[1], 0)


def test_two_hops_understand_each_other() -> None:
    sent = OURS.write(BATCH_KIND, b"so")
    assert sender_of(sent) == 0
    message = THEIRS.read(BATCH_KIND, sent)
    assert (message.sender, message.body) == (0, b"so")
    assert OURS.read_answer(sent, THEIRS.answer(message, b"yes")) == b"yes"


def test_nobody_else_is_heard() -> None:
    sent = OURS.write(BATCH_KIND, b"so")
    stranger = keys(seed=7)
    forged = [
        sent[:-1] + b"x",
        bytes(32) + sent[32:],
        sent[:32] + b"\1" + sent[33:],
        HopLink(PLAN, 0, stranger[0], 1).write(BATCH_KIND, b"so"),
        HopLink(shuffled_plan(KEYS, people=301), 0, KEYS[0], 1).write(BATCH_KIND, b"so"),
        THEIRS.write(BATCH_KIND, b"so"),  # its own words, sent back
    ]
    for data in forged:
        with pytest.raises(NotAuthentic):
            THEIRS.read(BATCH_KIND, data)
    with pytest.raises(NotAuthentic):
        THEIRS.read(COMMIT_KIND, sent)
    with pytest.raises(CorruptReport):
        sender_of(sent[:32])


def test_nobody_else_can_say_that_something_was_taken() -> None:
    sent = OURS.write(BATCH_KIND, b"so")
    good = THEIRS.answer(THEIRS.read(BATCH_KIND, sent))
    other = THEIRS.answer(THEIRS.read(BATCH_KIND, OURS.write(BATCH_KIND, b"other")))
    for body in (
        None,
        {},
        {"value": ""},
        good | {"value": "00"},
        other,
        [],
        {"value": 1, "mac": 2},
    ):
        with pytest.raises(NotAuthentic):
            OURS.read_answer(sent, body)


def test_chunks_hold_whole_pieces() -> None:
    size = CHUNK_BYTES // 2
    made = chunks([bytes([each]) * size for each in range(5)], size)
    assert [len(chunk.data) // size for chunk in made] == [2, 2, 1]
    assert [Chunk.read(chunk.write()) for chunk in made] == made
    assert chunks([], 10) == [Chunk(0, 1, b"")]
    for body in (b"short", (5).to_bytes(4, "little") * 2, bytes(4) + b"\xff" * 4):
        with pytest.raises(CorruptReport):
            Chunk.read(body)
    with pytest.raises(CorruptReport):
        split(b"abc", 2)
