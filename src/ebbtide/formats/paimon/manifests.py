"""What the manifests of a table say, as sets of data files: net additions and removals, by file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.errors import UnreadableError

VECTORS = "DELETION_VECTORS"


@dataclass(frozen=True, slots=True)
class PaimonDataFile:
    """One file of a bucket. `rows` are those that it brings, `deletes` says that it also holds deletions of keys."""

    path: str
    bytes: int
    rows: int
    partition: int
    deletes: bool
    compacted: bool
    extras: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """A manifest as a list names it, with the number of its entries that add and remove a file."""

    name: str
    bytes: int
    adds: int
    removes: int


@dataclass(frozen=True, slots=True)
class IndexFile:
    path: str
    type: str
    bytes: int
    partition: int


Files = dict[str, PaimonDataFile]


@dataclass(frozen=True, slots=True)
class Manifests:
    """Lists, manifests and index manifests by name; lists that were optional and are gone are not among them."""

    lists: Mapping[str, tuple[ListedManifest, ...]]
    entries: Mapping[str, tuple[tuple[bool, PaimonDataFile], ...]]
    indexes: Mapping[str, tuple[IndexFile, ...]]
    partitions: tuple[tuple[str | None, ...], ...]

    def net(self, lists: Iterable[str]) -> tuple[Files, Files]:
        """The files that lists add and remove, taken together.

        A name in both is a file that moved to another level: it stays (formats.md, "Kind of a transaction").
        """
        balance: dict[str, int] = {}
        files: Files = {}
        for name in lists:
            for listed in self.lists.get(name, ()):
                for adds, file in self.entries[listed.name]:
                    balance[file.path] = balance.get(file.path, 0) + (1 if adds else -1)
                    files[file.path] = file
        added = {path: files[path] for path, count in balance.items() if count > 0}
        return added, {path: files[path] for path, count in balance.items() if count < 0}

    def mentioned(self, list_: str) -> Iterable[PaimonDataFile]:
        """Every file that a list says anything of."""
        return (file for listed in self.lists.get(list_, ()) for _, file in self.entries[listed.name])

    def count(self, list_: str) -> int:
        """How many files are live by a list alone, from the sums that it carries."""
        return sum(listed.adds - listed.removes for listed in self.lists[list_])

    def vectors(self, index: str | None) -> frozenset[str]:
        """The files with deletion vectors that an index manifest names."""
        return frozenset(file.path for file in self.indexes.get(index or "", ()) if file.type == VECTORS)


def parse_manifests(subject: str, answer: Mapping[str, Any]) -> Manifests:
    """The answer of `java.Library.manifests`, once every manifest holds as much as its lists say."""
    folders: list[tuple[str, int]] = [(path, partition) for path, partition in answer["folders"]]
    known: Files = {}
    # An entry may give an index to a file that an earlier one names without it: all belong to the file.
    extras: dict[str, dict[str, None]] = {}
    for entry in (entry for found in answer["entries"].values() for entry in found if entry[7]):
        folder = folders[entry[1]][0]
        beside = extras.setdefault(f"{folder}/{entry[2]}", {})
        beside.update(dict.fromkeys(f"{folder}/{extra}" for extra in entry[7]))

    def data_file(entry: list[Any]) -> PaimonDataFile:
        folder, partition = folders[entry[1]]
        path = f"{folder}/{entry[2]}"
        if path not in known:
            deleted = entry[5] or 0
            known[path] = PaimonDataFile(
                path,
                entry[3],
                entry[4] - deleted,
                partition,
                deleted > 0,
                entry[6],
                tuple(extras.get(path, ())),
            )
        return known[path]

    lists = {name: tuple(ListedManifest(*listed) for listed in named) for name, named in answer["lists"].items()}
    for listed in (listed for named in lists.values() for listed in named):
        if (entries := answer["entries"].get(listed.name)) is not None:
            adds = sum(entry[0] for entry in entries)
            if (adds, len(entries) - adds) != (listed.adds, listed.removes):
                raise UnreadableError(
                    subject,
                    f"manifest/{listed.name} has {len(entries)} entries, its list says {listed.adds + listed.removes}",
                    hint="restore the file from a copy",
                )
    return Manifests(
        lists,
        {name: tuple((entry[0], data_file(entry)) for entry in found) for name, found in answer["entries"].items()},
        {
            name: tuple(IndexFile(path, type_, size, partition) for type_, path, size, partition in found)
            for name, found in answer["indexes"].items()
        },
        tuple(tuple(values) for values in answer["partitions"]),
    )
