"""The ledger of a release: what was spent on what, written down before the noise is drawn."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Self, cast

from sottovoce.accounting.gaussian import check_delta
from sottovoce.accounting.steps import Neighbours, Step, check_neighbours, step_from_json
from sottovoce.accounting.totals import total_delta, total_epsilon
from sottovoce.ground.arguments import number_in, written
from sottovoce.ground.errors import BudgetExceeded, InvalidInput

LEDGER_FORMAT = 1


class Ledger:
    """Steps, what they cost together, and a budget that they may not exceed.

    :meth:`spend` comes before the noise. With a path, a step is on the disk when it returns, so a
    release that crashes has not forgotten what it drew, and the next one goes on from there.

    >>> from sottovoce.accounting.steps import GaussianStep
    >>> ledger = Ledger(epsilon=1, delta="1e-6")
    >>> ledger.spend(GaussianStep.of_counts("1-tuples", "their counts", 20, Fraction(400)))
    >>> round(ledger.epsilon_at(1e-6), 4)
    0.943
    >>> ledger.spend(GaussianStep.of_counts("2-tuples", "their counts", 20, Fraction(400)))
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    sottovoce.ground.errors.BudgetExceeded: step '2-tuples' would raise delta at epsilon 1 ...
    """

    def __init__(
        self,
        neighbours: Neighbours = "add-remove",
        *,
        epsilon: Any = None,
        delta: Any = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open a ledger: a new one, or the one that lies at ``path``.

        Args:
            neighbours: the relation that all of its sensitivities are for.
            epsilon: of the budget; None for no budget.
            delta: of the budget; 0 for steps of pure privacy alone.
            path: of its file, which may be there already; None to keep it in memory.
        """
        check_neighbours(neighbours)
        if (epsilon is None) != (delta is None):
            raise InvalidInput("epsilon and delta of a budget must be given together")
        self.neighbours = neighbours
        self.epsilon = None if epsilon is None else _number("epsilon", epsilon)
        self.delta = None if delta is None else _number("delta", delta)
        if self.delta is not None and self.delta > 0:
            check_delta(float(self.delta))
        self._steps: list[Step] = []
        self._file: int | None = None
        if path is not None:
            self._open(Path(path))

    @property
    def steps(self) -> tuple[Step, ...]:
        """All that was spent, in its order."""
        return tuple(self._steps)

    def spend(self, step: Step) -> None:
        """Put a step on the account; only then may its noise be drawn.

        Raises:
            BudgetExceeded: if the step would exceed the budget; then nothing is spent.
        """
        self._check_budget(step)
        if self._file is not None:
            self._append(step.to_json())
        self._steps.append(step)

    def delta_at(self, epsilon: float) -> float:
        """The delta of all steps together at an epsilon, rounded up."""
        return total_delta(self._steps, self.neighbours, epsilon)

    def epsilon_at(self, delta: float) -> float:
        """The epsilon of all steps together at a delta, rounded up."""
        return total_epsilon(self._steps, self.neighbours, delta)

    def to_json(self) -> dict[str, Any]:
        """The whole account as plain values."""
        return {**self._head(), "steps": [step.to_json() for step in self._steps]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """A ledger in memory, from what :meth:`to_json` gave."""
        if data.get("ledger") != LEDGER_FORMAT:
            raise InvalidInput(f"ledger ({data.get('ledger')}) must be format {LEDGER_FORMAT}")
        ledger = cls(data["neighbours"], epsilon=data["epsilon"], delta=data["delta"])
        for step in data["steps"]:
            ledger._steps.append(step_from_json(step))
        return ledger

    def close(self) -> None:
        """Let go of the file, if there is one."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_budget(self, step: Step) -> None:
        if self.epsilon is None or self.delta is None:
            return
        spent = total_delta([*self._steps, step], self.neighbours, self.epsilon)
        if spent > self.delta:
            raise BudgetExceeded(
                f"step '{step.name}' would raise delta at epsilon {written(self.epsilon)} to "
                f"{spent:.6g}, above the budget's {written(self.delta)}; nothing was drawn"
            )

    def _head(self) -> dict[str, Any]:
        return {
            "ledger": LEDGER_FORMAT,
            "neighbours": self.neighbours,
            "epsilon": None if self.epsilon is None else written(self.epsilon),
            "delta": None if self.delta is None else written(self.delta),
        }

    def _open(self, path: Path) -> None:
        """Take in the file's lines, and hold it for this process alone."""
        if not path.parent.is_dir():
            raise InvalidInput(f"ledger ({path}) must lie in a folder that exists")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._take_in(path)
        except BaseException:
            self.close()
            raise

    def _take_in(self, path: Path) -> None:
        file = cast(int, self._file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(f"ledger ({path}) is in use by another process") from None
        with open(file, "rb", closefd=False) as reader:
            content = reader.read()
        # A line without an end was never acknowledged: its noise was not drawn.
        whole, _, _ = content.rpartition(b"\n")
        kept = len(whole) + 1 if whole else 0
        os.ftruncate(file, kept)
        lines = whole.splitlines()
        try:
            bodies = [json.loads(line) for line in lines]
            if bodies and bodies[0] != self._head():
                raise InvalidInput(
                    f"ledger ({path}) was begun with another budget or neighbour relation"
                )
            self._steps = [step_from_json(body) for body in bodies[1:]]
        except (AttributeError, KeyError, TypeError, json.JSONDecodeError):
            raise InvalidInput(f"ledger ({path}) must be one that sottovoce wrote") from None
        if not lines:
            self._append(self._head())
            _sync_folder(path.parent)

    def _append(self, body: Mapping[str, Any]) -> None:
        """A line more, which the disk has when this returns."""
        file = cast(int, self._file)
        line = json.dumps(body, ensure_ascii=False) + "\n"
        data = line.encode()
        before = os.fstat(file).st_size
        try:
            while data:
                data = data[os.write(file, data) :]
            os.fsync(file)
        except BaseException:
            os.ftruncate(file, before)  # no half of a line stays for the next one to follow
            raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _number(name: str, value: Any) -> Fraction:
    """A number of at least 0, as it was written."""
    number = number_in(str(value))
    if number is None or number < 0:
        raise InvalidInput(f"{name} ({value}) must be a number of at least 0")
    return number
