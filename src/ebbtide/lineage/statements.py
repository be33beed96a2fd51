"""One SQL statement, read: what it fills, which tables it names, and the queries that fill it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.scope import Scope, traverse_scope

from ebbtide.errors import InputError
from ebbtide.lineage.names import Parts

# What it cannot parse as SQL it logs as a "command", with the text; we raise instead, without the text.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class Outline:
    """A parsed statement: what it fills (None for a bare SELECT) and the tables that it names, in lower case."""

    statement: exp.Expr
    dialect: str
    target: Parts | None
    references: tuple[Parts, ...]
    is_view: bool


@dataclass(frozen=True, slots=True)
class QueryPart:
    """One query whose outputs fill columns of the target: those named, or its own names where there are none.

    `is_star` is a MERGE's `SET *` or `INSERT *`: it fills every column, and leaves out what the target has none for.
    """

    query: exp.Query
    columns: tuple[str, ...] | None
    by_position: bool
    is_star: bool = False


def outline(text: str, *, where: str, dialect: str = "spark") -> Outline:
    """Parse one statement. What is no statement that fills a table is an `InputError` with file, line and column."""
    # Every engine here matches names whatever their case, as catalogs of tables do.
    dialect = f"{dialect}, normalization_strategy=case_insensitive"
    try:
        statements = [one for one in sqlglot.parse(text, dialect=dialect) if one is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        message = re.split(r" but got|: ?<|\. Line ", str(first.get("description") or "not SQL"))[0]
        raise InputError(
            f"not SQL: {message}", where=f"{where}:{first.get('line') or 1}:{first.get('col') or 1}",
            hint="one SELECT, INSERT, CREATE … AS or MERGE per file",
        ) from None  # fmt: skip
    except TokenError as error:
        line, column = _place(error, text)
        raise InputError("not SQL: a quote or comment does not end", where=f"{where}:{line}:{column}") from None
    except RecursionError:
        raise InputError("not SQL that can be read: nested too deeply", where=f"{where}:1:1") from None
    if len(statements) != 1:
        raise InputError(
            f"{len(statements)} statements where one is meant", where=f"{where}:1:1", hint="write a file for each"
        )
    statement = normalize_identifiers(statements[0], dialect=dialect)
    query = statement.args.get("expression")
    is_filled = isinstance(statement, (exp.Insert, exp.Create)) and isinstance(query, (exp.Query, exp.Values))
    if not (is_filled or isinstance(statement, (exp.Merge, exp.Query))):
        kind = "a command" if isinstance(statement, exp.Command) else f"{statement.key.upper()} without a query"
        raise InputError(
            f"no lineage in {kind}", where=f"{where}:1:1", hint="one SELECT, INSERT, CREATE … AS or MERGE per file"
        )
    target = None if isinstance(statement, exp.Query) else parts_of(target_of(statement))
    parts = _base_tables(statement)
    is_view = isinstance(statement, exp.Create) and statement.args.get("kind") == "VIEW"
    return Outline(statement, dialect, target, tuple(sorted({parts_of(table) for table in parts})), is_view)


def queries_of(found: Outline, target: Mapping[str, str]) -> list[QueryPart]:
    """The queries of a statement, each with the columns of the target that it fills."""
    statement = found.statement
    if isinstance(statement, exp.Query):
        return [QueryPart(statement, None, by_position=False)]
    if isinstance(statement, exp.Merge):
        return _merge_queries(statement)
    query = statement.expression
    if not isinstance(query, exp.Query) or isinstance(query, exp.Values):
        return []
    if (outer := statement.args.get("with_")) is not None:  # WITH q AS (…) INSERT INTO … SELECT … FROM q
        query = query.copy()
        inner = query.args.get("with_")
        both = [*outer.expressions, *(inner.expressions if inner else ())]
        query.set("with_", exp.With(expressions=[cte.copy() for cte in both], recursive=outer.args.get("recursive")))
    if isinstance(statement.this, exp.Schema):
        return [QueryPart(query, tuple(column.name for column in statement.this.expressions), by_position=True)]
    if isinstance(statement, exp.Create) or statement.args.get("by_name"):
        return [QueryPart(query, None, by_position=False)]
    partition = target_of(statement).args.get("partition") or statement.args.get("partition")
    fixed = {eq.this.name for eq in partition.expressions if isinstance(eq, exp.EQ)} if partition else set()
    top = tuple(name for name in target if "." not in name and name not in fixed)
    return [QueryPart(query, top or None, by_position=bool(top))]


def _merge_queries(merge: exp.Merge) -> list[QueryPart]:
    """A SELECT per WHEN branch: what it writes, from the target joined with the source; its conditions only filter."""
    parts = []
    whens = merge.args["whens"].expressions
    for when in whens:
        then = when.args.get("then")
        sides = exp.select().from_(target_of(merge).copy()).join(merge.args["using"].copy(), on=merge.args["on"].copy())
        if (condition := when.args.get("condition")) is not None:
            sides = sides.where(condition.copy())
        if (with_ := merge.args.get("with_")) is not None:
            sides.set("with_", with_.copy())
        source = merge.args["using"].alias_or_name
        if isinstance(then, exp.Update):
            sets = [item for item in then.expressions if isinstance(item, exp.EQ)]
            if len(sets) < len(then.expressions) or not sets:  # UPDATE SET *
                parts.append(QueryPart(sides.select(exp.column(exp.Star(), table=source)), None, False, is_star=True))
            else:
                names = tuple(_field(item.this) for item in sets)
                parts.append(QueryPart(sides.select(*[_value(i.expression) for i in sets]), names, by_position=True))
        elif isinstance(then, exp.Insert):
            values = then.args.get("expression")
            if isinstance(then.this, exp.Tuple) and isinstance(values, exp.Tuple):
                names = tuple(_field(column) for column in then.this.expressions)
                parts.append(QueryPart(sides.select(*map(_value, values.expressions)), names, by_position=True))
            else:  # INSERT *
                parts.append(QueryPart(sides.select(exp.column(exp.Star(), table=source)), None, False, is_star=True))
    return parts


def _field(node: exp.Expr) -> str:
    """The column that SET names; a field of a struct changes the struct."""
    return node.parts[-1].name if isinstance(node, exp.Column) else node.name


def _value(node: exp.Expr) -> exp.Expr:
    return exp.null() if isinstance(node, exp.Var) and node.name.upper() == "DEFAULT" else node.copy()


def target_of(statement: exp.Expr) -> exp.Table:
    target = statement.this.this if isinstance(statement.this, exp.Schema) else statement.this
    if not isinstance(target, exp.Table):
        raise InputError("what is filled is no table", hint="one SELECT, INSERT, CREATE … AS or MERGE per file")
    return target


def _base_tables(statement: exp.Expr) -> list[exp.Table]:
    """Every table that a statement reads; names of CTEs are none. A MERGE reads its target too."""
    if isinstance(statement, exp.Merge):
        queries = [part.query for part in _merge_queries(statement)]
    elif isinstance(statement, exp.Query):
        queries = [statement]
    else:
        queries = [part.query for part in queries_of(Outline(statement, "", None, (), is_view=False), {})]
    return [
        table
        for query in queries
        for scope in traverse_scope(query)
        for table in scope.tables
        if is_base_table(table, scope)
    ]


def is_base_table(table: exp.Table, scope: Scope) -> bool:
    """Whether a name in FROM is a table of a catalog: no CTE, and no function that makes rows."""
    is_cte = not table.db and table.name in scope.cte_sources
    return not is_cte and isinstance(table.this, (exp.Identifier, exp.Dot))


def parts_of(table: exp.Table) -> Parts:
    return tuple(part.name for part in table.parts)


def _place(error: BaseException, text: str) -> tuple[int, int]:
    """Line and column of what the tokenizer stumbled over, where it tells."""
    at: BaseException | None = error
    while at is not None:
        if match := re.search(r"from (\d+):(\d+)", str(at)):
            line, offset = int(match[1]), int(match[2])
            before = text[:offset]
            return line, offset - (before.rfind("\n") + 1) + 1
        at = at.__cause__ or at.__context__
    return 1, 1
