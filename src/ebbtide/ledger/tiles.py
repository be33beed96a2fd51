"""The ledger as a folder of static files that anyone can serve and audit (C2SP tlog-tiles).

    checkpoint                        the signed note
    tile/<level>/<n>[.p/<width>]      256 hashes a file; level l holds the tree's level 8·l
    tile/entries/<n>[.p/<width>]      256 entries a file, each after its length as two bytes

The rightmost file of a level is partial and carries its width in its name. Tiles are immutable: a file that is there
with other bytes is an error, never overwritten. The checkpoint comes last, so that it never promises a tile that is
not there yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.note import Checkpoint, Note
from ebbtide.ledger.tree import Get, leaf_hash, root

TILE_WIDTH = 256
_TILE_HEIGHT = 8


def tile_path(kind: str, number: int, width: int = TILE_WIDTH) -> str:
    """Where a tile lies: `kind` is its level, or `entries`. Number 1234067 reads `x001/x234/067`."""
    if number < 0 or not 0 < width <= TILE_WIDTH:
        raise InputError(f"no tile {number} of width {width}", hint="tiles count from 0 and have 1 to 256 hashes")
    digits = f"{number:0{-(-len(str(number)) // 3) * 3}d}"
    groups = [digits[start : start + 3] for start in range(0, len(digits), 3)]
    path = "/".join(["tile", kind, *(f"x{group}" for group in groups[:-1]), groups[-1]])
    return path if width == TILE_WIDTH else f"{path}.p/{width}"


def hash_tiles(size: int, get: Get) -> Iterator[tuple[str, bytes]]:
    """Every hash tile of a tree of `size`, as path and content."""
    level = 0
    while count := size >> (_TILE_HEIGHT * level):
        for start in range(0, count, TILE_WIDTH):
            hashes = [get(_TILE_HEIGHT * level, index) for index in range(start, min(start + TILE_WIDTH, count))]
            yield tile_path(str(level), start // TILE_WIDTH, len(hashes)), b"".join(hashes)
        level += 1


def entry_bundles(size: int, entries: Iterable[bytes | None], get: Get) -> Iterator[tuple[str, bytes]]:
    """Every bundle of the first `size` entries, as path and content; each entry must hash to its stored leaf.

    None stands for an entry whose body the ledger's own retention removed. A bundle can only be served whole, so one
    that misses a body is left out: its hashes stay, and proofs still work.
    """
    bodies = iter(entries)
    for start in range(0, size, TILE_WIDTH):
        bundle = list(islice(bodies, min(TILE_WIDTH, size - start)))
        if len(bundle) != min(TILE_WIDTH, size - start):
            raise ProofError("entries to export", expected=str(size), found=str(start + len(bundle)))
        for index, body in enumerate(bundle, start):
            if body is not None and leaf_hash(body) != get(0, index):
                raise ProofError(
                    f"leaf hash of entry {index}", expected=get(0, index).hex(), found=leaf_hash(body).hex()
                )
        whole = [body for body in bundle if body is not None]
        if len(whole) == len(bundle):
            content = b"".join(len(body).to_bytes(2) + body for body in whole)
            yield tile_path("entries", start // TILE_WIDTH, len(whole)), content
    if next(bodies, None) is not None:
        raise ProofError("entries to export", expected=str(size), found="more")


def export(directory: Path, note: Note, entries: Iterable[bytes | None], get: Get) -> int:
    """Write the ledger under its signed checkpoint into `directory`. Gives the number of files that were new.

    The hashes must lead to the checkpoint's root. Running again adds what is new and leaves the rest as it is.
    """
    checkpoint = Checkpoint.parse(note.text)
    if (found := root(checkpoint.size, get)) != checkpoint.root:
        raise ProofError("root hash of the ledger", expected=checkpoint.root.hex(), found=found.hex())
    written = 0
    for tiles in (entry_bundles(checkpoint.size, entries, get), hash_tiles(checkpoint.size, get)):
        for path, content in tiles:
            written += _write_once(directory / path, content)
    _replace(directory / "checkpoint", note.encode())
    return written


def _write_once(path: Path, content: bytes) -> bool:
    with suppress(FileNotFoundError):
        if path.read_bytes() != content:
            raise ProofError(f"{path.name} in {path.parent}", expected="the tile of this ledger", found="other bytes")
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, content)
    return True


def _replace(path: Path, content: bytes) -> None:
    # A reader, or a run after a crash, sees the whole file or none.
    partial = path.with_name(f".{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial.write_bytes(content)
    partial.replace(path)
