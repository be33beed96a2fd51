"""Every physical file that a Hudi table references: one listing of the table, explained by its history.

Hudi's readers list folders, so a file counts when its name is Hudi's and its instant is committed, or older than the
timeline (`show_fsview_all` says the same). Hadoop's `.name.crc` follow their parent and are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ebbtide.formats.hudi.discover import META_FOLDER
from ebbtide.formats.hudi.partitions import Layout
from ebbtide.formats.hudi.replay import LOG_NAME, Group, HudiReplay, Member
from ebbtide.formats.hudi.timeline import Timeline, Write
from ebbtide.model.dataset import FileRef, Role
from ebbtide.model.paths import normalise
from ebbtide.storage.files import StoredObject

# <file id>_<write token>_<instant>.<extension>
_BASE_NAME = re.compile(r"^([^._][^_]*)_[^_]*_(\d+)\.(?:parquet|orc|hfile|lance)$")
_PARTITION_MARKER = re.compile(r"^\.hoodie_partition_metadata(?:\.\w+)?$")
_INSTANT_NAME = re.compile(r"^(\d{14,17})[._]")
_STATISTICS = ("column_stats", "partition_stats", "bloom_filters")
_INDEXES = ("record_index", "secondary_index_", "expr_index_")


@dataclass(frozen=True, slots=True)
class HudiFile:
    """A file under the table that Hudi names; `group` is None for metadata."""

    path: str
    bytes: int
    group: Group | None
    instant: str
    role: Role


def explain_listing(location: str, entries: Iterable[StoredObject]) -> list[HudiFile]:
    """What each listed file is to the table. Foreign files and the files of tables nested inside are left out."""
    prefix = normalise(location) + "/"
    sizes = {e.path.removeprefix(prefix): e.bytes for e in entries if not e.is_folder}
    nested = _nested(sizes)
    listed = []
    for path, size in sorted(sizes.items()):
        if any(path.startswith(inner) for inner in nested) or is_checksum(path, sizes):
            continue
        if (item := explain(path, size)) is not None:
            listed.append(item)
    return listed


def explain(path: str, size: int) -> HudiFile | None:
    """What one file is, by its path below the table; None for what Hudi does not name so."""
    folder, _, name = path.rpartition("/")
    if path.startswith(f"{META_FOLDER}/"):
        match = _INSTANT_NAME.match(name)
        return HudiFile(path, size, None, match.group(1) if match else "", _metadata_role(path))
    if _PARTITION_MARKER.match(name):
        return HudiFile(path, size, None, "", Role.METADATA)
    if match := LOG_NAME.match(name):
        role = Role.CHANGE_DATA if match.group(3) else Role.LOG
        return HudiFile(path, size, (folder, match.group(1)), match.group(2), role)
    if match := _BASE_NAME.match(name):
        return HudiFile(path, size, (folder, match.group(1)), match.group(2), Role.DATA)
    return None


def _metadata_role(path: str) -> Role:
    """Inside the metadata table lie statistics and indexes. `LOG` is kept for log files, which carry rows."""
    parts = path.split("/")
    if parts[1] == "metadata" and len(parts) > 3:
        if parts[2] in _STATISTICS:
            return Role.STATISTICS
        if parts[2].startswith(_INDEXES):
            return Role.INDEX
    return Role.METADATA


def _nested(paths: Iterable[str]) -> tuple[str, ...]:
    """Folders of other Hudi tables below this one. The metadata table is part of it."""
    marker = f"/{META_FOLDER}/"
    return tuple({p[: p.index(marker) + 1] for p in paths if marker in p and not p.startswith(f"{META_FOLDER}/")})


def is_checksum(path: str, known: Collection[str]) -> bool:
    """Whether a file is Hadoop's `.name.crc` of a known one: it comes and goes with it."""
    folder, slash, name = path.rpartition("/")
    return name.startswith(".") and name.endswith(".crc") and f"{folder}{slash}{name[1:-4]}" in known


def older_than_timeline(listed: Iterable[HudiFile], timeline: Timeline) -> Iterator[tuple[str, Write]]:
    """The files from before the first commit that is known: Hudi counts them as committed, whoever wrote them."""
    first = min((commit.id for commit in timeline.commits), default="")
    pending = {id_ for id_, _, _ in timeline.pending}
    for item in listed:
        if item.group is not None and item.instant < first and item.instant not in pending:
            yield item.instant, Write(item.group, item.path, None, 0, 0, item.bytes, replaces=False)


def references(
    location: str, listed: Iterable[HudiFile], history: HudiReplay, layout: Layout
) -> tuple[list[FileRef], dict[str, list[FileRef]]]:
    """All files that a retained version references, and the live ones among them by partition path."""
    orders = {t.id: order for order, t in enumerate(history.transactions)}
    completed = {m.instant: m.completed for m in history.written.values()}
    files: list[FileRef] = []
    live: dict[str, list[FileRef]] = {}

    def add(group: Group, member: Member, role: Role, size: int | None) -> None:
        remover = history.remover(group, member)
        removed_by = (remover,) if remover else ()
        where, partition = f"{location}/{member.path}", layout.id(group[0])
        end = len(orders) if remover is None else orders[remover]
        held = ((1 << end) - 1) & ~((1 << max(member.order, 0)) - 1)
        ref = FileRef(where, role, size, member.instant, remover is None, removed_by, partition, member.rows, held)
        files.append(ref)
        if ref.live:
            live.setdefault(group[0], []).append(ref)

    for item in listed:
        if item.group is None:
            by = item.instant if item.instant in orders else None
            files.append(FileRef(f"{location}/{item.path}", item.role, item.bytes, by, live=True))
        elif item.path in history.written:
            # A file shorter than its commit recorded was cut; before version 8 a log file may have grown since.
            written = history.written[item.path]
            add(item.group, written, item.role, max(item.bytes, written.bytes or 0))
        elif item.instant in orders:
            # Not in the commit's own list (a log file that rolled over, change data), yet readers take it.
            at = completed.get(item.instant, item.instant)
            is_log = item.role is not Role.DATA
            member = Member(item.path, is_log, item.instant, at, orders[item.instant], None, item.bytes)
            add(item.group, member, item.role, item.bytes)
        # What is left was never committed, or not yet: an inflight instant has a reason of its own in `unknown`.
    for group, member in missing(listed, history):
        add(group, member, Role.LOG if member.is_log else Role.DATA, member.bytes)
    return files, live


def missing(listed: Iterable[HudiFile], history: HudiReplay) -> list[tuple[Group, Member]]:
    """Files of the head that the listing does not show."""
    there = {item.path for item in listed}
    members = [(group, m) for group, files in history.live.items() for m in files.values()]
    return [(group, m) for group, m in members if m.path and m.path not in there]
