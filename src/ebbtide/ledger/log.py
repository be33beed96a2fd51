"""The log: entries and hashes in the database, inside one transaction (spec §5).

Invariants:

1. Indexes are dense. They are given out inside the appending transaction, which is exclusive (`state/database.py`),
   so a batch is one transaction and two writers never share an index.
2. Rows are only ever inserted. Two things change later: a pruned body becomes NULL, and an act gets its outcome.
3. An outcome follows its intent, once. An intent without one is what `recover` lists.
4. Stored are the leaf hashes and the roots of complete subtrees of 2^4, 2^8, 2^12, … leaves. Every hash of a proof is
   stored, or a few hashings above 16 of them that lie together; nothing is ever rebuilt from the bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection, func, insert, select, update

from ebbtide.errors import EbbtideError, InputError, ProofError, RefusedError
from ebbtide.ledger import request_index, tree
from ebbtide.ledger.attachments import kept
from ebbtide.ledger.batch import Tree
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import Intent, KeyRotated, LedgerCreated, Outcome, attachments_of, parse_entry
from ebbtide.ledger.frontier import Frontier
from ebbtide.ledger.keys import Trust, TrustedKey
from ebbtide.ledger.note import Note, VerifierKey
from ebbtide.ledger.request_entries import RequestBatch
from ebbtide.state.bulk import insert_rows
from ebbtide.state.tables import ledger_acts, ledger_checkpoints, ledger_entries, ledger_keys, ledger_nodes

STORED_HEIGHT = 4
_NEARBY = 1 << STORED_HEIGHT
_PAGE = 2048


class Unfinished(NamedTuple):
    """An intent without an outcome: something was about to be done, and may have been."""

    leaf_index: int
    intent: Intent


class LedgerLog:
    """The ledger's rows as one transaction sees them."""

    def __init__(self, connection: Connection, *, read_together: int = _NEARBY) -> None:
        """`read_together` is how many stored hashes one query reads: few for a proof, many for who wants them all."""
        self._connection = connection
        self._read_together = read_together
        self._stored_hashes: dict[tuple[int, int], list[bytes]] = {}
        self._inner_hashes: dict[tuple[int, int], bytes] = {}
        self._frontier: Frontier | None = None

    @property
    def size(self) -> int:
        """How many entries there are, by the last index. What nobody appended counts too: see `ledger.py`."""
        last: int | None = self._connection.execute(select(func.max(ledger_entries.c.idx))).scalar_one()
        return 0 if last is None else last + 1

    def append(self, entries: Sequence[Entry]) -> range:
        """Add entries at the end; gives their indexes. What they attach must be kept already."""
        attached = set[str]().union(*(attachments_of(entry) for entry in entries))
        if missing := attached - kept(self._connection, attached):
            raise RefusedError(f"the attachment {min(missing)} is not kept", hint="attach it in the same transaction")
        first = self.frontier().size
        indexes = range(first, first + len(entries))
        self._append_leaves([entry.encode() for entry in entries])
        intents: dict[str, int] = {}
        for index, entry in zip(indexes, entries, strict=True):
            if isinstance(entry, Intent):
                if intents.setdefault(entry.act, index) != index:
                    raise RefusedError(f"the act {entry.act} has two intents", hint="every act has an id of its own")
            elif isinstance(entry, Outcome):
                self._begin(intents)
                intents = {}
                self._finish(entry.act, index)
            elif isinstance(entry, LedgerCreated | KeyRotated):
                key = entry.key if isinstance(entry, LedgerCreated) else entry.new
                self._connection.execute(insert(ledger_keys), [{"entry": index, "key": key}])
        self._begin(intents)
        request_index.keep(self._connection, indexes, entries)
        return indexes

    def append_batch(self, batch: RequestBatch, requests: Sequence[str], leaves: Sequence[bytes]) -> int:
        """Add one entry for many requests, whose leaves are kept beside it; gives its index. Its root is told here."""
        hashes = [tree.leaf_hash(leaf) for leaf in leaves]
        (index,) = self.append([replace(batch, root=Tree(hashes).root.hex())])
        request_index.keep_batch(self._connection, index, requests, hashes, leaves)
        return index

    def frontier(self) -> Frontier:
        """The whole tree by its complete subtrees: read once, and grown by what this transaction appends.

        So whoever holds it against what was signed has checked all that an append builds upon.
        """
        if self._frontier is None:
            self._frontier = Frontier.read(self.size, self.get)
        return self._frontier

    def leaf(self, index: int) -> bytes:
        """An entry's exact bytes. A pruned one is refused: its hash is all that is left."""
        leaf_hash, body = self._entry(index)
        if body is None:
            raise RefusedError(
                f"the body of entry {index} is past the ledger's retention; its leaf hash is {leaf_hash.hex()}",
                hint="proofs of it still work: `ebbtide ledger prove`",
            )
        return body

    def prove(self, index: int, size: int, root: bytes) -> tuple[bytes, ...]:
        """The inclusion proof of an entry under a root that is known to be good; refused unless it holds."""
        if index >= size:
            raise InputError(f"no entry {index} in a ledger of {size}", hint="indexes count from 0")
        leaf_hash, _ = self._entry(index)
        proof = tree.inclusion_proof(index, size, self.get)
        try:
            tree.verify_inclusion(leaf_hash, index, size, proof, root)
        except EbbtideError as error:
            raise ProofError(
                f"entry {index}", expected="what was signed", found=error.message, hint="run `ebbtide ledger audit`"
            ) from None
        return proof

    def rows(self, start: int, end: int | None = None) -> Iterator[tuple[int, bytes, bytes | None]]:
        """Index, leaf hash and body of the entries from `start` up to `end`, or to the last, a page at a time."""
        table = ledger_entries.c
        last = tree.MAX_SIZE if end is None else end - 1
        query = select(table.idx, table.leaf_hash, table.body).where(table.idx <= last).order_by(table.idx).limit(_PAGE)
        # By the last row and not by the number of the page: a gap of any width costs nothing.
        while start <= last:
            page = self._connection.execute(query.where(table.idx >= start)).all()
            for row in page:
                yield row.idx, row.leaf_hash, row.body
            if len(page) < _PAGE:
                return
            start = page[-1].idx + 1

    def last_pruned(self, end: int) -> int | None:
        """The last index below `end` that has no body any more."""
        query = select(func.max(ledger_entries.c.idx)).where(
            ledger_entries.c.idx < end, ledger_entries.c.body.is_(None)
        )
        last: int | None = self._connection.execute(query).scalar_one()
        return last

    def first_row(self, start: int) -> int | None:
        """The first index from `start` on that there is."""
        query = select(func.min(ledger_entries.c.idx)).where(ledger_entries.c.idx >= start)
        first: int | None = self._connection.execute(query).scalar_one()
        return first

    def recover(self) -> tuple[Unfinished, ...]:
        """Every intent without an outcome, oldest first (design, invariant 4)."""
        query = select(ledger_acts.c.intent).where(ledger_acts.c.outcome.is_(None)).order_by(ledger_acts.c.intent)
        found = []
        for index in self._connection.execute(query).scalars():
            intent = parse_entry(self.leaf(index))
            if not isinstance(intent, Intent):
                raise ProofError(f"entry {index}", expected="an intent", found=intent.KIND)
            found.append(Unfinished(index, intent))
        return tuple(found)

    def trust(self) -> Trust:
        """The ledger's keys. A rotated one is trusted up to the size that ends with the entry that rotated it."""
        rows = self._connection.execute(select(ledger_keys).order_by(ledger_keys.c.entry)).all()
        if not rows:
            raise InputError("there is no ledger yet", hint="run `ebbtide ledger init`")
        for row in rows:
            # The table is an index of what the entries say; a row that no entry bears out is somebody else's key.
            entry = parse_entry(self.leaf(row.entry))
            said = entry.key if isinstance(entry, LedgerCreated) else getattr(entry, "new", None)
            if said != row.key:
                raise ProofError(f"key of entry {row.entry}", expected=said or "none", found=row.key)
        keys = [VerifierKey.parse(row.key) for row in rows]
        if len(names := {key.name for key in keys}) > 1:
            raise ProofError("origin of the ledger's keys", expected=keys[0].name, found=", ".join(sorted(names)))
        ends: list[int | None] = [*(row.entry + 1 for row in rows[1:]), None]
        return Trust(tuple(TrustedKey(key, end) for key, end in zip(keys, ends, strict=True)))

    def get(self, level: int, index: int) -> bytes:
        """The hash of the complete subtree `(level, index)`."""
        height, inside = divmod(level, STORED_HEIGHT)
        if inside == 0:
            return self._stored_hash(height, index)
        found = self._inner_hashes.get((level, index))
        if found is None:
            found = tree.node_hash(self.get(level - 1, 2 * index), self.get(level - 1, 2 * index + 1))
            self._inner_hashes[level, index] = found
        return found

    def root(self, size: int) -> bytes:
        """The root hash of the first `size` entries."""
        return tree.root(size, self.get)

    def checkpoint(self, size: int | None = None) -> Note | None:
        """The signed checkpoint of this size, or the latest."""
        query = select(ledger_checkpoints.c.note).order_by(ledger_checkpoints.c.size.desc()).limit(1)
        if size is not None:
            query = query.where(ledger_checkpoints.c.size == size)
        found: bytes | None = self._connection.execute(query).scalar_one_or_none()
        return None if found is None else Note.parse(found)

    def checkpoints(self) -> Iterator[tuple[int, bytes]]:
        """Every checkpoint that was signed, by size."""
        for row in self._connection.execute(select(ledger_checkpoints).order_by(ledger_checkpoints.c.size)):
            yield row.size, row.note

    def signed_sizes(self) -> list[int]:
        """The sizes that there is a checkpoint of."""
        return list(self._connection.execute(select(ledger_checkpoints.c.size)).scalars())

    def keep_checkpoint(self, size: int, note: Note) -> None:
        """Store a checkpoint, or the same one with further signatures."""
        same_size = ledger_checkpoints.c.size == size
        updated = self._connection.execute(update(ledger_checkpoints).where(same_size).values(note=note.encode()))
        if not updated.rowcount:
            self._connection.execute(insert(ledger_checkpoints), [{"size": size, "note": note.encode()}])

    def _entry(self, index: int) -> tuple[bytes, bytes | None]:
        """Leaf hash and body of a row, which fit each other."""
        query = select(ledger_entries.c.leaf_hash, ledger_entries.c.body).where(ledger_entries.c.idx == index)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            raise InputError(f"no entry {index} in a ledger of {self.size}", hint="indexes count from 0")
        if row.body is not None and (found := tree.leaf_hash(row.body)) != row.leaf_hash:
            raise ProofError(
                f"body of entry {index}",
                expected=f"leaf hash {row.leaf_hash.hex()}",
                found=found.hex(),
                hint="run `ebbtide ledger audit`",
            )
        return row.leaf_hash, row.body

    def _append_leaves(self, leaves: list[bytes]) -> None:
        self._frontier, runs = self.frontier().append([tree.leaf_hash(leaf) for leaf in leaves])
        for run in runs:
            indexes = range(run.first, run.first + len(run.hashes))
            if run.level == 0:
                insert_rows(self._connection, ledger_entries, list(zip(indexes, run.hashes, leaves, strict=True)))
            elif run.level % STORED_HEIGHT == 0:
                rows = [(run.level, index, item) for index, item in zip(indexes, run.hashes, strict=True)]
                insert_rows(self._connection, ledger_nodes, rows)
        self._stored_hashes.clear()
        self._inner_hashes.clear()

    def _begin(self, intents: dict[str, int]) -> None:
        acts = list(intents)
        for start in range(0, len(acts), _PAGE):
            query = select(ledger_acts.c.act).where(ledger_acts.c.act.in_(acts[start : start + _PAGE])).limit(1)
            taken = self._connection.execute(query).scalar_one_or_none()
            if taken is not None:
                raise RefusedError(f"the act {taken} has an intent already", hint="every act has an id of its own")
        insert_rows(self._connection, ledger_acts, [(act, index, None) for act, index in intents.items()])

    def _finish(self, act: str, index: int) -> None:
        is_open = (ledger_acts.c.act == act) & ledger_acts.c.outcome.is_(None)
        if not self._connection.execute(update(ledger_acts).where(is_open).values(outcome=index)).rowcount:
            raise RefusedError(f"the act {act} has no intent that waits for an outcome", hint="write the intent first")

    def _stored_hash(self, height: int, index: int) -> bytes:
        page, place = divmod(index, self._read_together)
        stored = self._stored_hashes.get((height, page))
        if stored is None:
            start = page * self._read_together
            stored = self._stored_hashes[height, page] = self._stored(height, start, start + self._read_together)
        if place >= len(stored):
            where = f"hash of the subtree {index} on level {height * STORED_HEIGHT}"
            raise ProofError(where, expected="stored", found="none")
        return stored[place]

    def _stored(self, height: int, start: int, end: int) -> list[bytes]:
        if height:
            nodes = ledger_nodes.c
            query = select(nodes.idx, nodes.hash).where(nodes.height == height * STORED_HEIGHT)
            query = query.where(nodes.idx >= start, nodes.idx < end).order_by(nodes.idx)
        else:
            entries = ledger_entries.c
            query = select(entries.idx, entries.leaf_hash).where(entries.idx >= start, entries.idx < end)
            query = query.order_by(entries.idx)
        hashes: list[bytes] = []
        for index, item in self._connection.execute(query):
            # A gap would move every later hash into a wrong place.
            if index != start + len(hashes):
                break
            hashes.append(item)
        return hashes
