"""A plan's reports as words: cohort and payload, and uniform bits above them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.kernels.fields import read_field, write_field
from sottovoce.oracles import Oracle
from sottovoce.oracles.direct import GeneralizedRandomizedResponse
from sottovoce.oracles.hashing import LocalHashing
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import CheckedReports, Reports
from sottovoce.shuffle.peos.shares import SHARE_BITS, Words, uniform_words, word_type

# Oracles whose reports about nobody are uniform: over all values, or all hashes and answers.
UNIFORM_ORACLES = (GeneralizedRandomizedResponse, LocalHashing)


@dataclass(frozen=True)
class ReportWords:
    """How the reports of a plan become words of l bits, and back.

    From the lowest bit: the payloads of the cohort's asks, the cohort, and bits that the device
    draws. A sum of uniform shares is a uniform word, so a fake is one of *all* bit patterns. It
    looks like a report only if every pattern of payload and cohort is one that devices send, and if
    what stands above is uniform in their words too.

    >>> import sottovoce as sv
    >>> from sottovoce.ground.entropy import Seeded
    >>> schema = sv.Schema(x=sv.Categorical(range(8)))
    >>> plan = sv.plan(schema, sv.Frequencies("x", oracle="grr"), epsilon=1.0, people=10)
    >>> form, reports = ReportWords.of(plan), sv.simulate(plan, {"x": [1, 2, 3]}, seed=1)
    >>> form.reports(form.words(reports, Seeded(1))) == reports
    True
    """

    plan: Plan
    word_bits: int
    payload_bits: int
    cohort_bits: int

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """The narrowest words for a plan's reports; a plan that cannot have fakes is refused."""
        if plan.coin != "device":
            raise InvalidInput(
                "plan: assigned coins name who they were assigned to, which a shuffle would hide"
            )
        if plan.columns:
            raise InvalidInput(
                f"plan: what travels in clear ({', '.join(plan.columns)}) ends the anonymity of "
                "a shuffle"
            )
        cohorts = plan.cohorts
        count = len(cohorts)
        kinds = cohorts.kinds
        if count & (count - 1) or any(kind.weight * count != cohorts.weight for kind in kinds):
            raise InvalidInput(
                f"plan: a uniform fake needs cohorts of equal weight, and a power of two of them, "
                f"not {count}"
            )
        for kind in kinds:
            for oracle in kind.oracles:
                _check_uniform(oracle)
        widths = {sum(oracle.layout.bits for oracle in kind.oracles) for kind in kinds}
        if len(widths) > 1:
            raise InvalidInput(
                f"plan: a uniform fake needs reports of one width, not {sorted(widths)} bits"
            )
        (payload_bits,) = widths
        cohort_bits = (count - 1).bit_length()
        fitting = [bits for bits in SHARE_BITS if payload_bits + cohort_bits <= bits]
        if not fitting:
            raise InvalidInput(
                f"plan: a report ({payload_bits} bits, {cohort_bits} of its cohort) must fit into "
                f"{SHARE_BITS[-1]} bits; hash to fewer bits (hash_bits), or ask one attribute"
            )
        return cls(plan, fitting[0], payload_bits, cohort_bits)

    def words(self, reports: Reports, entropy: Entropy) -> Words:
        """Reports as words whose spare bits are drawn."""
        checked = reports.checked(self.plan)
        used = self.payload_bits + self.cohort_bits
        found = np.zeros(len(checked), np.uint64)
        for batch in self.plan.cohorts.batches(checked.cohorts):
            offset = 0
            for oracle, part in zip(batch.oracles, batch.slices, strict=True):
                payload = np.ascontiguousarray(checked.payload[batch.rows][:, part])
                found[batch.rows] |= _read(payload, oracle.layout.bits) << np.uint64(offset)
                offset += oracle.layout.bits
        found |= _shifted(checked.cohorts.astype(np.uint64), self.payload_bits)
        spare = uniform_words(len(checked), 64, entropy).astype(np.uint64)
        found |= _shifted(spare, used)
        return found.astype(word_type(self.word_bits))

    def reports(self, words: Words) -> CheckedReports:
        """The reports of words, whatever their spare bits are."""
        wide = words.astype(np.uint64)
        above = wide >> np.uint64(self.payload_bits % 64)
        cohorts: NDArray[np.uint32] = _low(above, self.cohort_bits).astype(np.uint32)
        payload = np.zeros((len(wide), self.plan.cohorts.bytes), np.uint8)
        for batch in self.plan.cohorts.batches(cohorts):
            offset = 0
            for oracle, part in zip(batch.oracles, batch.slices, strict=True):
                bits = oracle.layout.bits
                values = _low(wide[batch.rows] >> np.uint64(offset), bits)
                column = np.zeros((len(values), oracle.layout.bytes), np.uint8)
                write_field(column, 0, bits, values)
                payload[batch.rows, part] = column
                offset += bits
        return Reports(self.plan.id, cohorts, payload).checked(self.plan)


def _check_uniform(oracle: Oracle) -> None:
    """Refuse an oracle whose uniform bit patterns are no reports about nobody."""
    name = oracle.names[0]
    if not isinstance(oracle, UNIFORM_ORACLES):
        fitting = ", ".join(kind.names[0] for kind in UNIFORM_ORACLES)
        raise InvalidInput(
            f"plan: a uniform fake is no report of {name}; it is one of these: {fitting}"
        )
    for field in oracle.layout.fields:
        if field.limit is not None and field.limit != 1 << field.width:
            raise InvalidInput(
                f"plan: {name} has {field.limit} values, and a uniform fake needs a power of two; "
                "add values that nobody has, or use olh"
            )


def _read(payload: NDArray[np.uint8], bits: int) -> NDArray[np.uint64]:
    """The lowest bits of rows of bytes."""
    if not bits:
        return np.zeros(len(payload), np.uint64)
    return read_field(payload, 0, bits)


def _low(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """The lowest bits of words."""
    return values & np.uint64((1 << bits) - 1)


def _shifted(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Words shifted to the left; nothing is left of a shift by 64."""
    return values << np.uint64(bits) if bits < 64 else np.zeros_like(values)
