"""OpenLineage events, from files: which job filled which dataset, with the column lineage that the producer saw.

Event schemas 1 and 2 are understood, and column lineage facets of version 1. Anything else is a problem that names the
file, never a silent gap. What a job once did counts for as long as its events lie there: the rows that it wrote may.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from ebbtide.lineage.event_names import Key, facet_of, key_of, known_ids
from ebbtide.lineage.names import Names
from ebbtide.lineage.reconcile_columns import Fit
from ebbtide.lineage.values import WHOLE, ColumnEdge, ColumnRef, EdgeKind, Flow, LineageProblem, ProblemKind

_EVENT = re.compile(r"/spec/(\d+)-(\d+)-(\d+)/OpenLineage\.json")
_FACET = re.compile(r"/(\d+)-\d+-\d+/ColumnLineageDatasetFacet\.json")
_EVENTS_KNOWN, _FACETS_KNOWN = {"1", "2"}, {"1"}


class EventError(ValueError):
    """An event that is not understood. The text says why, without anything that the event holds but versions."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event with what lineage needs of it. Datasets stay as the producer wrote them."""

    where: str
    job: str
    inputs: tuple[Mapping[str, Any], ...]
    outputs: tuple[Mapping[str, Any], ...]


@dataclass(slots=True)
class _Job:
    """All that events say of one job and one dataset that it fills."""

    where: str
    has_columns: bool = False
    inputs: set[str] = field(default_factory=set)
    edges: set[ColumnEdge] = field(default_factory=set)
    rows: set[ColumnRef] = field(default_factory=set)
    fields: dict[str, None] = field(default_factory=dict)
    problems: dict[str, LineageProblem] = field(default_factory=dict)


def parse_event(value: object, where: str) -> Event:
    """Check one event: run, job and dataset events of the schemas that are known."""
    if not isinstance(value, dict):
        raise EventError("not an event: no JSON object")
    version = _EVENT.search(str(value.get("schemaURL")))
    if version is None:
        raise EventError("not an OpenLineage event: no schemaURL that names a version")
    if version[1] not in _EVENTS_KNOWN:
        raise EventError(f"OpenLineage {version[1]}-{version[2]}-{version[3]} is not known (1 and 2 are)")
    if "dataset" in value:
        inputs: list[Any] = []
        outputs, job = [value["dataset"]], "dataset"
    else:
        named = value.get("job")
        if not isinstance(named, dict) or not named.get("name"):
            raise EventError("an event without job and without dataset")
        job = f"{named.get('namespace', '')}/{named['name']}"
        inputs, outputs = value.get("inputs") or [], value.get("outputs") or []
        if not isinstance(inputs, list) or not isinstance(outputs, list):
            raise EventError("inputs and outputs are no lists")
    for dataset in (*inputs, *outputs):
        if not isinstance(dataset, dict) or not isinstance(dataset.get("name"), str):
            raise EventError("a dataset without a name")
        facet = facet_of(dataset, "columnLineage")
        known = _FACET.search(str(facet.get("_schemaURL", "/1-0-0/ColumnLineageDatasetFacet.json")))
        if facet and (known is None or known[1] not in _FACETS_KNOWN):
            raise EventError("a column lineage facet of a version that is not known (1 is)")
        if not _is_shaped(facet, dataset):
            raise EventError("a facet that is not shaped as its version says")
    return Event(where, job, tuple(inputs), tuple(outputs))


def _is_shaped(facet: Mapping[str, Any], dataset: Mapping[str, Any]) -> bool:
    fields = facet.get("fields") or {}
    if not isinstance(fields, dict) or not all(isinstance(lineage, dict) for lineage in fields.values()):
        return False
    sources = [lineage.get("inputFields") for lineage in fields.values()] + [facet.get("dataset")]
    if not all(_are_objects(one) for one in sources):
        return False
    steps = [one.get("transformations") for some in sources for one in some or ()]
    links = facet_of(dataset, "symlinks").get("identifiers")
    return all(_are_objects(one) for one in [*steps, links, facet_of(dataset, "schema").get("fields")])


def _are_objects(some: object) -> bool:
    return some is None or (isinstance(some, list) and all(isinstance(one, dict) for one in some))


def read_events(folder: Path, root: Path) -> tuple[list[Event], list[LineageProblem]]:
    """Every event of a folder: a JSON file holds one event or a list, other lines are an event each."""
    events: list[Event] = []
    problems: list[LineageProblem] = []
    for path in sorted([folder] if folder.is_file() else folder.glob("**/*")):
        if path.suffix not in (".json", ".jsonl", ".ndjson", ".log") or not path.is_file():
            continue
        name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
        for where, value in _values(path, name):
            try:
                events.append(parse_event(value, where))
            except EventError as error:
                hint = "post it again with a producer of a known version, or move the file away"
                problems.append(LineageProblem(ProblemKind.UNREADABLE, where, name, str(error), hint))
    return events, problems


def _values(path: Path, name: str) -> Iterator[tuple[str, object]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        yield name, None
        return
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    yield f"{name}:{number}", json.loads(line)
                except (ValueError, RecursionError):
                    yield f"{name}:{number}", None
        return
    yield from ((name, value) for value in (whole if isinstance(whole, list) else [whole]))


def flows_of(
    events: Sequence[Event], names: Names, columns: Mapping[str, Sequence[str]]
) -> tuple[list[Flow], list[LineageProblem]]:
    """One flow per job and dataset. Where no event has column lineage, every input column is taken, with a note."""
    jobs: dict[tuple[str, str], _Job] = {}
    said = ((e.where, d) for e in events for d in (*e.inputs, *e.outputs, *_field_datasets(e)))
    ids, problems = known_ids(said, names)
    for event in events:
        for output in event.outputs:
            target = ids[key_of(output)]
            job = jobs.setdefault((event.job, target), _Job(event.where))
            job.inputs |= {ids[key_of(d)] for d in event.inputs} - {target}
            job.fields |= dict.fromkeys(_fields(output))
            if facet := facet_of(output, "columnLineage"):
                job.has_columns = True
                fit = Fit(columns, event.where, target)
                job.edges |= set(_edges(facet, target, ids, fit))
                job.rows |= {ref for one in facet.get("dataset") or () for ref in fit.sources(_field(one, ids))}
                job.inputs |= {ref.table_id for ref in (*(e.source for e in job.edges), *job.rows)} - {target}
                job.problems = fit.problems | job.problems
    flows = [_flow(name, target, job, columns) for (name, target), job in sorted(jobs.items())]
    return flows, problems


def _field_datasets(event: Event) -> Iterator[Mapping[str, Any]]:
    """What the column lineage of an event names as sources: they need not be among its inputs."""
    for output in event.outputs:
        facet = facet_of(output, "columnLineage")
        for lineage in (facet.get("fields") or {}).values():
            yield from lineage.get("inputFields") or ()
        yield from facet.get("dataset") or ()


def _flow(name: str, target: str, job: _Job, columns: Mapping[str, Sequence[str]]) -> Flow:
    problems = tuple(sorted(job.problems.values()))
    edges = job.edges
    if not job.has_columns and job.inputs:
        targets = [ColumnRef(target, c) for c in (columns.get(target) or list(job.fields) or [WHOLE])]
        sources = [ColumnRef(id_, c) for id_ in job.inputs for c in columns.get(id_) or [WHOLE]]
        edges = {ColumnEdge(source, to, EdgeKind.DIRECT) for source in sources for to in targets}
        message = f"job {name} sent no column lineage: every input column was taken"
        problems = (LineageProblem(ProblemKind.FALLBACK, job.where, target, message, "use a producer that sends it"),)
    return Flow(
        target=target,
        provenance=f"openlineage:{name}",
        inputs=tuple(sorted(job.inputs)),
        columns=tuple(columns.get(target) or job.fields),
        edges=tuple(sorted(edge for edge in edges if edge.source != edge.target)),
        rows=tuple(sorted(job.rows)),
        problems=problems,
    )


def _edges(facet: Mapping[str, Any], target: str, ids: Mapping[Key, str], fit: Fit) -> Iterator[ColumnEdge]:
    fields = facet.get("fields") or {}
    filled = {name: [ColumnRef(target, column) for column in some] for name, some in fit.targets(fields).items()}
    for name, lineage in fields.items():
        legacy = str(lineage.get("transformationType") or "").upper()
        for source in lineage.get("inputFields") or ():
            steps = source.get("transformations") or [{"type": "DIRECT", "masking": legacy == "MASKED"}]
            kinds = {str(step.get("type") or "DIRECT").upper() for step in steps}
            pairs = list(product(fit.sources(_field(source, ids)), filled[name]))
            if kinds - {"INDIRECT"}:
                # A kind that is not known is taken as direct: labels rather flow too far than not far enough.
                masking = all(bool(s.get("masking")) for s in steps if str(s.get("type")).upper() != "INDIRECT")
                yield from (ColumnEdge(ref, to, EdgeKind.DIRECT, masking) for ref, to in pairs)
            if "INDIRECT" in kinds:
                yield from (ColumnEdge(ref, to, EdgeKind.INDIRECT) for ref, to in pairs)


def _field(source: Mapping[str, Any], ids: Mapping[Key, str]) -> ColumnRef:
    return ColumnRef(ids[key_of(source)], str(source.get("field") or WHOLE))


def _fields(dataset: Mapping[str, Any]) -> list[str]:
    return [
        str(f["name"]) for f in facet_of(dataset, "schema").get("fields") or () if isinstance(f, dict) and "name" in f
    ]
