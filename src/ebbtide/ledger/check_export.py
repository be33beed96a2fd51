"""The check of a whole ledger as it was exported (C2SP tlog-tiles), from its files and a key file (spec §5).

The steps, in this order:

1. `checkpoint`  the folder's head is signed by a key that is trusted at its size, under the key's own origin
2. `tiles`       every hash of every tile that a ledger of this size has follows from its leaves, and leads to that head
3. `entries`     every entry that is there is the one that was signed; which are not there, is said
4. `time`        who vouches for the time

Entries that a ledger's own retention pruned are a prefix of full bundles, and the end of the last bundle (`tiles.py`):
a hole anywhere else is refused. Why the first ones are missing, nobody can tell from the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.check import CheckReport, signed_by, take, vouched
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.note import MAX_NOTE_BYTES, Checkpoint, Note, VerifiedSignature
from ebbtide.ledger.summary import ASSERTED
from ebbtide.ledger.tiles import TILE_WIDTH, check_hashes, tile_path
from ebbtide.ledger.tree import HASH_BYTES, leaf_hash

_TILE_HEIGHT = 8
_LENGTH_BYTES = 2
_MAX_BUNDLE_BYTES = TILE_WIDTH * (_LENGTH_BYTES + 0xFFFF)

Read = Callable[[str, int], bytes | None]
"""The bytes of a file of the folder, None where there is none; refused beyond a limit."""


def check_export(read: Read, trust: Trust) -> CheckReport:
    """Check all that a folder's checkpoint promises. Never raises for what the folder holds."""
    checking = _ExportCheck(read, trust)
    steps, failed = take(checking.steps())
    return CheckReport(steps, failed, None, None if failed else checking.time)


class _ExportCheck:
    """One check under way: later steps use what earlier ones read and proved."""

    def __init__(self, read: Read, trust: Trust) -> None:
        self._read, self._trust = read, trust
        self._note: Note
        self._head: Checkpoint
        self._verified: tuple[VerifiedSignature, ...] = ()
        self._tiles: dict[int, tuple[int, bytes]] = {}
        self.time = ASSERTED

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "checkpoint", self.checkpoint
        yield "tiles", self.tiles
        yield "entries", self.entries
        yield "time", self.witnesses

    def checkpoint(self) -> str:
        self._note = Note.parse(self._must("checkpoint", MAX_NOTE_BYTES))
        self._head, self._verified = self._trust.verify(self._note)
        return signed_by(self._head, self._verified)

    def tiles(self) -> str:
        if not self._head.size:
            raise ProofError("size of the ledger", expected="entries", found="none, from which nothing follows")
        check_hashes(self._head.size, self._get, self._head.root)
        return f"{self._head.size} hashes lead to the root that was signed"

    def entries(self) -> str:
        first, end, size = None, 0, self._head.size
        for start in range(0, size, TILE_WIDTH):
            width = min(TILE_WIDTH, size - start)
            bodies = self._bundle(start // TILE_WIDTH, width)
            if first is not None and not bodies and width == TILE_WIDTH:
                where = tile_path("entries", start // TILE_WIDTH)
                raise ProofError(f"{where}, after others", expected="a bundle of entries", found="none")
            for index, body in enumerate(bodies, start):
                found = leaf_hash(body)
                if found != (expected := self._get(0, index)):
                    raise ProofError(f"leaf hash of entry {index}", expected=expected.hex(), found=found.hex())
            if bodies:
                first, end = start if first is None else first, start + len(bodies)
        if first is None:
            return f"none of {size} is here: what they say cannot be looked at"
        said = f"{first} to {end - 1} are those that were signed"
        return said if end - first == size else f"{said}; {size - (end - first)} others of {size} are not here"

    def witnesses(self) -> str:
        self.time, said = vouched(self._trust, self._note, self._verified, None)
        return said

    def _get(self, level: int, index: int) -> bytes:
        """A hash of a tile. They are asked for in order, so that one tile a level is kept."""
        number, place = divmod(index, TILE_WIDTH)
        if self._tiles.get(level, (-1,))[0] != number:
            width = min(TILE_WIDTH, (self._head.size >> level) - number * TILE_WIDTH)
            path = tile_path(str(level // _TILE_HEIGHT), number, width)
            content = self._must(path, width * HASH_BYTES)
            if len(content) != width * HASH_BYTES:
                raise InputError(f"{path} has not {width} hashes", hint="export the ledger again, and copy all of it")
            self._tiles[level] = number, content
        start = place * HASH_BYTES
        return self._tiles[level][1][start : start + HASH_BYTES]

    def _bundle(self, number: int, width: int) -> list[bytes]:
        """The entries of a bundle; of one that is not full perhaps only the first ones."""
        for count in (width,) if width == TILE_WIDTH else range(width, 0, -1):
            path = tile_path("entries", number, count)
            content = self._read(path, _MAX_BUNDLE_BYTES)
            if content is not None:
                bodies = list(_split(content))
                if len(bodies) != count:
                    raise ProofError(f"entries in {path}", expected=str(count), found=str(len(bodies)))
                return bodies
        return []

    def _must(self, path: str, limit: int) -> bytes:
        content = self._read(path, limit)
        if content is None:
            raise InputError(f"{path} is not there", hint="export the ledger again, and copy all of it")
        return content


def _split(content: bytes) -> Iterator[bytes]:
    """The entries of a bundle. What is cut yields a piece, which hashes to no leaf."""
    place = 0
    while place < len(content):
        begin = place + _LENGTH_BYTES
        place = begin + int.from_bytes(content[place:begin])
        yield content[begin:place]
