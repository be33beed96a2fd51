"""Days of before 15 October 1582 in rows that Spark would hand to Paimon's writer.

It hands them over as `java.sql` values, which count by the older calendar: DATE '0001-01-01' comes out two days off,
with every rewriting again.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_FIRST_DAY = "1582-10-15"


def would_move(rows: DataFrame) -> bool:
    """Whether a day or an instant of these rows, nested ones included, would come out as another one. A job only where
    there are columns of such types.
    """
    from pyspark.sql import functions as F

    checks = [
        check for field in rows.schema if (check := _is_older(F.col(f"`{field.name}`"), field.dataType)) is not None
    ]
    return bool(checks) and not rows.where(reduce(lambda one, other: one | other, checks)).isEmpty()


def _is_older(column: Column, type_: DataType) -> Column | None:
    """Whether something in a column is older, never NULL; None where its type has neither days nor instants."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(type_, T.DateType | T.TimestampType):
        return F.coalesce(column < F.lit(_FIRST_DAY).cast(type_), F.lit(False))
    if isinstance(type_, T.StructType):
        fields = [_is_older(column.getField(field.name), field.dataType) for field in type_]
        checks = [check for check in fields if check is not None]
        return reduce(lambda one, other: one | other, checks) if checks else None
    if isinstance(type_, T.ArrayType):
        return _any_is_older(column, type_.elementType)
    if isinstance(type_, T.MapType):
        parts = ((F.map_keys(column), type_.keyType), (F.map_values(column), type_.valueType))
        checks = [check for part, of in parts if (check := _any_is_older(part, of)) is not None]
        return reduce(lambda one, other: one | other, checks) if checks else None
    return None


def _any_is_older(column: Column, type_: DataType) -> Column | None:
    from pyspark.sql import functions as F

    if _is_older(F.lit(None).cast(type_), type_) is None:
        return None

    def check(each: Column) -> Column:
        found = _is_older(each, type_)
        assert found is not None
        return found

    return F.coalesce(F.exists(column, check), F.lit(False))
