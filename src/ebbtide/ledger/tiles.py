"""The ledger as a folder of static files that anyone can serve and audit (C2SP tlog-tiles).

    checkpoint                        the signed note
    tile/<level>/<n>[.p/<width>]      256 hashes a file; level l holds the tree's level 8·l
    tile/entries/<n>[.p/<width>]      256 entries a file, each after its length as two bytes

1. The rightmost file of a level is partial and carries its width in its name. There is one for every size that was ever
   signed, until the full one is there: whoever holds an older checkpoint still finds what it needs.
2. Entries whose bodies the ledger's own retention removed are left out by prefix: below the minimum index there is no
   bundle, above it every one. Only the last bundle, which is not full yet, may end early. All hashes stay.
3. What is written follows from the leaves, and leads to the root that was signed; that is known before the first file.
4. Tiles are immutable: a file that is there with other bytes is an error, never overwritten. The checkpoint comes last,
   so that it never promises a tile that is not there yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.frontier import NOTHING
from ebbtide.ledger.note import Checkpoint, Note
from ebbtide.ledger.tree import Get, leaf_hash

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


def hash_tiles(size: int, get: Get, sizes: Collection[int] = ()) -> Iterator[tuple[str, bytes]]:
    """Every hash tile of a tree of `size`, as path and content; `sizes` are those that were signed before."""
    level = 0
    while count := size >> (_TILE_HEIGHT * level):
        for start in range(0, count, TILE_WIDTH):
            hashes = [get(_TILE_HEIGHT * level, index) for index in range(start, min(start + TILE_WIDTH, count))]
            for width in (
                _widths(level, start // TILE_WIDTH, {*sizes, size}) if len(hashes) < TILE_WIDTH else [TILE_WIDTH]
            ):
                yield tile_path(str(level), start // TILE_WIDTH, width), b"".join(hashes[:width])
        level += 1


def entry_bundles(
    size: int, entries: Iterable[bytes | None], get: Get, sizes: Collection[int] = (), *, minimum_index: int = 0
) -> Iterator[tuple[str, bytes]]:
    """Every bundle of the first `size` entries, as path and content; each entry must hash to its stored leaf.

    None stands for an entry whose body the ledger's own retention removed. A bundle can only be served whole, and what
    is not served is a prefix of the log: full bundles that end at the minimum index, or before it.
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
        number = start // TILE_WIDTH
        whole = list(takewhile(lambda body: body is not None, bundle))
        content = [len(body).to_bytes(2) + body for body in whole if body is not None]
        if len(bundle) == TILE_WIDTH and start + TILE_WIDTH > minimum_index:
            if len(whole) < TILE_WIDTH:
                raise ProofError(f"body of entry {start + len(whole)}", expected="a body", found="none")
            yield tile_path("entries", number), b"".join(content)
        elif len(bundle) < TILE_WIDTH:
            for width in _widths(0, number, {*sizes, size}):
                if width <= len(whole):
                    yield tile_path("entries", number, width), b"".join(content[:width])
    if next(bodies, None) is not None:
        raise ProofError("entries to export", expected=str(size), found="more")


def full_bundles(size: int) -> int:
    """How many of the first entries lie in bundles that are full."""
    return size - size % TILE_WIDTH


def minimum_index(last_pruned: int | None) -> int:
    """Where the entries begin that are served, when this is the last one in a full bundle that has no body."""
    return 0 if last_pruned is None else full_bundles(last_pruned) + TILE_WIDTH


def export(
    directory: Path,
    note: Note,
    entries: Iterable[bytes | None],
    get: Get,
    sizes: Collection[int] = (),
    *,
    minimum_index: int = 0,
) -> int:
    """Write the ledger under its signed checkpoint into `directory`. Gives the number of files that were new.

    The hashes must lead to the checkpoint's root. Running again adds what is new and leaves the rest as it is.
    """
    checkpoint = Checkpoint.parse(note.text)
    size = checkpoint.size
    check_hashes(size, get, checkpoint.root)
    earlier = {before for before in sizes if 0 < before <= size}
    bundles = entry_bundles(size, entries, get, earlier, minimum_index=minimum_index)
    written = 0
    for tiles in (bundles, hash_tiles(size, get, earlier)):
        for path, content in tiles:
            written += _write_once(directory / path, content)
    _replace(directory / "checkpoint", note.encode())
    return written


def _widths(level: int, number: int, sizes: Collection[int]) -> list[int]:
    """The widths that a partial tile had at these sizes."""
    counts = [size >> (_TILE_HEIGHT * level) for size in sizes]
    return sorted({count % TILE_WIDTH for count in counts if count // TILE_WIDTH == number and count % TILE_WIDTH})


def check_hashes(size: int, get: Get, root: bytes) -> None:
    """Refuse unless the hashes of every tile follow from the leaves, and these are the ones that were signed."""
    head = NOTHING
    for start in range(0, size, TILE_WIDTH):
        head, runs = head.append([get(0, index) for index in range(start, min(start + TILE_WIDTH, size))])
        for run in runs:
            if run.level == 0 or run.level % _TILE_HEIGHT:
                continue
            for index, expected in enumerate(run.hashes, run.first):
                if (found := get(run.level, index)) != expected:
                    where = f"stored hash {index} of height {run.level}"
                    raise ProofError(where, expected=expected.hex(), found=found.hex())
    if head.root != root:
        raise ProofError("root hash of the ledger", expected=root.hex(), found=head.root.hex())


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
