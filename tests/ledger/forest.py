"""A ledger in memory for the tests: real leaves, real tree, real signatures, no database."""

from __future__ import annotations

from typing import Any

from ebbtide.ledger import tree
from ebbtide.ledger.leaf import LoggedEntry
from ebbtide.ledger.note import Checkpoint, Note, Signer, sign
from ebbtide.ledger.proof import TlogProof
from ebbtide.model.canonical import dumps_leaf

ORIGIN = "example.org/acme"


class MemoryLedger:
    """Complete subtrees by (level, index), entries by index."""

    def __init__(self, signer: Signer | None = None) -> None:
        self.signer = signer or Signer.generate(ORIGIN)
        self.hashes: dict[tuple[int, int], bytes] = {}
        self.leaves: list[bytes] = []

    def get(self, level: int, index: int) -> bytes:
        return self.hashes[level, index]

    @property
    def size(self) -> int:
        return len(self.leaves)

    def append(self, body: dict[str, Any]) -> LoggedEntry:
        return self.append_leaves([dumps_leaf(body)])[0]

    def append_leaves(self, leaves: list[bytes]) -> list[LoggedEntry]:
        start = self.size
        for level, first, hashes in tree.append(start, [tree.leaf_hash(leaf) for leaf in leaves], self.get):
            self.hashes.update({(level, first + offset): item for offset, item in enumerate(hashes)})
        self.leaves += leaves
        return [LoggedEntry(start + offset, leaf) for offset, leaf in enumerate(leaves)]

    def head(self, size: int | None = None) -> Checkpoint:
        size = self.size if size is None else size
        return Checkpoint(self.signer.key.name, size, tree.root(size, self.get))

    def checkpoint(self, *more: Signer, size: int | None = None) -> Note:
        return sign(self.head(size).text(), [self.signer, *more])

    def prove(self, index: int, note: Note | None = None) -> TlogProof:
        note = note or self.checkpoint()
        size = Checkpoint.parse(note.text).size
        return TlogProof(index, tree.inclusion_proof(index, size, self.get), note)
