"""The minutes that senders claim: an id tells one, and none is checked by anybody else."""

from __future__ import annotations

from sottovoce.device.assignment import ID_BYTES
from sottovoce.service.problems import Problem

DAY_SECONDS = 24 * 3600
AHEAD_SECONDS = DAY_SECONDS  # that a sender's clock may be fast
_TIME_BYTES = 6  # of an id: milliseconds, the last two bytes of them zero


def check_minutes(ids: bytes, now: float, oldest_days: float) -> None:
    """Refuse ids of a time that is too long ago, or to come.

    Reports are kept and folded by that minute, and ids are not kept for ever: whoever could claim
    any minute could have files made for all of them, and be counted again once ids are gone.
    """
    earliest = int((now - oldest_days * DAY_SECONDS) * 1000) >> 16 << 16
    latest = int((now + AHEAD_SECONDS) * 1000)
    for start in range(0, len(ids), ID_BYTES):
        if not earliest <= int.from_bytes(ids[start : start + _TIME_BYTES], "big") <= latest:
            raise Problem(
                "wrong-time",
                f"report: its id must tell a minute of the last {oldest_days:g} days, or of the "
                "next day at most; it is too old, or its device's clock is wrong",
            )
