"""Column types that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary, Text
from sqlalchemy.types import TypeDecorator

from ebbtide.model.canonical import parse_timestamp, timestamp

# SQLite makes a column its row id only when the type is INTEGER; PostgreSQL's INTEGER has 32 bits.
Count = BigInteger().with_variant(Integer, "sqlite")


class Bytes(LargeBinary):
    """Bytes, also where somebody changed them by hand and SQLite keeps a text since.

    What they are held against, a hash or a key, decides on them.
    """

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], bytes | None]:
        parent: Any = super()
        inner = parent.result_processor(dialect, coltype)

        def read(value: Any) -> bytes | None:
            if isinstance(value, int | float | str):
                return str(value).encode("utf-8", "surrogateescape")
            found: bytes | None = inner(value) if inner else value
            return found

        return read


class Instant(TypeDecorator[datetime]):
    """A moment in UTC as canonical text (spec §5), which sorts as time does on every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else timestamp(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else parse_timestamp(value)


class Day(TypeDecorator[date]):
    """A calendar day as `YYYY-MM-DD`."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: date | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else value.isoformat()

    def process_result_value(self, value: Any, dialect: Dialect) -> date | None:  # noqa: ARG002
        return None if value is None else date.fromisoformat(value)


class Texts(TypeDecorator[tuple[str, ...]]):
    """A short list of texts, kept as JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else json.dumps(list(value), ensure_ascii=False)

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...] | None:  # noqa: ARG002
        return None if value is None else tuple(json.loads(value))
