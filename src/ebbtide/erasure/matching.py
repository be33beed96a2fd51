"""Values in columns as keys that the values of people are joined with, whatever the column's type (spec §4).

A key is `<identity>:<kind>:<value>`: kind `t` is canonical text, `x` the bytes of a binary value in hexadecimal. What
lies in structs, lists and maps is found there; of a place's path (`profile.user_id`) only what it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ebbtide.config.subjects import Match
from ebbtide.erasure.values import bytes_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def keys_of(name: str, value: str) -> Iterator[str]:
    """The keys under which columns may have a canonical value."""
    yield f"{name}:t:{value}"
    yield from (f"{name}:x:{plain.hex()}" for plain in bytes_of(value))


def column_keys(frame: DataFrame, path: str, name: str, match: Match) -> tuple[Column, bool] | None:
    """The key of a column's value, or the list of keys of all values inside (then True); None where its type has none,
    and where the frame has no such column.
    """
    from pyspark.sql import functions as F

    from ebbtide.spark.session import quote

    led = _top(frame, path)
    if led is None:
        return None
    top, rest = led
    column, type_ = F.col(quote(top)), frame.schema[top].dataType
    plain = _key(column, type_, name, match)
    if plain is not None and not rest:
        return plain, False
    found = list(_inside(column, type_, rest, name, match))
    if not found:
        return None
    return F.array_distinct(F.concat(*(F.coalesce(each, _none()) for each in found))), True


def _top(frame: DataFrame, path: str) -> tuple[str, Sequence[str]] | None:
    """The column that a path begins with, and what leads on from it. A column may have dots in its name."""
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        name = ".".join(parts[:n])
        found = [each for each in frame.columns if each == name] or [
            each for each in frame.columns if each.lower() == name.lower()
        ]
        if found:
            return found[0], parts[n:]
    return None


def _none() -> Column:
    from pyspark.sql import functions as F

    return F.array().cast("array<string>")


def _inside(column: Column, type_: DataType, path: Sequence[str], name: str, match: Match) -> Iterator[Column]:
    """Lists of keys, one for each kind of values that the path leads to."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, StructType):
        for field in type_.fields:
            if not path or field.name.lower() == path[0].lower():
                yield from _inside(column.getField(field.name), field.dataType, path[1:], name, match)
    elif isinstance(type_, ArrayType):
        yield from _each(column, type_.elementType, _after(path, "element", "list"), name, match)
    elif isinstance(type_, MapType):
        said = path[0].lower() if path else ""
        if said in ("", "key"):
            yield from _each(F.map_keys(column), type_.keyType, path[1:], name, match)
        if said != "key":
            yield from _each(F.map_values(column), type_.valueType, _after(path, "value"), name, match)
    elif not path and (key := _key(column, type_, name, match)) is not None:
        yield F.array(key)


def _after(path: Sequence[str], *words: str) -> Sequence[str]:
    return path[1:] if path and path[0].lower() in words else path


def _each(column: Column, type_: DataType, path: Sequence[str], name: str, match: Match) -> Iterator[Column]:
    from pyspark.sql import functions as F

    if not _has(type_, path, name, match):
        return

    def keys(item: Column) -> Column:
        return F.concat(*(F.coalesce(each, _none()) for each in _inside(item, type_, path, name, match)))

    yield F.flatten(F.transform(column, keys))


def _has(type_: DataType, path: Sequence[str], name: str, match: Match) -> bool:
    """Whether a value of this type has anything inside that can be compared."""
    from pyspark.sql import functions as F

    return any(True for _ in _inside(F.lit(None), type_, path, name, match))


def _key(column: Column, type_: DataType, name: str, match: Match) -> Column | None:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(type_, T.BinaryType):
        return F.concat(F.lit(f"{name}:x:"), F.lower(F.hex(column)))
    if isinstance(type_, T.StringType | T.CharType | T.VarcharType):
        text = _MATCHED[match](column)
    elif isinstance(type_, T.ByteType | T.ShortType | T.IntegerType | T.LongType | T.DateType):
        text = column.cast("string")
    elif isinstance(type_, T.DecimalType):
        text = column.cast("string")
        text = F.regexp_replace(text, r"\.?0+$", "") if type_.scale else text
    else:
        return None
    return F.concat(F.lit(f"{name}:t:"), text)


def _exact(column: Column) -> Column:
    return column


def _casefold(column: Column) -> Column:
    """As Python's `casefold`, as far as Spark goes: through upper case, which takes ß apart, and without the last ς."""
    from pyspark.sql import functions as F

    return F.translate(F.lower(F.upper(column)), "ς", "σ")


def _email(column: Column) -> Column:
    """In any case, and without the white space around it."""
    from pyspark.sql import functions as F

    return F.trim(_casefold(column))


_MATCHED: dict[Match, Callable[[Column], Column]] = {
    "exact": _exact, "casefold": _casefold, "normalised-email": _email
}  # fmt: skip


def shown_columns(frame: DataFrame, *but: str) -> list[Column]:
    """The columns of a frame, but for these."""
    from pyspark.sql import functions as F

    from ebbtide.spark.session import quote

    return [F.col(quote(name)) for name in frame.columns if name not in but]


def all_keys(values: Iterable[tuple[str, str]]) -> set[str]:
    """The keys of a person's identifiers."""
    return {key for name, value in values for key in keys_of(name, value)}
