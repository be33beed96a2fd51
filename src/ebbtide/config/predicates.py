"""Predicates that people write into policies: one condition in Spark's SQL that means the same whenever it is asked."""

from __future__ import annotations

from ebbtide.config.project import WrongValueError

_OF_NOW = {
    "current_date", "current_time", "current_timestamp", "current_user", "curdate", "localtimestamp", "now", "rand",
    "randn", "random", "shuffle", "unix_timestamp", "uuid",
}  # fmt: skip
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
    for function in condition.find_all(exp.Func):
        name = (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()
        if name in _OF_NOW:
            raise WrongValueError(
                f"{name} means something else at every run, and a mark freezes what goes",
                "write {column, older_than} for rows past an age",
            )
