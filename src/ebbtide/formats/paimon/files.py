"""Every physical file that a retained version, a changelog or the table itself references (formats.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ebbtide.errors import UnreadableError
from ebbtide.formats.paimon.changes import Tracks
from ebbtide.formats.paimon.lines import MAIN, BranchLines, PaimonCommit, changelog_id
from ebbtide.formats.paimon.manifests import VECTORS, Manifests, PaimonDataFile
from ebbtide.formats.paimon.partitions import Keys
from ebbtide.model.dataset import FileRef, Role
from ebbtide.model.paths import normalise
from ebbtide.storage.files import StoredObject


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names that a reading asks the manifests for."""

    lists: frozenset[str]
    optional: frozenset[str]
    opened: frozenset[str]
    indexes: frozenset[str]


def wanted_of(lines: BranchLines, *, files: bool) -> Wanted:
    """Which lists must be there, which may be gone, and whose manifests are opened.

    When a snapshot expires and a tag or a branch keeps it, its changelog goes all the same; when a changelog outlives
    its snapshot, what else the snapshot had may go.
    """
    lists: set[str] = set()
    needed: set[str] = set()
    opened: set[str] = set()
    indexes: set[str] = set()
    for line in lines.lines:
        for run in line.runs():
            for commit in run:
                needed.add(commit.delta)
                opened.add(commit.delta)
                # The history needs to know what a stretch of commits began with, the files what each one references.
                if files or commit is run[0]:
                    needed.add(commit.base)
                if files and (commit is run[0] or commit.number == line.head):
                    opened.add(commit.base)
                if commit.index is not None:
                    indexes.add(commit.index)
                if files and commit.changelog is not None:
                    lists.add(commit.changelog)
                    opened.add(commit.changelog)
                    own = lines.id_of_commit(line.name, commit).rpartition("/")[0] == line.name
                    needed |= {commit.changelog} if own and commit.number in line.snapshots else set()
        for commit in line.changelogs.values() if files else ():
            lists |= {commit.base, commit.delta}
            if commit.changelog is None:
                opened.add(commit.delta)
            else:
                needed.add(commit.changelog)
                opened.add(commit.changelog)
    return Wanted(frozenset(lists | needed), frozenset(lists - needed), frozenset(opened), frozenset(indexes))


@dataclass(slots=True)
class _Found:
    """References as they are met: the first mention says who brought a file, any head makes it live."""

    location: str
    sizes: Mapping[str, int]
    refs: dict[str, FileRef] = field(default_factory=dict)
    at: int | None = None
    """The bit of the version that is being walked; None for a changelog that is still to come from one."""

    def add(self, path: str, role: Role, size: int | None, by: str | None, *, live: bool) -> None:
        uri = normalise(path)
        known = self.refs.get(uri)
        if known is None:
            size = size if size is not None else self.sizes.get(uri)
            self.refs[uri] = FileRef(uri, role, size, by, live, versions=self.at)
        else:
            versions = None if known.versions is None or self.at is None else known.versions | self.at
            self.refs[uri] = replace(known, live=live or known.live, versions=versions)


def references(
    subject: str,
    location: str,
    lines: BranchLines,
    manifests: Manifests,
    tracks: Tracks,
    keys: Keys,
    metadata: Sequence[StoredObject],
    listed: Iterable[StoredObject],
    decoupled: Mapping[str, bool],
) -> tuple[FileRef, ...]:
    """All references, sorted by path. `listed` are the folders `manifest` and `statistics` as the store has them,
    `decoupled` the branches whose snapshots leave a changelog when they expire: true where that is read from data.
    """
    handle = _Found(location, {entry.path: entry.bytes for entry in listed})
    heads = set(lines.heads().values())
    bits = tracks.bits()
    for line in lines.lines:
        for run in line.runs():
            for commit in run:
                id_ = lines.id_of_commit(line.name, commit)
                handle.at = bits[id_]
                first = commit is run[0] and commit.number > 1
                _add_commit(handle, commit, id_, manifests, inherits=first, live=id_ in heads)
        for number, commit in line.changelogs.items():
            id_ = changelog_id(line.name, number)
            handle.at = bits[id_]
            _add_lists(handle, [commit.base, commit.delta, commit.changelog], id_, manifests, live=False)
        handle.at = None
        for commit in line.snapshots.values() if line.name in decoupled else ():
            lists = [commit.base, commit.delta] if decoupled[line.name] else [commit.changelog]
            _add_lists(handle, lists, None, manifests, live=False)
    missing = sorted(uri for uri in handle.refs if uri not in handle.sizes and uri.startswith(f"{location}/manifest/"))
    if missing:
        raise UnreadableError(
            subject, f"{missing[0]} is missing ({len(missing)} in all)", hint="restore it, or drop what needs it"
        )
    refs = [
        *handle.refs.values(),
        *_data(lines, manifests, tracks, keys, decoupled),
        *_vectors(lines, manifests, keys, heads, bits),
    ]
    refs += _metadata(location, lines, metadata, heads, bits)
    return tuple(sorted(refs, key=lambda ref: ref.path))


def _add_commit(
    found: _Found, commit: PaimonCommit, id_: str, manifests: Manifests, *, inherits: bool, live: bool
) -> None:
    # A commit's own additions come first: what only its base names was there before, or was merged by it.
    _add_lists(found, [commit.delta, commit.changelog], id_, manifests, live=live)
    found.add(f"{found.location}/manifest/{commit.base}", Role.MANIFEST_LIST, None, id_, live=live)
    for listed in manifests.lists[commit.base]:
        path = f"{found.location}/manifest/{listed.name}"
        found.add(path, Role.MANIFEST, listed.bytes, None if inherits else id_, live=live)
    unknown = inherits and commit.operation != "ANALYZE"
    if commit.index is not None:
        found.add(
            f"{found.location}/manifest/{commit.index}", Role.MANIFEST, None, None if inherits else id_, live=live
        )
    if commit.statistics is not None:
        path = f"{found.location}/statistics/{commit.statistics}"
        found.add(path, Role.STATISTICS, None, None if unknown else id_, live=live)


def _add_lists(found: _Found, names: Iterable[str | None], by: str | None, manifests: Manifests, *, live: bool) -> None:
    for name in names:
        if name is not None and name in manifests.lists:
            found.add(f"{found.location}/manifest/{name}", Role.MANIFEST_LIST, None, by, live=live)
            for listed in manifests.lists[name]:
                found.add(f"{found.location}/manifest/{listed.name}", Role.MANIFEST, listed.bytes, by, live=live)


def _data(
    lines: BranchLines, manifests: Manifests, tracks: Tracks, keys: Keys, decoupled: Mapping[str, bool]
) -> Iterator[FileRef]:
    """Data files of versions, then what only changelogs hold, each with the extra files that belong to it."""
    versions, bits = tracks.versions(), tracks.bits()
    kept = set(_left_to_changelogs(lines, manifests, decoupled))
    logged: dict[str, int] = {}
    for file, _, by, _ in _changelog_files(lines, manifests):
        logged[file.path] = logged.get(file.path, 0) | bits[by]
    for path, file in tracks.referenced.items():
        removed_by = tuple(tracks.removed_by.get(path, ()))
        made = _file(file, Role.DATA, tracks.added_by.get(path), path in tracks.live, removed_by, keys)
        yield from (replace(ref, versions=versions[path] | logged.get(path, 0), outlives=path in kept) for ref in made)
    seen = set(tracks.referenced)
    for file, role, by, live in _changelog_files(lines, manifests):
        if file.path not in seen:
            seen.add(file.path)
            made = _file(file, role, by, live, (), keys)
            yield from (replace(ref, versions=logged[file.path], outlives=file.path in kept) for ref in made)


def _left_to_changelogs(lines: BranchLines, manifests: Manifests, decoupled: Mapping[str, bool]) -> Iterator[str]:
    """What the expiry of snapshots will leave to the changelogs that it makes of them.

    Those are changelog files; where no producer writes any, what a commit removed and no compaction had written.
    """
    for line in lines.lines:
        for commit in line.snapshots.values() if line.name in decoupled else ():
            if commit.changelog is not None:
                yield from (file.path for file in manifests.mentioned(commit.changelog))
            elif decoupled[line.name]:
                yield from (path for path, file in manifests.net([commit.delta])[1].items() if not file.compacted)


def _changelog_files(lines: BranchLines, manifests: Manifests) -> Iterator[tuple[PaimonDataFile, Role, str, bool]]:
    for line in lines.lines:
        for number, commit in line.commits.items():
            if commit.changelog is not None:
                id_ = lines.id_of(line.name, number)
                for file in manifests.mentioned(commit.changelog):
                    yield file, Role.CHANGELOG, id_, number == line.head
        for number, commit in line.changelogs.items():
            id_ = changelog_id(line.name, number)
            if commit.changelog is not None:
                for file in manifests.mentioned(commit.changelog):
                    yield file, Role.CHANGELOG, id_, False
            else:
                # Without changelog files of its own, a changelog is read from what its commit wrote and removed;
                # files that compaction wrote do not belong to it and went with their snapshot.
                for file in manifests.mentioned(commit.delta):
                    if not file.compacted:
                        yield file, Role.DATA, id_, False


def _file(
    file: PaimonDataFile, role: Role, by: str | None, live: bool, removed_by: tuple[str, ...], keys: Keys
) -> Iterator[FileRef]:
    partition = keys.id_of(file.partition)
    yield FileRef(normalise(file.path), role, file.bytes, by, live, removed_by, partition, file.rows)
    for extra in file.extras:
        kind = Role.CHANGELOG if extra.rpartition("/")[2].startswith("changelog-") else Role.INDEX
        yield FileRef(normalise(extra), kind, None, by, live, removed_by, partition)


def _vectors(
    lines: BranchLines, manifests: Manifests, keys: Keys, heads: set[str], bits: Mapping[str, int]
) -> Iterator[FileRef]:
    """Index files: deletion vectors, and the hash indexes of dynamic buckets."""
    refs: dict[str, FileRef] = {}
    for line in lines.lines:
        for run in line.runs():
            before: set[str] | None = set() if run[0].number == 1 else None
            for commit in run:
                id_ = lines.id_of_commit(line.name, commit)
                here = {file.path: file for file in manifests.indexes.get(commit.index or "", ())}
                for path, file in here.items():
                    by = None if before is None else id_
                    role = Role.DELETION_VECTOR if file.type == VECTORS else Role.INDEX
                    made = FileRef(normalise(path), role, file.bytes, by, False, (), keys.id_of(file.partition))
                    known = refs.setdefault(path, made)
                    versions = (known.versions or 0) | bits[id_]
                    refs[path] = replace(known, live=known.live or id_ in heads, versions=versions)
                for path in (before or set()) - here.keys():
                    if id_ not in refs[path].removed_by:
                        refs[path] = replace(refs[path], removed_by=(*refs[path].removed_by, id_))
                before = set(here)
    return iter(refs.values())


def _metadata(
    location: str, lines: BranchLines, entries: Sequence[StoredObject], heads: set[str], bits: Mapping[str, int]
) -> Iterator[FileRef]:
    """What is kept by name. A snapshot's file and a changelog's go with it; the rest belongs to the table."""
    logs = {id_ for id_, _ in lines.changelogs()}
    numbers = {(line.name, str(number)) for line in lines.lines for number in line.snapshots}
    for entry in entries:
        *folder, kind, name = entry.path.removeprefix(f"{location}/").split("/")
        branch = folder[1].removeprefix("branch-") if len(folder) > 1 else MAIN
        number = name.removeprefix("snapshot-")
        if kind == "snapshot" and (branch, number) in numbers:
            id_ = lines.id_of(branch, int(number))
            yield FileRef(entry.path, Role.METADATA, entry.bytes, id_, id_ in heads, versions=bits[id_])
        elif kind == "changelog" and (id_ := f"{branch}/changelog/{name.removeprefix('changelog-')}") in logs:
            yield FileRef(entry.path, Role.METADATA, entry.bytes, id_, False, versions=bits[id_])
        else:
            yield FileRef(entry.path, Role.METADATA, entry.bytes, None, True)
