"""The role of a randomizer: what runs on a device, and its column form; no scipy, no numba."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy, exact_law
from sottovoce.ground.errors import InvalidInput, NotEnumerable
from sottovoce.ground.seeds import Seed, checked_seed, entropy_of
from sottovoce.oracles.blankets import Blanket, no_blanket
from sottovoce.oracles.layout import Payload
from sottovoce.oracles.shape import Shape
from sottovoce.oracles.thresholds import log_ratio

MOST_OUTCOMES = 1 << 17  # ways a randomizer may go before it counts as not enumerable


class Randomizer(Shape):
    """One person's report on a value: coins, memo and the exact ratio of chances.

    A new one gives :meth:`build`, :attr:`worst_ratio`, :attr:`layout` and :meth:`randomize`. Its
    coins are the integers it is built of. ``simulate`` follows from ``randomize``; override
    ``_simulate`` to be fast.
    """

    is_finite: ClassVar[bool] = True  # whether its outputs are finitely many
    # fields of a report that are drawn whatever the value, in that order
    public: ClassVar[tuple[str, ...]] = ()

    # -- building

    @classmethod
    @abstractmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        """The oracle for this size and epsilon. Further keyword arguments are its options."""

    def options(self) -> dict[str, Any]:
        """The options that :meth:`build` was given, as JSON without floats."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """What a plan says of this oracle; thresholds are decimal strings, for any language."""
        coins = {
            field.name: str(getattr(self, field.name))
            for field in fields(self)
            if field.metadata.get("coin")
        }
        return {
            "name": self.names[0],
            "size": str(self.size),
            "epsilon": str(self.requested),
            "options": self.options(),
            "thresholds": coins,
            "bits": self.bits,
            **({"package": self.package} if self.package else {}),
        }

    # -- privacy

    @property
    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """The largest ratio of the chances of one report under two values, exactly."""

    @cached_property
    def epsilon(self) -> float:
        """The realised epsilon of one report: at most the one asked for."""
        return log_ratio(self.worst_ratio)

    @property
    def lifetime_epsilon(self) -> float:
        """Of all reports that a device makes of one memo: by default they are one report."""
        return self.epsilon

    def blanket(self) -> Blanket:
        """What of a report hides others once reports are shuffled, from the realised coins.

        Refused for an oracle whose reports are not known to have such a law.
        """
        raise no_blanket(self.names[0], "the law of its reports is not known to have one")

    @abstractmethod
    def randomize(self, value: int, entropy: Entropy) -> Any:
        """One person's report on ``value``: the only place where privacy happens."""

    def memorize(self, value: int, entropy: Entropy) -> Any:
        """What a device keeps, so that answering again tells nothing new: here the report."""
        return self.randomize(value, entropy)

    def recall(self, memo: Any, entropy: Entropy) -> Any:
        """The report to send for a kept memo; memos have the shape of reports."""
        return memo

    @property
    def muted(self) -> Self:
        """The same randomizer with coins that tell nothing of a value, of which fakes are made:
        among these reports anybody's own is hidden best (:mod:`sottovoce.accounting`).
        """
        raise InvalidInput(
            f"{self.names[0]} has no fakes: no report of it is as likely whatever the value"
        )

    def fake(self, entropy: Entropy) -> Any:
        """A report of nobody, that tells nothing."""
        return self.muted.randomize(entropy.below(self.size), entropy)

    def simulate_fakes(self, count: int, seed: int) -> Payload:
        """Packed reports of nobody, one row each, with the law of :meth:`fake`."""
        draws = np.random.Generator(np.random.PCG64([whole("seed", seed, 0, 1 << 128), 1]))
        values = draws.integers(0, self.size, count, np.uint64)
        return self.muted.simulate(values, seed)

    def public_coins(self, entropy: Entropy) -> list[int]:
        """The ``public`` fields of a report, which tell nothing of a value: anybody may draw."""
        shapes = {field.name: field for field in self.layout.fields}
        drawn = []
        for name in self.public:
            limit, width = shapes[name].limit, shapes[name].width
            drawn.append(
                entropy.public.bits(width) if limit is None else entropy.public.below(limit)
            )
        return drawn

    def public_part(self, output: Any) -> list[int]:
        """What a report says its public coins were."""
        names = [field.name for field in self.layout.fields]
        return [output[names.index(name)] for name in self.public]

    def outputs(self) -> list[Any]:
        """Every report that can be sent, in order."""
        return self._law[0]

    def channel(self) -> NDArray[np.float64]:
        """The chance of each output (columns) for each input (rows), over all ways it can go."""
        outputs, laws = self._law
        return np.array([[float(law.get(output, 0)) for output in outputs] for law in laws])

    def exact_channel(self) -> list[dict[Any, Fraction]]:
        """The same as fractions: for each input, the exact chance of each output."""
        return self._law[1]

    @cached_property
    def _law(self) -> tuple[list[Any], list[dict[Any, Fraction]]]:
        if self.size > 64 or not self.is_finite:
            raise NotEnumerable(
                f"{self.names[0]} of size {self.size} cannot be enumerated; use a sampling audit"
            )
        laws = [exact_law(self._randomizer(value), MOST_OUTCOMES) for value in range(self.size)]
        return sorted(set().union(*laws)), laws

    def _randomizer(self, value: int) -> Callable[[Entropy], Any]:
        return lambda entropy: self.randomize(value, entropy)

    # -- many devices at once

    def simulate(self, values: ArrayLike, seed: Seed) -> Payload:
        """The packed reports of many devices, one row each, with the law of :meth:`randomize`.

        Without a seed (None) every coin is the operating system's.
        """
        column = self._column(values)
        payload = np.zeros((len(column), self.layout.bytes), np.uint8)
        self._simulate(column, payload, checked_seed(seed))
        return payload

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        entropy = entropy_of(seed)
        for row, value in enumerate(values.tolist()):
            payload[row] = np.frombuffer(self.pack(self.randomize(value, entropy)), np.uint8)
