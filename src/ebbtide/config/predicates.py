"""Predicates that people write into policies: one condition in Spark's SQL that means the same whenever it is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ebbtide.config.project import WrongValueError

if TYPE_CHECKING:
    from sqlglot import expressions as exp

_MOVING = {
    "curdate", "current_catalog", "current_database", "current_date", "current_schema", "current_time",
    "current_timestamp", "current_timezone", "current_user", "curtime", "getdate", "input_file_block_length",
    "input_file_block_start", "input_file_name", "java_method", "localtimestamp", "monotonically_increasing_id",
    "now", "rand", "randn", "random", "randstr", "reflect", "session_user", "shuffle", "spark_partition_id",
    "sysdate", "try_reflect", "uniform", "unix_timestamp", "user", "uuid", "version",
}  # fmt: skip
"""Functions whose answer depends on more than the row: the time, the session, where a file lies."""

_MOVING_WORDS = {"current_time", "localtimestamp", "sysdate"}
"""Those that stand without brackets where sqlglot sees a column. A column of that name is put in backticks."""

_MOVING_TEXTS = re.compile(r"\s*(now|today|yesterday|tomorrow)(\s+\S+)?\s*", re.IGNORECASE)
"""What Spark reads as a moment of its own clock wherever a text becomes a date or a time, quietly or by a cast."""

_HINT = "write a condition on columns, as in country = 'DE'"


def check_predicate(text: str) -> None:
    """Refuse what is no condition on a row, and what is another one tomorrow: a mark freezes what goes (spec §2)."""
    import sqlglot  # not for every command: it takes a while
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    try:
        comments = [token for token in sqlglot.tokenize(text, read="spark") if token.comments]
        found = sqlglot.parse(text, dialect="spark")
    except SqlglotError:
        raise WrongValueError(f"not a condition: {text!r}", _HINT) from None
    if comments:
        raise WrongValueError("a predicate holds no comments", _HINT)
    condition = found[0] if len(found) == 1 else None
    if not isinstance(condition, exp.Condition) or isinstance(condition, exp.Literal | exp.Null | exp.Query):
        raise WrongValueError(f"not a condition: {text!r}", _HINT)
    if condition.find(exp.Query) is not None:
        raise WrongValueError("a predicate asks no other table: what is in it may be another tomorrow", _HINT)
    if condition.find(exp.AggFunc, exp.Window, exp.UDTF, exp.Explode, exp.Placeholder, exp.Parameter) is not None:
        raise WrongValueError(f"not a condition on one row: {text!r}", _HINT)
    if condition.find(exp.Column) is None:
        raise WrongValueError(f"{text!r} asks nothing of a row: it takes all or none", _HINT)
    for name in _moving(condition):
        raise WrongValueError(
            f"{name} means something else at every run, and a mark freezes what goes",
            "write {column, older_than} for rows past an age",
        )


def _moving(condition: exp.Condition) -> Iterator[str]:
    from sqlglot import expressions as exp

    for function in condition.find_all(exp.Func):
        name = (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()
        if name in _MOVING:
            yield name
    for column in condition.find_all(exp.Column):
        if column.name.lower() in _MOVING_WORDS and not column.table and not column.this.quoted:
            yield column.name
    for literal in condition.find_all(exp.Literal):
        if literal.is_string and _MOVING_TEXTS.fullmatch(literal.name):
            yield repr(literal.name)
