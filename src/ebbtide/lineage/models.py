"""Tracing many models: in the order of what they read, and again only where something changed.

A model is a SQL statement with a name: a file of the project's `lineage/` folder, or a model that dbt compiled. A view
that no catalog knows has the columns that its own statement gives it, so it is traced before what reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ebbtide.errors import InputError
from ebbtide.lineage.cache import CachedModel, FlowCache
from ebbtide.lineage.names import Names, Parts, written
from ebbtide.lineage.reconcile_columns import fitted
from ebbtide.lineage.values import Flow, LineageProblem, ProblemKind
from ebbtide.model.ids import DatasetId


@dataclass(frozen=True, slots=True)
class Model:
    """`where` is its file, for messages; `name` is what a bare SELECT defines, as a view where `is_view`."""

    where: str
    provenance: str
    text: str
    name: Parts
    dialect: str = "spark"
    is_view: bool = False


@dataclass(slots=True)
class _ModelWork:
    model: Model
    digest: str
    target_parts: Parts
    references: tuple[Parts, ...]
    is_view: bool
    target: str = ""


@dataclass(frozen=True, slots=True)
class Traced:
    """What came out, and how many models had to be traced for it."""

    flows: tuple[Flow, ...]
    problems: tuple[LineageProblem, ...]
    traced: int


def sql_models(folder: Path, root: Path) -> list[Model]:
    """The `.sql` files of a folder. A bare SELECT defines the table of the file's name."""
    models = []
    for path in sorted(folder.glob("**/*.sql")):
        where = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", where=where) from None
        models.append(Model(where, f"sql:{where}", text, _name(path.stem)))
    return models


def _name(stem: str) -> Parts:
    try:
        id_ = DatasetId.parse(stem)
    except InputError:
        return (stem,)
    return (id_.catalog, *id_.namespace, id_.table)


def trace_models(
    models: Sequence[Model],
    columns: Mapping[str, Sequence[str]],
    locations: Mapping[str, str],
    also: Mapping[str, str],
    cache: FlowCache,
) -> Traced:
    """Trace every model. One that does not parse is a problem and leaves the others alone."""
    problems: list[LineageProblem] = []
    work = [item for model in models if (item := _read(model, cache, problems)) is not None]
    catalog_names = Names(locations, also)
    for item in work:
        item.target = catalog_names.find(item.target_parts) or written(item.target_parts)
    names = Names(locations, also, models=[item.target for item in work])
    known: dict[str, Sequence[str]] = dict(columns)
    flows: list[Flow] = []
    traced = 0
    for item in _in_order(work, names):
        near = _near(item.target)
        resolved = {parts: found for parts in item.references if (found := names.find(parts, near)) is not None}
        fingerprint = _fingerprint(item, resolved, known)
        flow = cache.flow(item.model.provenance, fingerprint)
        if flow is None:
            from ebbtide.lineage.sql import flow_of  # the parser takes a while to load
            from ebbtide.lineage.statements import outline

            traced += 1
            # Parsed a second time: holding the trees of all models until their turn comes takes far more than it saves.
            parsed = outline(item.model.text, where=item.model.where, dialect=item.model.dialect)
            flow = flow_of(
                parsed, item.target, resolved, known, where=item.model.where, provenance=item.model.provenance
            )
            flow = replace(flow, is_view=item.is_view)
        cache.keep(
            item.model.provenance,
            CachedModel(item.digest, item.target_parts, item.references, item.is_view, fingerprint, flow),
        )
        if item.target in locations:
            flow = fitted(flow, known, item.model.where)
        else:  # what dbt describes of it may be less than what its statement gives
            known[item.target] = list(dict.fromkeys([*known.get(item.target, ()), *flow.columns]))
        flows.append(flow)
        problems += _unmatched(item, resolved, names, in_catalog=item.target in locations)
    return Traced(tuple(flows), tuple(problems), traced)


def _read(model: Model, cache: FlowCache, problems: list[LineageProblem]) -> _ModelWork | None:
    """Names of a model's tables: from the cache where its text is the same, else by parsing it."""
    digest = hashlib.sha256(f"{model.dialect}\n{model.name}\n{model.is_view}\n{model.text}".encode()).hexdigest()
    kept = cache.kept(model.provenance)
    if kept is not None and kept.digest == digest:
        return _ModelWork(model, digest, kept.target, kept.references, kept.is_view)
    from ebbtide.lineage.statements import outline

    try:
        parsed = outline(model.text, where=model.where, dialect=model.dialect)
        target = parsed.target or model.name
        if parsed.target is None and len(target) < 2:
            raise InputError(
                f"a bare SELECT in {model.where} names no table", where=f"{model.where}:1:1",
                hint="name the file catalog.namespace.table.sql, or write CREATE … AS",
            )  # fmt: skip
    except InputError as error:
        where = error.where or model.where
        message = error.message.removeprefix(f"{where}: ")
        problems.append(LineageProblem(ProblemKind.UNREADABLE, where, written(model.name), message, error.hint))
        return None
    return _ModelWork(model, digest, target, parsed.references, parsed.is_view or model.is_view)


def _unmatched(
    item: _ModelWork, resolved: Mapping[Parts, str], names: Names, *, in_catalog: bool
) -> Iterable[LineageProblem]:
    wrong = [(parts, "nothing is known of") for parts in item.references if parts not in resolved]
    if not in_catalog and not item.is_view:
        wrong.append((item.target_parts, "no catalog has"))
    for parts, what in wrong:
        message = f"{what} {written(parts)}"
        yield LineageProblem(ProblemKind.UNMATCHED, item.model.where, written(parts), message, names.hint(parts))


def _fingerprint(item: _ModelWork, resolved: Mapping[Parts, str], known: Mapping[str, Sequence[str]]) -> str:
    """Of everything that a model's lineage depends on: its text, and the names and columns that it meets."""
    meets = [(".".join(parts), resolved.get(parts), list(known.get(resolved.get(parts, ""), ())))
             for parts in item.references]  # fmt: skip
    facts = [item.digest, item.target, list(known.get(item.target, ())), meets]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _in_order(work: Sequence[_ModelWork], names: Names) -> list[_ModelWork]:
    """Each model after those that it reads; inside a cycle by name."""
    by_target: dict[str, list[_ModelWork]] = {}
    for item in work:
        by_target.setdefault(item.target, []).append(item)
    ordered: list[_ModelWork] = []
    state: dict[str, int] = {}
    for start in sorted(by_target):
        stack = [(start, False)]
        while stack:
            target, is_done = stack.pop()
            if is_done:
                ordered += by_target[target]
                continue
            if target in state:
                continue
            state[target] = 1
            stack.append((target, True))
            near = _near(target)
            reads = {names.find(parts, near) for item in by_target[target] for parts in item.references}
            stack += [(read, False) for read in sorted(filter(None, reads), reverse=True) if read in by_target]
    return ordered


def _near(target: str) -> DatasetId | None:
    try:
        return DatasetId.parse(target)
    except InputError:
        return None
