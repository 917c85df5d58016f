"""Reports: one, or columns of many. What a device sends, and how it is stored."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import CorruptReport, PlanMismatch
from sottovoce.ground.extras import imported
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.protocol.columns import NO_COLUMNS, Columns, Values
from sottovoce.protocol.plan import Plan

WIRE_VERSION = 1
_ID_BYTES = 8
PLAN_KEY = b"sottovoce.plan"
_PUBLIC_KEY = b"sottovoce.public"  # in the metadata of a field: its decimals, or nothing
STREAM_BATCH = 1 << 17  # reports that are held at once when a file streams


@dataclass(frozen=True)
class Report:
    """One person's whisper: the plan it answers, her cohort, the packed answers to its asks.

    ``public``: the stored values of the plan's public columns, in clear, of which ``columns`` knows
    the form.

    On the wire (version 1): a version byte, the first 8 bytes of the plan's id, the cohort as
    LEB128, the payload, the public values, and the CRC-32 of all that, little endian.

    Throughout:
        plan: that the report answers.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> report = sv.Client(plan).report({"x": True})
    >>> Report.from_bytes(report.to_bytes(), plan) == report
    True
    """

    plan_id: str  # of the plan it answers
    cohort: int  # the cohort's index
    payload: bytes  # the packed answers to its asks
    public: Values = ()  # stored values of the public columns, in clear
    # the form of the public columns
    columns: Columns = field(default=NO_COLUMNS, compare=False, repr=False)

    def to_bytes(self) -> bytes:
        """The compact form for the wire."""
        head = bytes([WIRE_VERSION]) + bytes.fromhex(self.plan_id)[:_ID_BYTES] + leb128(self.cohort)
        body = head + self.payload + self.columns.pack(self.public)
        return body + zlib.crc32(body).to_bytes(4, "little")

    def to_json(self) -> str:
        """The same as JSON, with the payload in hexadecimal."""
        return json.dumps(self.to_body())

    def to_body(self) -> dict[str, Any]:
        """What the JSON form holds."""
        body: dict[str, Any] = {
            "sottovoce": WIRE_VERSION,
            "plan": self.plan_id,
            "cohort": self.cohort,
            "payload": self.payload.hex(),
        }
        if self.public:
            body["public"] = self.columns.to_json(self.public)
        return body

    @classmethod
    def from_bytes(cls, data: bytes, plan: Plan) -> Report:
        """Read the compact form; one clear error for whatever cannot be a report of ``plan``.

        Args:
            data: the report.
        """
        if not data or data[0] != WIRE_VERSION:
            raise CorruptReport(
                f"report: wire version ({data[0] if data else 'none'}) must be {WIRE_VERSION}"
            )
        if len(data) < 1 + _ID_BYTES + 1 + 4:
            raise CorruptReport(f"report: {len(data)} bytes are too few")
        body, check = data[:-4], data[-4:]
        if zlib.crc32(body).to_bytes(4, "little") != check:
            raise CorruptReport("report: the checksum does not match; it was cut or damaged")
        if body[1 : 1 + _ID_BYTES] != bytes.fromhex(plan.id)[:_ID_BYTES]:
            raise PlanMismatch("report: it belongs to another plan")
        cohort, start = read_leb128(body, 1 + _ID_BYTES)
        payload, public = split_payload(plan, cohort, body[start:])
        return cls(plan.id, cohort, payload, public, plan.public).checked(plan)

    @classmethod
    def from_json(cls, text: str, plan: Plan) -> Report:
        """Read the JSON form, as strictly.

        Args:
            text: the report.
        """
        try:
            data = json.loads(text)
            version, plan_id, cohort = data["sottovoce"], data["plan"], data["cohort"]
            payload, public = bytes.fromhex(data["payload"]), data.get("public")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CorruptReport(
                "report: it must be JSON with sottovoce, plan, cohort and payload"
            ) from None
        if isinstance(version, bool) or version != WIRE_VERSION:
            raise CorruptReport(f"report: wire version ({version}) must be {WIRE_VERSION}")
        if plan_id != plan.id:
            raise PlanMismatch("report: it belongs to another plan")
        if isinstance(cohort, bool) or not isinstance(cohort, int):
            raise CorruptReport("report: cohort must be a whole number")
        return cls(plan_id, cohort, payload, plan.public.from_json(public), plan.public).checked(
            plan
        )

    def checked(self, plan: Plan) -> Report:
        """This report, if ``plan`` can have produced it."""
        if not 0 <= self.cohort < len(plan.cohorts):
            raise CorruptReport(f"report: cohort must be below {len(plan.cohorts)}")
        cohort = plan.cohorts[self.cohort]
        if len(self.payload) != cohort.bytes:
            raise CorruptReport(
                f"report: payload ({len(self.payload)} bytes) must have {cohort.bytes} bytes"
            )
        for ask, part in zip(cohort.asks, cohort.slices, strict=True):
            ask.oracle.unpack(self.payload[part])
        plan.public.pack(self.public)
        return self if self.columns == plan.public else replace(self, columns=plan.public)


@dataclass(frozen=True, eq=False)
class Reports:
    """Many reports of one plan, in columns: cohorts, and packed payloads padded to the widest.

    ``public``: the plan's public columns by name, in its order: truth values, whole numbers (scaled
    ones of fixed-point attributes) or text.

    Throughout:
        plan: that the reports answer.
        path: of the file.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> reports = sv.simulate(plan, {"x": [True, False, True]}, seed=1)
    >>> len(reports), Reports.from_arrow(reports.to_arrow()) == reports
    (3, True)
    """

    plan_id: str  # of the plan they answer
    cohorts: NDArray[np.uint32]  # (people,)
    payload: NDArray[np.uint8]  # (people, bytes of the widest)
    public: Mapping[str, PublicColumn] = field(default_factory=dict)  # columns by name

    def __post_init__(self) -> None:
        if self.payload.ndim != 2 or len(self.payload) != len(self.cohorts):
            raise CorruptReport("reports: cohorts and payloads must be columns of equal length")
        if self.cohorts.dtype != np.uint32 or self.payload.dtype != np.uint8:
            raise CorruptReport(
                "reports: cohorts must be 32-bit and payloads 8-bit unsigned integers"
            )
        if any(len(column) != len(self.cohorts) for column in self.public.values()):
            raise CorruptReport("reports: public columns must have a value for each report")

    def __len__(self) -> int:
        return len(self.cohorts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Reports)
            and self.plan_id == other.plan_id
            and np.array_equal(self.cohorts, other.cohorts)
            and np.array_equal(self.payload, other.payload)
            and list(self.public.items()) == list(other.public.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, rows: slice | NDArray[Any]) -> Self:
        """Some of them: a slice, places or a mask. Of reports that were checked, they are too."""
        public = {name: column[rows] for name, column in self.public.items()}
        return replace(self, cohorts=self.cohorts[rows], payload=self.payload[rows], public=public)

    @staticmethod
    def empty(plan: Plan) -> Reports:
        """No reports of a plan."""
        payload = np.zeros((0, plan.cohorts.bytes), np.uint8)
        return Reports(plan.id, np.zeros(0, np.uint32), payload, plan.public.collect([]))

    @staticmethod
    def collect(plan: Plan, reports: Iterable[Report]) -> Reports:
        """Columns from single reports.

        Args:
            reports: one by one.
        """
        rows = list(reports)
        cohorts = np.zeros(len(rows), np.uint32)
        payload = np.zeros((len(rows), plan.cohorts.bytes), np.uint8)
        for place, report in enumerate(rows):
            if report.plan_id != plan.id:
                raise PlanMismatch("report: it belongs to another plan")
            report.checked(plan)
            cohorts[place] = report.cohort
            payload[place, : len(report.payload)] = np.frombuffer(report.payload, np.uint8)
        return Reports(
            plan.id, cohorts, payload, plan.public.collect([report.public for report in rows])
        )

    def checked(self, plan: Plan) -> CheckedReports:
        """These reports, if ``plan`` can have produced them all; looked at once only."""
        if self.plan_id != plan.id:
            raise PlanMismatch("reports: they belong to another plan")
        if self.payload.shape[1] != plan.cohorts.bytes:
            raise CorruptReport(f"reports: payloads must have {plan.cohorts.bytes} bytes")
        if len(self) and int(self.cohorts.max()) >= len(plan.cohorts):
            raise CorruptReport(f"reports: cohort must be below {len(plan.cohorts)}")
        for batch in plan.cohorts.groups(self.cohorts):
            payload = self.payload[batch.rows]
            if payload[:, batch.slices[-1].stop :].any():
                raise CorruptReport("reports: the padding must be zero")
            for oracle, part in zip(batch.oracles, batch.slices, strict=True):
                oracle.validate(np.ascontiguousarray(payload[:, part]))
        plan.public.to_rows(self.public, len(self))
        return CheckedReports(self.plan_id, self.cohorts, self.payload, self.public, _SEAL)

    @staticmethod
    def concat(parts: Iterable[Reports]) -> Reports:
        """One after another; checked, if all of them are.

        Args:
            parts: of one plan.
        """
        listed = list(parts)
        if not listed or any(part.plan_id != listed[0].plan_id for part in listed):
            raise PlanMismatch("reports: only reports of one plan can be joined")
        names = list(listed[0].public)
        if any(list(part.public) != names for part in listed):
            raise CorruptReport("reports: only reports with the same public columns can be joined")
        joined = (
            listed[0].plan_id,
            np.concatenate([part.cohorts for part in listed]),
            np.concatenate([part.payload for part in listed]),
            {name: PublicColumn.concat([part.public[name] for part in listed]) for name in names},
        )
        if all(isinstance(part, CheckedReports) for part in listed):
            return CheckedReports(*joined, _SEAL)
        return Reports(*joined)

    # one by one only with their plan, which knows where a payload ends: see single()
    __iter__ = None

    def single(self, plan: Plan) -> Iterator[Report]:
        """The reports one by one, as their devices would send them."""
        rows = zip(
            self.cohorts.tolist(),
            self.payload,
            plan.public.single(self.public, len(self)),
            strict=True,
        )
        for cohort, payload, public in rows:
            yield Report(
                plan.id,
                cohort,
                payload[: plan.cohorts[cohort].bytes].tobytes(),
                public,
                plan.public,
            )

    def to_arrow(self) -> Any:
        """An Arrow table: ``cohort``, ``payload``, public columns; its metadata name the plan."""
        pa = imported("pyarrow")

        width = self.payload.shape[1]
        data = pa.py_buffer(np.ascontiguousarray(self.payload))
        payload = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(self), [None, data])
        schema = _arrow_schema(self.plan_id, width, self.public)
        public = [
            pa.array(column.values, type=schema.field(name).type, from_pandas=False)
            for name, column in self.public.items()
        ]
        return pa.Table.from_arrays([pa.array(self.cohorts), payload, *public], schema=schema)

    @staticmethod
    def from_arrow(table: Any) -> Reports:
        """The inverse of :meth:`to_arrow`; also takes a record batch.

        Args:
            table: with the columns that :meth:`to_arrow` makes.
        """
        pa = imported("pyarrow")

        metadata = table.schema.metadata or {}
        if PLAN_KEY not in metadata or not {"cohort", "payload"} <= set(table.schema.names):
            raise CorruptReport(
                "reports: the table must have columns cohort and payload and name its plan"
            )
        kind = table.schema.field("payload").type
        if (
            not pa.types.is_fixed_size_binary(kind)
            or table.schema.field("cohort").type != pa.uint32()
        ):
            raise CorruptReport("reports: cohort must be uint32 and payload of fixed width")
        payload, cohort = (table.column(name) for name in ("payload", "cohort"))
        if payload.null_count or cohort.null_count:
            raise CorruptReport("reports: no value may be missing")
        if isinstance(payload, pa.ChunkedArray):
            payload, cohort = payload.combine_chunks(), cohort.combine_chunks()
        public = {name: _public_column(table, name) for name in public_names(table.schema)}
        width = kind.byte_width
        raw = np.frombuffer(payload.buffers()[1] or b"", np.uint8)
        rows = raw[payload.offset * width : (payload.offset + len(payload)) * width].reshape(
            -1, width
        )
        return Reports(
            metadata[PLAN_KEY].decode(errors="replace"), np.asarray(cohort.to_numpy()), rows, public
        )

    @staticmethod
    def from_columns(plan: Plan, cohorts: Any, payloads: Any) -> Reports:
        """Reports from what a database gives, for plans without public columns.

        Args:
            plan: whose reports they are.
            cohorts: whole numbers of any width, as an Arrow or numpy column or a list.
            payloads: bytes of the plan's width each, as an Arrow column or a list.

        >>> import sottovoce as sv
        >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1, people=1000)
        >>> len(Reports.from_columns(plan, [0, 0], [b"\\0", b"\\1"]))
        2
        """
        pa = imported("pyarrow")

        kind = pa.binary(plan.cohorts.bytes)
        arrow = (pa.Array, pa.ChunkedArray)
        try:
            numbers = cohorts if isinstance(cohorts, arrow) else pa.array(cohorts)
            rows = payloads if isinstance(payloads, arrow) else pa.array(payloads)
            is_whole = pa.types.is_integer(numbers.type) or not len(numbers)
            is_bytes = "binary" in str(rows.type) or not len(rows)
            if not is_whole or not is_bytes:
                raise TypeError
            table = pa.table({"cohort": numbers.cast(pa.uint32()), "payload": rows.cast(kind)})
        except (pa.ArrowException, TypeError, OverflowError):
            raise CorruptReport(
                "reports: cohorts must be whole numbers from 0 on, below 2^32, and payloads "
                f"{plan.cohorts.bytes} bytes each, in columns of equal length"
            ) from None
        return Reports.from_arrow(table.replace_schema_metadata({PLAN_KEY: plan.id.encode()}))

    def write(self, path: str | os.PathLike[str]) -> None:
        """A Parquet file, whole or not there."""
        from sottovoce.protocol.report_files import write_stream

        write_stream(path, [self])

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Reports:
        """All reports of a Parquet file at once; :func:`stream` reads them in batches."""
        from sottovoce.protocol.report_files import stream

        return Reports.concat(stream(path))


_SEAL = object()  # what only this module has


@dataclass(frozen=True, eq=False)
class CheckedReports(Reports):
    """Reports that their plan can have produced, all of them: what :meth:`Reports.checked` gives.

    Whoever takes these need not look at a payload again.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> checked = sv.simulate(plan, {"x": [True, False]}, seed=1).checked(plan)
    >>> isinstance(checked[:1], CheckedReports)
    True
    """

    _seal: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._seal is not _SEAL:
            raise TypeError("checked reports come from Reports.checked(plan) alone")

    def checked(self, plan: Plan) -> CheckedReports:
        if self.plan_id != plan.id:
            raise PlanMismatch("reports: they belong to another plan")
        return self


def split_payload(plan: Plan, cohort: int, data: bytes) -> tuple[bytes, Values]:
    """What follows the cohort in compact form: the payload, and public values if there are any."""
    if not plan.columns:
        return data, ()
    if not 0 <= cohort < len(plan.cohorts):
        raise CorruptReport(f"report: cohort must be below {len(plan.cohorts)}")
    size = plan.cohorts[cohort].bytes
    return data[:size], plan.public.unpack(data[size:])


def _arrow_schema(plan_id: str, width: int, public: Mapping[str, PublicColumn]) -> Any:
    pa = imported("pyarrow")

    columns = [
        pa.field("cohort", pa.uint32(), nullable=False),
        pa.field("payload", pa.binary(width), nullable=False),
    ]
    kinds = {"b": pa.bool_(), "i": pa.int64(), "O": pa.string()}
    for name, column in public.items():
        decimals = b"" if column.decimals is None else str(column.decimals).encode()
        metadata = {_PUBLIC_KEY: decimals}
        columns.append(
            pa.field(name, kinds[column.values.dtype.kind], nullable=False, metadata=metadata)
        )
    return pa.schema(columns, metadata={PLAN_KEY: plan_id.encode()})


def public_names(schema: Any) -> list[str]:
    """The public columns of an Arrow schema."""
    return [each.name for each in schema if _PUBLIC_KEY in (each.metadata or {})]


def _public_column(table: Any, name: str) -> PublicColumn:
    pa = imported("pyarrow")

    each = table.schema.field(name)
    dtypes = {pa.bool_(): np.bool_, pa.int64(): np.int64, pa.string(): object}
    decimals = each.metadata[_PUBLIC_KEY]
    column = table.column(name)
    if each.type not in dtypes or column.null_count or not (decimals.isdigit() or not decimals):
        raise CorruptReport(
            f"reports: public column {name!r} must hold truths, 64-bit numbers or text, all of them"
        )
    values = np.asarray(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    )
    return PublicColumn(
        values.astype(dtypes[each.type], copy=False), int(decimals) if decimals else None
    )


def leb128(number: int) -> bytes:
    """A number in seven bits a byte, the lowest first; the high bit says that more follow."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_leb128(data: bytes, start: int, what: str = "cohort") -> tuple[int, int]:
    """(the number of at most 32 bits that starts there in its shortest form, where it ends)."""
    number = 0
    for place, byte in enumerate(data[start : start + 5]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if place and not byte:
                break  # a longer form of a smaller number
            return number, start + place + 1
    raise CorruptReport(f"report: the {what} is not a number in its shortest form")
