"""A `Reading` as rows of the information schema, in the column order of `schema.py`.

Views, branches and what was carried into younger files are worked out here, dataset by dataset and where the dataset
was read, so that the plan finds them as columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ebbtide.inventory.spans import Spans
from ebbtide.model.dataset import Reading
from ebbtide.model.history import RefKind, TransactionKind, build_history
from ebbtide.model.partition_dates import Candidate
from ebbtide.model.paths import is_inside
from ebbtide.storage.files import without_links

Row = tuple[object, ...]

_CARRIES = {TransactionKind.REWRITE, TransactionKind.UPDATE}


def rows_of(reading: Reading, capabilities: list[str], scan_id: str, now: datetime) -> Iterator[tuple[str, list[Row]]]:
    """Each section's name with its rows."""
    key = (str(reading.id), scan_id)
    table: Row = (
        *key, reading.format, reading.location, None, None, [], None, None, None, None,
        [*reading.properties.items()], [*reading.floors.items()], capabilities, list(reading.unknown), now,
        reading.date_source.column, reading.date_source.by, reading.date_source.doubt, reading.partitioned,
    )  # fmt: skip
    yield "tables", [table]
    yield "columns", [(*key, c.name, c.type, c.position, None, []) for c in reading.columns]
    yield (
        "partitions",
        [
            (
                *key, p.id, p.date, p.first_day, p.last_day, p.landed_at, p.rows, p.files, p.bytes, p.last_transaction,
                [_candidate(each) for each in p.candidates],
            )
            for p in reading.partitions
        ],
    )  # fmt: skip
    history = build_history(reading.transactions, reading.refs)
    yield (
        "branches",
        [
            (*key, v.ref.name, v.ref.kind, v.ref.head, v.start, v.ref.main or v.ref.kind is RefKind.TAG, v.ref.main)
            for v in history.views
        ],
    )
    spans = Spans(reading, history)
    branches, views, latest, carried = (
        history.branch_names(),
        history.view_refs(),
        history.latest_view(),
        _carried(reading),
    )
    yield (
        "transactions",
        [
            (
                *key, t.id, t.parent_id, branches.get(t.id, []), t.kind, t.committed_at, t.id in latest,
                t.rows_added, t.rows_removed, t.files_added, t.files_removed, t.bytes_added, t.bytes_removed,
                t.operation, t.staged, t.starts_view or t.parent_id not in history.transactions,
                views.get(t.id, []), carried.get(t.id, []), spans.positions[t.id],
                t.expired,
            )
            for t in reading.transactions
        ],
    )  # fmt: skip
    yield (
        "files",
        [
            (
                *key,
                path,
                f.role,
                f.bytes,
                f.first_transaction,
                f.live,
                list(f.removed_by),
                f.partition,
                f.rows,
                spans.of(f),
                f.kept_until,
            )
            for f in reading.files
            for path in _names(f.path, reading.location)
        ],
    )


def _candidate(candidate: Candidate) -> dict[str, object]:
    first, last = candidate.days or (None, None)
    return {"column": candidate.column, "value": candidate.value, "first": first, "last": last}


def _names(path: str, location: str) -> Iterator[str]:
    """A file that lies elsewhere than its table may be another's that is reached through a link: its own name, too."""
    yield path
    if not is_inside(path, location) and (real := without_links(path)) != path:
        yield real


def _carried(reading: Reading) -> dict[str, list[str]]:
    """For each transaction, the later ones that rewrote its files: its rows live on in theirs (spec §1)."""
    carriers = {t.id for t in reading.transactions if t.kind in _CARRIES}
    carried: dict[str, set[str]] = {}
    for file in reading.files:
        if file.first_transaction is not None and (into := carriers.intersection(file.removed_by)):
            carried.setdefault(file.first_transaction, set()).update(into)
    order = {t.id: n for n, t in enumerate(reading.transactions)}
    return {id_: sorted(into, key=order.__getitem__) for id_, into in carried.items()}
