"""From the columns of a query to the columns that they are made of, scope by scope.

sqlglot qualifies the query and finds its scopes; the walk is ours, because safety needs what its `lineage` leaves out:
what only filters is kept apart from what flows, and a column that cannot be told stands for every column that it might
be, with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ebbtide.lineage.reconcile_columns import around
from ebbtide.lineage.values import WHOLE, ColumnRef

# What turns a value into a pseudonym or a count. Labels pass through all the same (spec §3: a hash is a pseudonym).
_MASKS = tuple(
    kind
    for name in ("MD5", "MD5Digest", "SHA", "SHA1Digest", "SHA2", "SHA2Digest", "Count", "ApproxDistinct", "CountIf",
                 "FarmFingerprint", "StandardHash", "Encrypt")
    if (kind := getattr(exp, name, None)) is not None
)  # fmt: skip
_MASK_NAMES = {
    "mask", "hash", "xxhash64", "crc32", "sha", "sha1", "sha2", "md5", "aes_encrypt", "approx_count_distinct",
}  # fmt: skip
# The clauses of a SELECT that only decide which rows there are, and in what order.
_ROW_CLAUSES = ("where", "group", "having", "qualify", "order", "sort", "cluster", "distribute", "connect", "distinct")


@dataclass(slots=True)
class Reads:
    """What an expression reads: values (True where masked) and what only decides about rows."""

    values: dict[ColumnRef, bool] = field(default_factory=dict)
    rows: set[ColumnRef] = field(default_factory=set)

    def add(self, ref: ColumnRef, masked: bool) -> None:
        self.values[ref] = self.values.get(ref, True) and masked

    def join(self, other: Reads, *, masked: bool = False) -> None:
        for ref, was_masked in other.values.items():
            self.add(ref, was_masked or masked)
        self.rows |= other.rows

    def all(self) -> set[ColumnRef]:
        return self.rows | self.values.keys()


@dataclass(slots=True)
class Output:
    """One column of a query. `same_as` is the one column that it passes on unchanged, if it does."""

    name: str
    reads: Reads
    same_as: ColumnRef | None = None


class Tracer:
    """Traces one qualified query. `tables` maps the names of its base tables to table ids, `columns` gives theirs."""

    def __init__(self, tables: Mapping[str, str], columns: Mapping[str, Iterable[str]]) -> None:
        self._tables = tables
        self._columns = {table_id: tuple(names) for table_id, names in columns.items()}
        self._outputs: dict[int, list[Output]] = {}
        self._rows: dict[int, set[ColumnRef]] = {}
        self.notes: list[str] = []

    def outputs(self, scope: Scope) -> list[Output]:
        """The columns of a scope, in order."""
        # By expression: inside a recursive CTE its name stands for a second scope of the first branch's expression.
        key = id(scope.expression)
        if key not in self._outputs:
            self._outputs[key] = []  # what refers to itself while it is traced adds nothing of its own
            self._outputs[key] = self._trace(scope)
        return self._outputs[key]

    def rows(self, scope: Scope) -> set[ColumnRef]:
        """Every column that decides which rows a scope has, those of the scopes that it reads included."""
        key = id(scope.expression)
        if key not in self._rows:
            self._rows[key] = set()
            refs: set[ColumnRef] = set()
            for inner in _read_scopes(scope):
                refs |= self.rows(inner)
            if isinstance(scope.expression, exp.Except):
                refs |= {ref for o in self.outputs(scope.set_operation_scopes[1]) for ref in o.reads.all()}
            for clause in _row_clauses(scope.expression):
                refs |= self._read(clause, scope).all()
            self._rows[key] = refs
        return self._rows[key]

    def _trace(self, scope: Scope) -> list[Output]:
        expression = scope.expression
        if isinstance(expression, exp.SetOperation):
            return self._trace_set_operation(scope, expression)
        if isinstance(expression, exp.Select):
            return [output for item in expression.expressions for output in self._project(item, scope)]
        if isinstance(expression, exp.Subquery) and (inner := _read_scopes(scope)):
            return self.outputs(inner[-1])
        names = [name.name for name in expression.args["alias"].columns] if expression.args.get("alias") else []
        if isinstance(expression, exp.UDTF) and scope.subquery_scopes:  # a LATERAL subquery
            inner_outputs = self.outputs(scope.subquery_scopes[-1])
            if len(names) not in (0, len(inner_outputs)):
                return [Output(name, _joined(inner_outputs)) for name in names]
            return [Output(n or o.name, o.reads, o.same_as) for n, o in zip_longest(names, inner_outputs)]
        reads = Reads()  # a table function, or VALUES: each of its columns comes from all that goes in
        reader = scope.parent or scope
        for argument in expression.args.values():
            for node in argument if isinstance(argument, list) else [argument]:
                if isinstance(node, exp.Expr) and not isinstance(node, exp.TableAlias):
                    reads.join(self._read(node, reader))
        return [Output(name, reads) for name in names] or [Output(WHOLE, reads)]

    def _trace_set_operation(self, scope: Scope, expression: exp.SetOperation) -> list[Output]:
        first, second = scope.set_operation_scopes
        joined = self._combine(self.outputs(first), self.outputs(second), expression)
        around = expression.find_ancestor(exp.With)
        if not (scope.is_cte and around is not None and around.args.get("recursive")):
            return joined
        # A recursive CTE reads itself: each round lets what it is made of so far pass through it once more.
        key = id(first.expression)
        base, known = self._outputs[key], {k: v for k, v in self._outputs.items() if k != id(second.expression)}
        for _ in joined:
            self._outputs = {**known, key: joined}
            again = self._combine(base, self._trace(second), expression)
            if [o.reads for o in again] == [o.reads for o in joined]:
                break
            joined = again
        self._outputs[key] = base
        return joined

    def _combine(self, left: list[Output], right: list[Output], expression: exp.SetOperation) -> list[Output]:
        if isinstance(expression, exp.Except):
            return left
        pairs: list[tuple[Output, Output | None]]
        if expression.args.get("by_name"):
            by_name = {o.name: o for o in right}
            pairs = [(o, by_name.pop(o.name, None)) for o in left]
            pairs += [(o, None) for o in by_name.values()]
        elif len(left) == len(right):
            pairs = list(zip(left, right, strict=True))
        else:
            self.notes.append("the branches of a set operation differ in their number of columns")
            merged = _joined((*left, *right))
            return [Output(o.name, merged) for o in left]
        joined = []
        for one, other in pairs:
            same = one.same_as if other is None or one.same_as == other.same_as else None
            joined.append(Output(one.name, _joined([one] if other is None else [one, other]), same))
        return joined

    def _project(self, item: exp.Expr, scope: Scope) -> Iterator[Output]:
        if item.is_star:
            table = item.text("table")
            sources = {name: source for name, (_, source) in scope.selected_sources.items() if table in ("", name)}
            if isinstance(item, exp.Dot) or not sources:  # the fields of a struct
                self.notes.append("the fields of a star could not be told")
                yield Output(WHOLE, self._everything(scope))
                return
            for source in sources.values():
                yield from self._all_of(source)
            return
        if isinstance(item, exp.Aliases):  # a function that gives several columns
            reads = self._read(item.this, scope)
            yield from (Output(name.name, reads) for name in item.expressions)
            return
        inner = item.this if isinstance(item, exp.Alias) else item
        yield Output(item.alias_or_name, self._read(inner, scope), self._passed_on(inner, scope))

    def _passed_on(self, node: exp.Expr, scope: Scope) -> ColumnRef | None:
        path = _path(node)
        if path is None:
            return None
        column, fields = path
        source = _source(column, scope) or self._only_unknown(column, scope)
        if isinstance(source, exp.Table) and source.name in self._tables and not source.args.get("pivots"):
            return ColumnRef(self._tables[source.name], ".".join([column.name, *fields]))
        if isinstance(source, Scope):
            same = next((o.same_as for o in self.outputs(source) if o.name == column.name), None)
            return same and ColumnRef(same.table_id, ".".join([same.column, *fields]))
        return None

    def _read(self, node: exp.Expr, scope: Scope, *, masked: bool = False) -> Reads:
        """What an expression reads in a scope."""
        reads = Reads()
        self._collect(node, scope, masked, reads)
        return reads

    def _collect(self, node: exp.Expr, scope: Scope, masked: bool, reads: Reads) -> None:
        if (path := _path(node)) is not None:
            reads.join(self._resolve(*path, scope), masked=masked)
        elif isinstance(node, exp.Window):
            self._collect(node.this, scope, masked, reads)
            for part in (*(node.args.get("partition_by") or ()), node.args.get("order")):
                if part is not None:
                    reads.rows |= self._read(part, scope).all()
        elif isinstance(node, exp.Filter):
            self._collect(node.this, scope, masked, reads)
            reads.rows |= self._read(node.expression, scope).all()
        elif isinstance(node, exp.Query):
            self._collect_subquery(node, scope, masked, reads)
        else:
            masked = masked or isinstance(node, _MASKS) or _is_called(node, _MASK_NAMES)
            for child in node.iter_expressions():
                self._collect(child, scope, masked, reads)

    def _collect_subquery(self, node: exp.Query, scope: Scope, masked: bool, reads: Reads) -> None:
        wanted = id(node.unnest())
        inner = next((s for s in scope.subquery_scopes if id(s.expression) == wanted), None)
        if inner is None:
            self.notes.append("a subquery could not be told apart")
            reads.join(self._everything(scope), masked=masked)
            return
        if not isinstance(node.parent, exp.Exists):
            for output in self.outputs(inner):
                reads.join(output.reads, masked=masked)
        reads.rows |= self.rows(inner)

    def _resolve(self, column: exp.Column, fields: list[str], scope: Scope) -> Reads:
        source = _source(column, scope) or self._only_unknown(column, scope)
        if source is None:
            self.notes.append(f"column {column.name} could not be told")
            return self._everything(scope)
        if isinstance(source, Scope):
            outputs = self.outputs(source)
            output = next((o for o in outputs if o.name == column.name), None)
            if output is not None and output.same_as is not None and fields:
                same = output.same_as
                inner = Reads(rows=set(output.reads.rows))
                inner.join(self._of_table(same.table_id, ".".join([same.column, *fields])))
                return inner
            if output is not None:
                return output.reads
            outputs = [o for o in outputs if o.name == WHOLE] or outputs
            if not any(o.name == WHOLE for o in outputs) and outputs:
                self.notes.append(f"column {column.name} could not be told")
            return _joined(outputs)
        if source.name not in self._tables:
            return _joined(self._all_of(source))
        if source.args.get("pivots"):
            self.notes.append(f"column {column.name} comes out of a pivot")
            return _joined(self._all_of(source))
        return self._of_table(self._tables[source.name], ".".join([column.name, *fields]))

    def _only_unknown(self, column: exp.Column, scope: Scope) -> exp.Table | None:
        """The one table that an unqualified column can only be of: no other has columns that nobody knows."""
        if column.table:
            return None
        sources = [source for _, source in scope.selected_sources.values()]
        tables = [s for s in sources if isinstance(s, exp.Table) and s.name in self._tables]
        unknown = [s for s in tables if not self._columns.get(self._tables[s.name])]
        is_open = [s for s in sources if isinstance(s, Scope) and any(o.name == WHOLE for o in self.outputs(s))]
        return unknown[0] if len(unknown) == 1 and not is_open and not scope.is_subquery else None

    def _of_table(self, table_id: str, path: str) -> Reads:
        """A column of a base table: itself, the structs around it and the fields inside it, as far as known."""
        known, reads = self._columns.get(table_id, ()), Reads()
        if not known:
            reads.add(ColumnRef(table_id, path), False)
            return reads
        found = around(path, known)
        if not found:
            self.notes.append(f"{table_id} has no column {path}")
            reads.add(ColumnRef(table_id, path), False)  # somebody may have put a label on it
            reads.join(_joined(self._all_columns(table_id)))
            return reads
        for name in found:
            reads.add(ColumnRef(table_id, name), False)
        return reads

    def _all_columns(self, table_id: str) -> list[Output]:
        top = [name for name in self._columns.get(table_id, ()) if "." not in name]
        if not top:
            self.notes.append(f"the columns of {table_id} are not known")
            return [Output(WHOLE, Reads({ColumnRef(table_id, WHOLE): False}))]
        return [Output(name, self._of_table(table_id, name), ColumnRef(table_id, name)) for name in top]

    def _all_of(self, source: exp.Expr | Scope) -> list[Output]:
        if isinstance(source, Scope):
            return self.outputs(source)
        if source.name not in self._tables:  # a table function: nothing but its arguments goes in
            return [Output(WHOLE, Reads())]
        outputs = self._all_columns(self._tables[source.name])
        return [Output(WHOLE, _joined(outputs))] if source.args.get("pivots") else outputs

    def _everything(self, scope: Scope) -> Reads:
        """Every column of every input of a scope and of the scopes around it."""
        outputs = [o for _, source in scope.selected_sources.values() for o in self._all_of(source)]
        reads = _joined(outputs)
        if scope.parent is not None and scope.is_subquery:
            reads.join(self._everything(scope.parent))
        return reads


def _joined(outputs: Iterable[Output]) -> Reads:
    reads = Reads()
    for output in outputs:
        reads.join(output.reads)
    return reads


def _read_scopes(scope: Scope) -> list[Scope]:
    """The scopes whose rows a scope is made of."""
    if isinstance(scope.expression, exp.SetOperation):
        return list(scope.set_operation_scopes)
    if isinstance(scope.expression, (exp.Subquery, exp.UDTF)):
        return [*scope.table_scopes, *scope.subquery_scopes]
    return [source for _, source in scope.selected_sources.values() if isinstance(source, Scope)]


def _row_clauses(expression: exp.Expr) -> Iterator[exp.Expr]:
    for key in _ROW_CLAUSES:
        if isinstance(clause := expression.args.get(key), exp.Expr):
            yield clause
    if isinstance(expression, exp.Select):
        for join in expression.find_all(exp.Join):
            if join.find_ancestor(exp.Query) is expression:
                yield from (part for part in (join.args.get("on"), *(join.args.get("using") or ())) if part is not None)


def _source(column: exp.Column, scope: Scope) -> exp.Table | Scope | None:
    """What a qualified column's table is, here or in a query around this one."""
    at: Scope | None = scope
    while column.table and at is not None:
        if (source := at.sources.get(column.table)) is not None:
            return source if isinstance(source, (Scope, exp.Table)) else None
        at = at.parent
    return None


def _path(node: exp.Expr) -> tuple[exp.Column, list[str]] | None:
    """A column with the fields that are taken out of it (`t.a.b` is column a, field b), or None for anything else."""
    fields: list[str] = []
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        fields.insert(0, node.expression.name)
        node = node.this
    return (node, fields) if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star) else None


def _is_called(node: exp.Expr, names: set[str]) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in names
