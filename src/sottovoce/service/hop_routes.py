"""What a hop takes from other hops over HTTP: chunks of a batch, and what is said about fakes."""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from sottovoce.device.sealing import PrivateKey, hops_of
from sottovoce.protocol.plan import Plan
from sottovoce.service.problems import Problem
from sottovoce.shuffle.batch import hop_of
from sottovoce.shuffle.messages import Chunk, HopLink, Message, NotAuthentic, sender_of, split
from sottovoce.store.hops import BatchState, HopStore


async def answered(
    request: Request,
    plan: Plan,
    key: PrivateKey,
    kind: str,
    senders: range,
    take: Callable[[Message], bytes],
) -> JSONResponse:
    """The answer to a message of one of the ``senders``; nobody else's is looked into."""
    data = await request.body()
    sender = sender_of(data)
    if sender not in senders or sender >= len(hops_of(plan)):
        raise not_authentic()
    link = HopLink(plan, hop_of(plan, key), key, sender)
    try:
        message = link.read(kind, data)
    except NotAuthentic:
        raise not_authentic() from None
    value = await run_in_threadpool(take, message)
    return JSONResponse(link.answer(message, value))


def not_authentic() -> Problem:
    """The answer to whoever is not the hop that the plan names."""
    return Problem("forbidden", "this is for the hops that the plan names, under their keys")


def take_chunk(
    store: HopStore, plan: Plan, name: str, state: BatchState, body: bytes, size: int
) -> None:
    """Keep a chunk of pieces of one size, under the name of what it is a part of."""
    chunk = Chunk.read(body)
    split(chunk.data, size)  # which refuses others
    store.add_chunk(plan.id, name, state, chunk.number, chunk.count, chunk.data)
