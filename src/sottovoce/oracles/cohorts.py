"""Open alphabets: each device draws a cohort; the cohort's hash tells where its value lies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import power_of_two, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import LARGEST_SALT, bucket, keyed_hash, keys
from sottovoce.ground.seeds import Seed, draws
from sottovoce.oracles.base import Floats, Integers, Noise, SummedOracle
from sottovoce.oracles.layout import Field
from sottovoce.schema import OPEN

if TYPE_CHECKING:
    from sottovoce.oracles.decoding import Design

MAX_HASH_COHORTS = 8192
MAX_DECODED_CANDIDATES = 4096  # that are decoded at once: it takes a matrix of them
MOST_BUCKETS = 1 << 16
DECODER_LINES = {  # what each decoder is, and its source
    "least-squares": ("unbiased, the usual one", "ours"),
    "nnls": ("never negative", "erlingsson2014rappor"),
    "lasso": ("never negative, and sparse", "erlingsson2014rappor"),
}
DECODERS = tuple(DECODER_LINES)
LARGEST_CLOSED = 4096  # a closed alphabet is permuted on the device, so it stays small


@dataclass(frozen=True)
class CohortOracle(SummedOracle):
    """Values hashed into ``buckets`` by each of ``cohorts`` families; closed alphabets are permuted
    instead.
    """

    largest: ClassVar[int] = OPEN
    public: ClassVar[tuple[str, ...]] = ("cohort",)
    uses_state: ClassVar[bool] = True  # every cell of every cohort
    # at most 16 bits of a report support a value, and floats add them up
    most_weight: ClassVar[int] = 1 << 49

    cohorts: int
    buckets: int
    hashes: int
    salt: int
    alphabet: str

    def from_support(self, support: Integers, people: int) -> Floats:
        """Refused: cells of all cohorts are decoded together."""
        raise InvalidInput(f"{self.names[0]} estimates from more than the support of its values")

    @staticmethod
    def _shape(
        size: int, cohorts: Any, buckets: Any, hashes: Any, salt: Any, alphabet: Any
    ) -> tuple[int, int, int, int, str]:
        """The checked fields of an oracle of cohorts."""
        buckets = whole("buckets", buckets, 2, MOST_BUCKETS)
        hashes = whole("hashes", hashes, 1, min(16, buckets))
        if alphabet is None:
            alphabet = "closed" if size <= LARGEST_CLOSED and hashes == 1 else "open"
        if alphabet not in ("open", "closed") or (alphabet == "closed" and size > LARGEST_CLOSED):
            raise InvalidInput(
                f"alphabet ({alphabet}) must be open, or closed with size at most {LARGEST_CLOSED}"
            )
        if alphabet == "closed" and hashes > 1:
            raise InvalidInput(
                f"hashes ({hashes}) must be 1 for a closed alphabet, whose values are permuted"
            )
        cohorts = power_of_two("cohorts", cohorts, 1, MAX_HASH_COHORTS)
        return cohorts, buckets, hashes, whole("salt", salt, 0, LARGEST_SALT), alphabet

    def options(self) -> dict[str, Any]:
        return {
            "cohorts": self.cohorts,
            "buckets": self.buckets,
            "hashes": self.hashes,
            "salt": str(self.salt),
            "alphabet": self.alphabet,
        }

    @cached_property
    def _keys(self) -> list[int]:
        return keys(self.salt, self.cohorts * self.hashes)

    @cached_property
    def _key_table(self) -> NDArray[np.uint64]:
        """The same for columns of people, (hashes, cohorts)."""
        table = np.array(self._keys, np.uint64).reshape(self.cohorts, self.hashes)
        return np.ascontiguousarray(table.T)

    @cached_property
    def _permuted(self) -> NDArray[np.int64]:
        """The bucket of each value in each cohort: values ranked by their hash, modulo buckets."""
        from sottovoce.kernels.hashing import hash_words

        values = np.arange(self.size, dtype=np.uint64)
        ranks = np.empty((self.cohorts, self.size), np.int64)
        for cohort, key in enumerate(self._keys):
            ranks[cohort, np.argsort(hash_words(np.uint64(key), values), kind="stable")] = (
                np.arange(self.size)
            )
        return ranks % self.buckets

    def places(self, cohort: int, value: int) -> list[int]:
        """The buckets of a value in a cohort, one per hash function."""
        if self.alphabet == "closed":
            return [self._ranks(cohort)[value] % self.buckets]
        own = self._keys[cohort * self.hashes : (cohort + 1) * self.hashes]
        return [bucket(keyed_hash(key, value), self.buckets) for key in own]

    def _ranks(self, cohort: int) -> dict[int, int]:
        """Each value's rank by its hash in a cohort: the permutation, which a device keeps."""
        if cohort not in self._ranked:
            key = self._keys[cohort]
            order = sorted(range(self.size), key=lambda value: (keyed_hash(key, value), value))
            self._ranked[cohort] = {value: rank for rank, value in enumerate(order)}
        return self._ranked[cohort]

    @cached_property
    def _ranked(self) -> dict[int, dict[int, int]]:
        return {}

    def _all_places(
        self, cohorts: NDArray[np.uint64], values: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """The same for a column of people: one row each."""
        if self.alphabet == "closed":
            found = self._permuted[cohorts.astype(np.int64), values.astype(np.int64)]
            return found.astype(np.uint64)[:, None]
        from sottovoce.kernels.hashing import hash_buckets

        own = self._key_table[:, cohorts.astype(np.int64)]  # (hashes, people)
        columns = [hash_buckets(keys, values, self.buckets) for keys in own]
        return np.stack(columns, axis=1)

    def _cohort_column(self, count: int, seed: Seed) -> NDArray[np.uint64]:
        found: NDArray[np.uint64] = draws(seed, 1).integers(0, self.cohorts, count, np.uint64)
        return found

    @property
    def _cohort_field(self) -> Field:
        return Field("cohort", self.cohorts.bit_length() - 1)

    def candidates(self, values: ArrayLike | None) -> NDArray[np.uint64]:
        """The candidate list: ``values``, or the whole alphabet if it is small enough."""
        if values is None and self.size > MAX_DECODED_CANDIDATES:
            raise InvalidInput(
                "an open alphabet needs candidates: a list of the values to estimate"
            )
        listed = np.arange(self.size, dtype=np.uint64) if values is None else self._column(values)
        if not 1 <= listed.size <= MAX_DECODED_CANDIDATES or np.unique(listed).size < listed.size:
            raise InvalidInput(
                f"candidates ({listed.size}) must be 1 to {MAX_DECODED_CANDIDATES} different values"
            )
        return listed

    def design(self, candidates: NDArray[np.uint64], *, is_complete: bool) -> Design:
        """Which cells each candidate touches; ``is_complete``: they hold all that people say."""
        from sottovoce.oracles.decoding import MAX_DESIGN_NUMBERS, Design

        places = np.empty((self.cohorts, self.hashes, candidates.size), np.int32)
        step = max(1, MAX_DESIGN_NUMBERS // (self.hashes * candidates.size))
        for start in range(0, self.cohorts, step):
            some = np.arange(start, min(start + step, self.cohorts), dtype=np.uint64)
            rows = np.repeat(some, candidates.size)
            columns = np.tile(candidates, some.size)
            found = self._all_places(rows, columns)  # (cohorts * candidates, hashes)
            by_cohort = found.reshape(some.size, candidates.size, self.hashes)
            places[start : start + some.size] = by_cohort.transpose(0, 2, 1)
        return Design(places, self.buckets, is_complete)

    def _touching(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        """How much of a state, (cohorts, buckets), lies in the cells of each value."""
        design = self.design(self.candidates(values), is_complete=False)
        total = np.zeros(design.candidates)
        for part, touched in design.blocks():
            total += np.tensordot(state[part].astype(float), touched, axes=2)
        return total.astype(np.int64)

    # -- what one person's report adds; one formula for each way of reporting

    @abstractmethod
    def seen(self, state: Integers, people: int) -> Floats:
        """z, the crowd's mean vector, (cohorts, buckets).

        Unbiased for the sum over all people's values x of f_x T_x, up to a constant for each
        cohort.
        """

    @abstractmethod
    def _squares(
        self, touched: Floats, weights: Floats, shares: Floats, off_list: Floats
    ) -> Floats:
        """What the cohorts of a block add to E[(b'u)^2] for one person's vector u, (rows, crowds).

        Args:
            touched: T of the block, (cohorts, buckets, candidates).
            weights: b of each row, (cohorts, buckets, rows).
            shares: what share of each of some crowds holds each candidate, (candidates, crowds).
            off_list: and what share none of them, (crowds,).
        """

    @abstractmethod
    def _left_over(
        self, touched: Floats, leverage: Floats, shares: Floats, off_list: Floats
    ) -> float:
        """What the cohorts of a block add to E|u - its fit|^2 for one person's vector u.

        Args:
            touched: T of the block, (cohorts, buckets, candidates).
            leverage: the diagonal of R (R'R)^+ R', (cohorts, buckets).
            shares: what share of the crowd holds each candidate, (candidates, 1).
            off_list: and what share none of them, (1,).
        """

    @abstractmethod
    def _cell_error(self, people: int) -> float:
        """Standard error of one cell of :meth:`seen` for a rare value."""

    @property
    def _exact_overlap(self) -> Fraction:
        """The variance of T_y over hashes, in each direction that sums to 0 over a cohort.

        A value's bits are exchangeable, so that their covariance is a I + b J: this is a, the
        chance of a bit less that of two bits.
        """
        # P(bit) - P(two bits) = (1 - 1/k)^h - (1 - 2/k)^h
        cell = Fraction(1, self.buckets)
        return Fraction((1 - cell) ** self.hashes - (1 - 2 * cell) ** self.hashes)

    @cached_property
    def _overlap(self) -> float:
        return float(self._exact_overlap)

    def _moments(
        self, design: Design, solver: Floats, shares: Floats, off_list: Floats
    ) -> tuple[Floats, float]:
        """n times the variance of ``solver @ R'z`` for some crowds, and what is not fitted.

        People off the list count with their second moment, since what their hashes add on average
        is not known: see :meth:`_off_list_spread`.

        Args:
            design: the candidates.
            solver: (rows, candidates), such as (R'R)^+; of a list that is not complete, these rows
                must come first.
            shares: as of :meth:`_squares`.
            off_list: as of :meth:`_squares`.

        Returns:
            The variances, (rows, crowds); and of the first crowd n times the squared length that
            people's coins give to what is not fitted.
        """
        squares = np.zeros((len(solver), shares.shape[1]))
        left_over = 0.0
        for _, touched in design.blocks():
            rows = design.rows(touched)
            weights = summed(rows, solver.T)  # (cohorts, buckets, rows)
            squares += self._squares(touched, weights, shares, off_list)
            if not design.is_complete:
                leverage = np.einsum("cbv,cbv->cb", rows, weights[:, :, : design.candidates])
                left_over += self._left_over(touched, leverage, shares[:, :1], off_list[:1])
        means = solver @ design.cross  # (rows, candidates)
        return np.asarray(squares - means**2 @ shares), left_over

    def _off_list_spread(
        self, design: Design, seen: Floats, expected: float, off_list: float
    ) -> float:
        """The sum of f_y^2 over values y off the list, from what the candidates do not fit.

        z - R f has the squared length that people's coins give it (``expected``), and on top of
        that, over hashes, a sum_y f_y^2 for each of its degrees of freedom, a the
        :attr:`_overlap`.
        """
        freedom = self.cohorts * (self.buckets - 1) - design.rank
        if freedom < 1:
            return off_list**2  # the most it can be
        centred = seen - seen.mean(axis=1, keepdims=True)
        moments = design.moments(seen)
        measured = float((centred**2).sum() - moments @ design.inverse @ moments)
        return max((measured - expected) / (self._overlap * freedom), 0.0)

    # -- estimates

    @cached_property
    def _whole(self) -> Design:
        """The design of the whole alphabet."""
        return self.design(self.candidates(None), is_complete=True)

    @cached_property
    def _whole_variances(self) -> Floats:
        """V[v, x]: what one person of value x adds to n^2 times the variance of value v."""
        design = self._whole
        everybody = np.eye(self.size)
        return self._moments(design, design.inverse, everybody, np.zeros(self.size))[0]

    def estimate(
        self, state: Integers, people: int, values: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        decoded = self.decode(state, people, values)
        return decoded.frequencies, decoded.variances

    def decode(
        self,
        state: Integers,
        people: int,
        values: ArrayLike | None = None,
        *,
        decoder: str = DECODERS[0],
        is_complete: bool = False,
    ) -> Decoded:
        """The frequencies of ``values`` by one of ``DECODERS``, and what is left for anything else.

        An alphabet of up to 4096 values is decoded whole, whatever was asked for; of a larger one
        ``values`` is a list beside which people may say other things, unless it ``is_complete``.
        Beside the unbiased decoder, ``nnls`` is never negative and ``lasso`` sparse as well. Their
        variances are those of candidates whose cells do not overlap: a lower bound.
        """
        if decoder not in DECODERS:
            raise InvalidInput(f"decoder ({decoder}) must be one of {', '.join(DECODERS)}")
        listed = self.candidates(values)
        chosen = np.arange(listed.size)
        if self.size <= MAX_DECODED_CANDIDATES and not (is_complete and listed.size < self.size):
            chosen = listed.astype(np.int64)
            listed = np.arange(self.size, dtype=np.uint64)
            is_complete = True
        seen = self.seen(state, people)
        if decoder == DECODERS[0]:
            is_whole = is_complete and listed.size == self.size
            design = self._whole if is_whole else self.design(listed, is_complete=is_complete)
            return self._least_squares(design, seen, people, chosen)
        design = self.design(listed, is_complete=False)
        error = self._cell_error(people)
        solved = (
            design.solve_non_negative(seen)
            if decoder == "nnls"
            else design.solve_sparse(seen, error)
        )
        variances = error**2 / np.maximum(np.diag(design.gram), 1e-9)
        return Decoded(solved[chosen], variances[chosen], None, is_unbiased=False)

    def _least_squares(
        self, design: Design, seen: Floats, people: int, chosen: NDArray[np.int64]
    ) -> Decoded:
        """The frequencies of the ``chosen`` candidates of a design, and 1 less their sum."""
        frequencies = design.solve(seen)
        shares = np.clip(frequencies, 0, 1)
        off_list = 0.0 if design.is_complete else max(1 - float(frequencies.sum()), 0.0)
        held = max(float(shares.sum()) + off_list, 1e-12)
        shares, off_list = shares / held, off_list / held
        # one row for each of the chosen, and one for their sum
        solver = np.vstack([design.inverse[chosen], design.inverse[chosen].sum(axis=0)])
        by_crowd, left_over = self._moments(design, solver, shares[:, None], np.array([off_list]))
        variances = by_crowd[:, 0] / people
        if not design.is_complete:
            spread = self._off_list_spread(design, seen, left_over / people, off_list)
            # Var[b'T_y f_y] over the hashes of y = a |b|^2 f_y^2, and |b|^2 of R (R'R)^+
            variances += self._overlap * spread * ((solver @ design.gram) * solver).sum(axis=1)
        if not design.is_identified:
            variances += _guessed_variances(design, frequencies, chosen)
        variances = np.maximum(variances, 0)  # of a sum that is known, rounding may leave less
        rest = 1 - float(frequencies[chosen].sum()), float(variances[-1])
        is_all = design.is_complete and chosen.size == design.candidates
        return Decoded(
            frequencies[chosen],
            variances[:-1],
            None if is_all else rest,
            is_unbiased=design.is_identified,
        )

    def noise(self, people: int) -> Noise:
        """The law averaged over the alphabet, other values sharing what is left evenly."""
        if self.size > MAX_DECODED_CANDIDATES:
            raise InvalidInput(
                "the error over an open alphabet depends on the candidates; see the estimate's "
                "variances"
            )
        spread = self._whole_variances
        own = float(np.diag(spread).mean())
        other = float((spread.sum() - np.trace(spread)) / (self.size * (self.size - 1)))
        return Noise(other / people, (own - other) / people)

    def all_variances(self, n: int, frequencies: Floats) -> Floats:
        """Given the hashes, each value has a variance of its own."""
        return np.asarray(self._whole_variances @ frequencies / n)

    def sum_noise(self, people: int, count: int) -> Noise:
        """Of the first ``count`` values, others held evenly; cells depend, as they sum to one."""
        design = self._whole
        solver = design.inverse[:count].sum(axis=0, keepdims=True)
        everybody = np.eye(self.size)
        person = self._moments(design, solver, everybody, np.zeros(self.size))[0][0]
        own = float(person[:count].mean())
        floor = float(person[count:].mean()) if count < self.size else own
        return Noise(floor / people, (own - floor) / people)


@dataclass(frozen=True)
class Decoded:
    """What was decoded for some values: frequencies and the variances of their errors.

    ``rest`` is what is left for anything else, and its variance: 1 less the sum of the values; None
    for values that are all there are, and of decoders whose errors are not known.
    """

    frequencies: Floats
    variances: Floats
    rest: tuple[float, float] | None
    is_unbiased: bool


def summed(cells: Floats, columns: Floats) -> Floats:
    """``cells @ columns`` as one product of matrices, which is fast, not as one for each cohort.

    Args:
        cells: (cohorts, buckets, candidates).
        columns: (candidates, columns).
    """
    flat: Floats = cells.reshape(-1, cells.shape[2]) @ columns
    return flat.reshape(*cells.shape[:2], -1)


def _guessed_variances(design: Design, frequencies: Floats, chosen: NDArray[np.int64]) -> Floats:
    """Variances of what no report tells of the chosen candidates, and of their sum, (chosen + 1,).

    As if it had been drawn which candidate has which frequency: what is missing of them then has
    the variance sum f^2 / S in each direction, and the reports tell rank / S of sum f^2.
    """
    even = 1 / design.candidates if design.is_complete else 0.0
    told = float(((frequencies - even) ** 2).sum())
    squares = min(told * design.candidates / design.rank, 1.0) if design.rank else 1.0
    unseen = design.unseen[np.ix_(chosen, chosen)]
    share = np.append(np.diag(unseen), unseen.sum())
    return np.asarray(share * squares / design.candidates)
