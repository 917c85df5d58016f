"""A file with the round of every row of a file of people: nobody answers two rounds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import replacing
from sottovoce.ground.seeds import SystemDraws
from sottovoce.sending.journal import is_at, is_locked, sync_folder

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.reports import Reports

SERIES_KEY = b"sottovoce.series"


class SeriesMembership:
    """The rows' places in a series: the round that each drew, once, and whether it has answered.

    Rounds are drawn with the operating system's entropy, as a device draws its own; the file holds
    no answers. It is read when no other process has it, and is no other's until :meth:`close`.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self._series = path.resolve(), plan.series
        self._name = plan.series.origin or plan.id
        self._rounds: NDArray[np.uint16] = np.zeros(0, np.uint16)
        self._answered: NDArray[np.bool_] = np.zeros(0, bool)
        # the file itself is replaced again and again
        self._lock_path = self.path.with_name(f"{self.path.name}.lock")
        self._lock = self._locked()
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _locked(self) -> int:
        try:
            lock = os.open(
                self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
        except OSError as wrong:
            raise InvalidInput(
                f"series ({self.path}) must lie in a folder where {self._lock_path.name} can be "
                f"made ({wrong.strerror})"
            ) from None
        if is_locked(lock, self._lock_path):
            return lock
        os.close(lock)
        raise InvalidInput(f"series ({self.path}) is in use: another whisper or send is under way")

    def close(self) -> None:
        """Leave the file to others."""
        if is_at(self._lock, self._lock_path) and not os.fstat(self._lock).st_size:
            self._lock_path.unlink()
        os.close(self._lock)

    def _begin(self) -> None:
        if self.path.exists():
            self._load()
        elif self._series.number:
            raise InvalidInput(
                f"series ({self.path}) must be the file that the first round wrote: it knows who "
                "has answered"
            )

    def _load(self) -> None:
        pa = imported("pyarrow")
        pq = imported("pyarrow.parquet")

        malformed = f"series ({self.path}) must be a file that an earlier round wrote"
        try:
            table = pq.read_table(self.path)
            about = json.loads((table.schema.metadata or {})[SERIES_KEY])
            rounds = table["round"].to_numpy().astype(np.uint16)
            answered = table["answered"].to_numpy().astype(bool)
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
            raise InvalidInput(malformed) from None
        if about != self._about() or (
            len(rounds) and int(rounds.max()) >= len(self._series.shares)
        ):
            raise InvalidInput(f"series ({self.path}) belongs to another series than the plan")
        self._rounds, self._answered = rounds, answered

    def _about(self) -> dict[str, Any]:
        return {"origin": self._name, "shares": list(self._series.shares)}

    def answering(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of ``count`` rows from ``first`` on answer now; from here on they have answered."""
        self._draw(first + count)
        rows = slice(first, first + count)
        mine = np.asarray((self._rounds[rows] == self._series.number) & ~self._answered[rows])
        self._answered[rows] |= mine
        return mine

    def prepare(self, count: int) -> None:
        """Draw the rounds of the first ``count`` rows, for good."""
        if count > len(self._rounds) or not self.path.exists():
            self._draw(count)
            self.save()

    def answers(self, row: int) -> bool:
        """Whether a row (from 1) of the prepared ones is of this round and has not answered."""
        return bool(self._rounds[row - 1] == self._series.number and not self._answered[row - 1])

    def mark(self, rows: Iterable[int]) -> None:
        """From here on these rows (from 1) have answered."""
        places = np.fromiter(rows, np.int64) - 1
        if not self._answered[places].all():
            self._answered[places] = True
            self.save()

    def _draw(self, count: int) -> None:
        missing = max(0, count - len(self._rounds))
        tickets = SystemDraws().integers(0, sum(self._series.shares), missing)
        self._rounds = np.concatenate(
            [self._rounds, self._series.at_column(tickets).astype(np.uint16)]
        )
        self._answered = np.concatenate([self._answered, np.zeros(missing, bool)])

    def recorded(self, told: Iterable[Reports]) -> Iterator[Reports]:
        """The reports as they come; who answered is saved before their file takes its name."""
        count = 0
        for reports in told:
            count += len(reports)
            yield reports
        if not count:
            raise InvalidInput(
                "series: nobody answers: all people of this round have, or nobody was drawn into it"
            )
        self.save()

    def save(self) -> None:
        """Keep it, before anything that depends on it leaves."""
        pa = imported("pyarrow")
        pq = imported("pyarrow.parquet")

        table = pa.table({"round": self._rounds, "answered": self._answered})
        table = table.replace_schema_metadata({SERIES_KEY: json.dumps(self._about()).encode()})
        with replacing(self.path) as draft:
            pq.write_table(table, draft, compression="zstd")
            with draft.open("rb") as written:
                os.fsync(written.fileno())
        sync_folder(self.path)


@contextmanager
def needed(
    plan: Plan, series: Path | None, seed: int | None = None
) -> Iterator[SeriesMembership | None]:
    """Who answers a plan of several rounds; None for a plan of one, or if a seed keeps rounds."""
    if len(plan.series.shares) == 1:
        if series is not None:
            raise InvalidInput(
                "series is for a plan of several rounds; this one has a single round"
            )
        yield None
        return
    if seed is not None:
        if series is not None:
            raise InvalidInput(
                "series and seed: give one; with the same seed every row keeps its round in all "
                "plans"
            )
        yield None
        return
    if series is None:
        raise InvalidInput(
            "series: this plan is one of several rounds; give --series FILE, the same in all of "
            "them, so that nobody answers twice"
        )
    with closing(SeriesMembership(series, plan)) as members:
        yield members


def state_of(plan: Plan) -> Any:
    """The state of a device that belongs to this plan's round."""
    from sottovoce.device.client import ClientState
    from sottovoce.device.client import Membership as Place
    from sottovoce.oracles.thresholds import LARGEST_EPSILON

    state = ClientState(cap=LARGEST_EPSILON, delta_cap=1)  # kept for this one report only
    state.rounds[plan.series.origin or plan.id] = Place(plan.series.shares, plan.series.number)
    return state
