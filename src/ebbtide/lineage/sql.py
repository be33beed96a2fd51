"""Column-level lineage of one SQL statement: SELECT, INSERT, CREATE … AS or MERGE (spec §3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope, traverse_scope
from sqlglot.schema import MappingSchema

from ebbtide.lineage.names import Parts, written
from ebbtide.lineage.statements import Outline, QueryPart, is_base_table, parts_of, queries_of
from ebbtide.lineage.trace import Output, Reads, Tracer
from ebbtide.lineage.values import WHOLE, ColumnEdge, ColumnRef, EdgeKind, Flow, LineageProblem, ProblemKind

Resolved = Mapping[Parts, str]
"""Names as the statement writes them, in lower case, with the dataset of each."""


def flow_of(
    found: Outline, target: str, names: Resolved, columns: Mapping[str, Sequence[str]], *, where: str, provenance: str
) -> Flow:
    """Trace every output column to the columns that it is made of. `columns` gives the columns of each dataset."""
    ids = {parts: names.get(parts, written(parts)) for parts in found.references}
    lower = {id_: {name.lower(): name for name in columns.get(id_, ())} for id_ in {*ids.values(), target}}
    inputs = sorted({ids[parts] for parts in found.references})
    notes: list[str] = []
    edges: set[ColumnEdge] = set()
    rows: set[ColumnRef] = set()
    produced: dict[str, None] = {}
    try:
        for part in queries_of(found, lower.get(target, {})):
            tracer, outputs, deciding = _trace(part.query, found.dialect, ids, lower)
            rows |= deciding
            notes += tracer.notes
            for name, output in _matched(part, outputs, list(lower[target]), notes):
                if name != WHOLE:
                    produced[lower[target].get(name, name)] = None
                edges |= _edges(ColumnRef(target, name), output, lower)
    except (SqlglotError, RecursionError) as error:
        # The statement is right for its engine, perhaps; sqlglot cannot qualify it.
        notes.append(f"its columns could not be told ({type(error).__name__})")
        everything = {ColumnRef(id_, name) for id_ in inputs for name in (lower[id_] or {WHOLE: WHOLE})}
        names_of_target = list(lower[target] or {WHOLE: WHOLE})
        edges = {ColumnEdge(ref, ColumnRef(target, n), EdgeKind.DIRECT) for ref in everything for n in names_of_target}
    problems = tuple(
        LineageProblem(
            ProblemKind.FALLBACK, where, target, f"{note}: every input column was taken", "qualify it in the SQL"
        )
        for note in dict.fromkeys(notes)
    )
    spelled = {_spelled(edge, lower) for edge in edges if edge.source != edge.target}
    return Flow(
        target=target,
        provenance=provenance,
        inputs=tuple(id_ for id_ in inputs if id_ != target),
        columns=tuple(produced),
        edges=tuple(sorted(spelled)),
        rows=tuple(sorted(_spelled_ref(ref, lower) for ref in rows)),
        problems=problems,
        is_view=found.is_view,
    )


def _trace(
    query: exp.Query, dialect: str, ids: Resolved, lower: Mapping[str, Mapping[str, str]]
) -> tuple[Tracer, list[Output], set[ColumnRef]]:
    query = query.copy()
    tables = _flatten(query, ids)
    schema = MappingSchema(dialect=dialect, normalize=False)
    for name, table_id in tables.items():
        if top := {column: "string" for column in lower[table_id] if "." not in column}:
            schema.add_table(exp.to_table(name), top, dialect=dialect)
    qualified = qualify(
        query, dialect=dialect, schema=schema, validate_qualify_columns=False,
        allow_partial_qualification=True, quote_identifiers=False, identify=False,
    )  # fmt: skip
    scope = build_scope(qualified)
    if not isinstance(scope, Scope):
        raise SqlglotError("no scope")
    tracer = Tracer(tables, {table_id: tuple(lower[table_id]) for table_id in tables.values()})
    return tracer, tracer.outputs(scope), tracer.rows(scope)


def _flatten(query: exp.Query, ids: Resolved) -> dict[str, str]:
    """Give every base table a plain name of one part, so that names of any depth qualify; returns them with their ids.

    What a column calls its table (`lake.app.users.uid`, `users.uid`) goes on working: the last part becomes the alias.
    """
    tables: dict[str, str] = {}
    for scope in traverse_scope(query):
        aliases: dict[Parts, str] = {}
        taken = {name for name, source in scope.sources.items() if isinstance(source, Scope)}
        for table in [t for t in scope.tables if is_base_table(t, scope)]:
            parts = parts_of(table)
            alias = table.alias or parts[-1]
            while not table.alias and alias in taken:
                alias += "_"
            taken.add(alias)
            aliases.setdefault(parts, alias)
            name = f"t{sorted(ids).index(parts)}_"
            tables[name] = ids[parts]
            flat = exp.to_table(name)
            rest = {key: table.args.get(key) for key in ("joins", "laterals", "pivots", "sample")}
            old_alias = table.args.get("alias")
            flat.set("alias", old_alias or exp.TableAlias(this=exp.to_identifier(alias)))
            for key, value in rest.items():
                if value:
                    flat.set(key, value)
            table.replace(flat)
        for column in scope.columns:
            parts = tuple(part.name for part in column.parts)
            if len(parts) > 2:
                _shorten(column, parts, aliases)
    return tables


def _shorten(column: exp.Column, parts: Parts, aliases: Mapping[Parts, str]) -> None:
    """`catalog.db.table.col` names its table by several parts: leave only the table's alias."""
    for full, alias in aliases.items():
        for length in range(len(full), 1, -1):
            if parts[:length] == full[-length:] and len(parts) > length:
                named: exp.Expr = exp.column(parts[length], table=alias)
                for field in parts[length + 1 :]:
                    named = exp.Dot(this=named, expression=exp.to_identifier(field))
                column.replace(named)
                return


def _matched(part: QueryPart, outputs: list[Output], target: list[str], notes: list[str]) -> list[tuple[str, Output]]:
    """Each output with the column that it fills. Where that cannot be told, every output fills every column."""
    unknown = [output for output in outputs if output.name == WHOLE]
    if part.by_position and part.columns is not None:
        if len(part.columns) == len(outputs) and not unknown:
            return list(zip(part.columns, outputs, strict=True))
        notes.append(f"{len(outputs)} columns for {len(part.columns)} of the table")
        return [(name, output) for name in part.columns for output in outputs]
    named = [(output.name, output) for output in outputs if output.name != WHOLE]
    if part.is_star and target and {name for name in target if "." not in name} <= dict(named).keys():
        named = [(name, output) for name, output in named if name in target]
    rest = [name for name in target if "." not in name and name not in dict(named)] or [WHOLE]
    return named + [(name, output) for output in unknown for name in rest]


def _edges(target: ColumnRef, output: Output, lower: Mapping[str, Mapping[str, str]]) -> set[ColumnEdge]:
    """The edges into one column, and into the fields of a struct."""
    edges = _into(target, output.reads)
    fields = [name for name in lower[target.table_id] if name.startswith(target.column + ".")]
    same = output.same_as
    for name in fields:
        inner = ColumnRef(same.table_id, same.column + name[len(target.column) :]) if same else None
        if inner is not None and inner.column in lower.get(inner.table_id, {}):
            # A struct that is passed on takes each field to its own place, not to the others'.
            edges = {edge for edge in edges if (edge.source, edge.target) != (inner, target)}
            edges |= _into(ColumnRef(target.table_id, name), Reads({inner: False}))
        else:
            edges |= _into(ColumnRef(target.table_id, name), output.reads)
    return edges


def _into(target: ColumnRef, reads: Reads) -> set[ColumnEdge]:
    edges = {ColumnEdge(ref, target, EdgeKind.DIRECT, masked) for ref, masked in reads.values.items()}
    return edges | {ColumnEdge(ref, target, EdgeKind.INDIRECT) for ref in reads.rows}


def _spelled(edge: ColumnEdge, lower: Mapping[str, Mapping[str, str]]) -> ColumnEdge:
    """The edge with its columns as their tables spell them."""
    return ColumnEdge(_spelled_ref(edge.source, lower), _spelled_ref(edge.target, lower), edge.kind, edge.masking)


def _spelled_ref(ref: ColumnRef, lower: Mapping[str, Mapping[str, str]]) -> ColumnRef:
    return ColumnRef(ref.table_id, lower.get(ref.table_id, {}).get(ref.column, ref.column))
