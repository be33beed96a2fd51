"""The columns of a hot table: what each becomes in the lake, and how its values are written for a digest.

A type that is not here has no canonical form: a table with one is refused when it is added, never mirrored by guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from psycopg import Connection
from psycopg.sql import SQL, Composable, Identifier, Literal

from ebbtide.hottier.statements import build, statement

_PLAIN: dict[str, pa.DataType] = {
    "int2": pa.int32(), "int4": pa.int32(), "int8": pa.int64(), "float4": pa.float32(), "float8": pa.float64(),
    "bool": pa.bool_(), "text": pa.string(), "varchar": pa.string(), "bpchar": pa.string(), "enum": pa.string(),
    "jsonb": pa.string(), "uuid": pa.string(), "bytea": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC"),
}  # fmt: skip
_NO_KEYS = ("float4", "float8", "jsonb")
TIMES = ("timestamptz", "timestamp", "date")
_WIDEST = 38
_LONGEST_SCALE = 38


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column by its base type. `kind` is a type's name, or `enum`; precision and scale are a numeric's."""

    name: str
    kind: str
    key: bool
    precision: int = 0
    scale: int = 0
    number: int = 0
    """What it is, whatever it is called."""
    filled: bool = False
    """Whether rows have a value of it that nobody wrote: it was added with a default."""
    array: bool = False
    """Whether its values are arrays of that type: of one dimension, counted from 1."""
    required: bool = field(default=False, compare=False)
    """Whether it may not be empty. The lake does not ask for that."""

    @property
    def element(self) -> ServerColumn:
        """One value of an array."""
        return replace(self, array=False)

    @property
    def arrow(self) -> pa.DataType:
        if self.array:
            return pa.list_(self.element.arrow)
        return pa.decimal128(self.precision, self.scale) if self.kind == "numeric" else _PLAIN[self.kind]

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.arrow, nullable=not self.key)

    @property
    def canonical(self) -> Composable:
        """Its value as the text that a digest reads: the same on every server, session and side."""
        if self.array:
            return build(
                "CASE WHEN {c} IS NOT NULL THEN (SELECT count(*) || ':' || coalesce("
                "string_agg(coalesce('|' || {x}, '-'), '' ORDER BY ebbtide_n), '')"
                " FROM unnest({c}) WITH ORDINALITY ebbtide_a (ebbtide_e, ebbtide_n)) END",
                c=Identifier(self.name), x=_canonical(Identifier("ebbtide_e"), self.kind, self.scale),
            )  # fmt: skip
        return _canonical(Identifier(self.name), self.kind, self.scale)


def _canonical(name: Composable, kind: str, scale: int) -> Composable:
    """The text of one value."""
    if kind in ("int2", "int4", "int8", "bool"):
        return build("{c}::text", c=name)
    if kind == "numeric":
        return build("({c} * ({power})::numeric)::numeric(76, 0)::text", c=name, power=Literal(f"1e{scale}"))
    if kind in ("timestamp", "timestamptz", "date"):
        send = SQL({"timestamp": "timestamp_send", "timestamptz": "timestamptz_send", "date": "date_send"}[kind])
        return build("encode({send}({c}), 'hex')", send=send, c=name)
    if kind in ("float4", "float8"):  # minus zero equals zero, and there are many NaNs
        return build(
            "encode({send}(CASE WHEN {c} = 0 THEN 0 WHEN {c} = 'NaN' THEN 'NaN' ELSE {c} END), 'hex')",
            send=SQL(f"{kind}send"), c=name,
        )  # fmt: skip
    if kind == "bytea":
        return build("encode({c}, 'hex')", c=name)
    # A cast of char(n) to text would drop its padding, which the lake has.
    text = build("textin(bpcharout({c}))" if kind == "bpchar" else "{c}::text", c=name)
    return build("length({t}) || ':' || {t}", t=text)


@dataclass(frozen=True, slots=True)
class Columns:
    """All columns that can be mirrored, and what is wrong with the others."""

    columns: tuple[ServerColumn, ...]
    problems: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([column.field for column in self.columns])

    @property
    def keys(self) -> tuple[ServerColumn, ...]:
        return tuple(column for column in self.columns if column.key)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> ServerColumn:
        return next(column for column in self.columns if column.name == name)


def read_columns(connection: Connection[tuple[Any, ...]], oid: int) -> Columns:
    """The columns of a table, in the order of its attributes."""
    found, problems = [], []
    for name, number, key, generated, type_, category, array, modifier, shown, filled, required in connection.execute(
        statement("columns"), {"oid": oid}
    ):
        made = None if generated else _column(name, type_, category, modifier, key=key)
        if generated:
            problems.append(f"column {name} is generated: the log does not carry it")
        elif made is None:
            problems.append(f"column {name} of type {shown} has no canonical form")
        elif key and (array or made.kind in _NO_KEYS):
            problems.append(f"column {name} of type {shown} cannot be part of a key that is followed")
        else:
            found.append(replace(made, number=number, filled=filled, array=array, required=required))
    return Columns(tuple(found), tuple(problems))


def _column(name: str, type_: str, category: str, modifier: int, *, key: bool) -> ServerColumn | None:
    if category == "e":
        return ServerColumn(name, "enum", key)
    if type_ == "numeric":
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
        fits = modifier >= 4 and precision <= _WIDEST and 0 <= scale <= min(precision, _LONGEST_SCALE)
        return ServerColumn(name, "numeric", key, precision, scale) if fits else None
    return ServerColumn(name, type_, key) if category == "b" and type_ in _PLAIN else None
