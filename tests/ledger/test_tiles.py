"""The tlog-tiles layout: every path, width and byte, read back with nothing but the specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.tiles import entry_bundles, export, hash_tiles, minimum_index, tile_path
from tests.ledger import oracle
from tests.ledger.forest import MemoryLedger


def ledger_of(count: int) -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.append_leaves([b'{"n":%d}' % number for number in range(count)])
    return ledger


@pytest.mark.parametrize(
    ("number", "width", "path"),
    [
        (0, 256, "tile/0/000"),
        (7, 12, "tile/0/007.p/12"),
        (999, 256, "tile/0/999"),
        (1000, 256, "tile/0/x001/000"),
        (1234067, 256, "tile/0/x001/x234/067"),
        (1234067, 1, "tile/0/x001/x234/067.p/1"),
    ],
)
def test_paths_are_those_of_the_specification(number: int, width: int, path: str) -> None:
    assert tile_path("0", number, width) == path


@pytest.mark.parametrize(("number", "width"), [(-1, 256), (0, 0), (0, 257)])
def test_tiles_that_cannot_be_are_refused(number: int, width: int) -> None:
    with pytest.raises(InputError):
        tile_path("0", number, width)


def test_a_tree_of_70000_has_the_tiles_that_the_specification_counts() -> None:
    asked: list[tuple[int, int]] = []

    def get(level: int, index: int) -> bytes:
        asked.append((level, index))
        return level.to_bytes(1) + index.to_bytes(31)

    paths = {path: len(content) // 32 for path, content in hash_tiles(70_000, get)}
    assert sum(path.startswith("tile/0/") and ".p/" not in path for path in paths) == 273
    assert paths["tile/0/273.p/112"] == 112
    assert paths["tile/1/000"] == 256
    assert paths["tile/1/001.p/17"] == 17
    assert paths["tile/2/000.p/1"] == 1
    assert len(paths) == 273 + 1 + 1 + 1 + 1
    assert {level for level, _ in asked} == {0, 8, 16}


def test_a_tree_of_256_has_a_full_tile_and_a_partial_one_above() -> None:
    assert [path for path, _ in hash_tiles(256, ledger_of(256).get)] == ["tile/0/000", "tile/1/000.p/1"]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 600])
def test_an_export_rebuilds_every_entry_hash_and_the_root(tmp_path: Path, size: int) -> None:
    ledger = ledger_of(size)
    note = ledger.checkpoint()
    written = export(tmp_path, note, ledger.leaves, ledger.get)
    assert (tmp_path / "checkpoint").read_bytes() == note.encode()
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} - {"checkpoint"}
    assert len(files) == written

    entries: list[bytes] = []
    hashes: list[bytes] = []
    for start in range(0, size, 256):
        width = min(256, size - start)
        suffix = f"{start // 256:03d}" + ("" if width == 256 else f".p/{width}")
        bundle = (tmp_path / "tile/entries" / suffix).read_bytes()
        while bundle:
            length = int.from_bytes(bundle[:2])
            entries.append(bundle[2 : 2 + length])
            bundle = bundle[2 + length :]
        tile = (tmp_path / "tile/0" / suffix).read_bytes()
        hashes += [tile[place : place + 32] for place in range(0, len(tile), 32)]
        files -= {f"tile/entries/{suffix}", f"tile/0/{suffix}"}
    assert entries == ledger.leaves
    assert hashes == [oracle.leaf(entry) for entry in entries]
    assert oracle.mth(hashes) == ledger.head().root
    if full := size // 256:
        name = f"tile/1/000.p/{full}"
        content = (tmp_path / name).read_bytes()
        assert content == b"".join(oracle.mth(hashes[256 * n : 256 * (n + 1)]) for n in range(full))
        files.remove(name)
    assert not files


def test_exporting_again_adds_only_what_is_new(tmp_path: Path) -> None:
    ledger = ledger_of(300)
    export(tmp_path, ledger.checkpoint(), ledger.leaves, ledger.get)
    assert export(tmp_path, ledger.checkpoint(), ledger.leaves, ledger.get) == 0
    ledger.append_leaves([b"{}"])
    assert export(tmp_path, ledger.checkpoint(), ledger.leaves, ledger.get) == 2


def test_another_ledger_in_the_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    first, second = ledger_of(3), ledger_of(2)
    second.append_leaves([b"other"])
    export(tmp_path, first.checkpoint(), first.leaves, first.get)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ProofError, match="other bytes"):
        export(tmp_path, second.checkpoint(), second.leaves, second.get)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_entries_that_are_not_the_ledgers_are_refused(tmp_path: Path) -> None:
    ledger = ledger_of(5)
    changed = [*ledger.leaves[:3], b"changed", ledger.leaves[4]]
    for entries, match in (
        (changed, "entry 3"),
        (ledger.leaves[:4], "expected 5, found 4"),
        ([*ledger.leaves, b"x"], "more"),
    ):
        with pytest.raises(ProofError, match=match):
            list(entry_bundles(5, entries, ledger.get))
    with pytest.raises(ProofError, match="entry 3"):
        export(tmp_path, ledger.checkpoint(), changed, ledger.get)
    assert not (tmp_path / "checkpoint").exists()


def test_a_checkpoint_that_is_not_the_trees_is_refused(tmp_path: Path) -> None:
    ledger, other = ledger_of(5), MemoryLedger()
    other.append_leaves([b"other %d" % number for number in range(5)])
    with pytest.raises(ProofError, match="root hash"):
        export(tmp_path, other.checkpoint(), ledger.leaves, ledger.get)
    assert not list(tmp_path.iterdir())


def test_a_bundle_whose_bodies_were_pruned_is_left_out_and_its_hashes_stay() -> None:
    ledger = ledger_of(520)
    bodies: list[bytes | None] = [None, *ledger.leaves[1:]]
    found = entry_bundles(520, bodies, ledger.get, minimum_index=256)
    assert [path for path, _ in found] == ["tile/entries/001", "tile/entries/002.p/8"]
    assert len(list(hash_tiles(520, ledger.get))) == 4


def test_every_signed_size_finds_its_partial_tiles_until_full_ones_take_their_place(tmp_path: Path) -> None:
    """Whoever holds an older checkpoint reads exactly the tiles that its size calls for (C2SP tlog-tiles)."""
    ledger = ledger_of(600)
    signed = [1, 5, 255, 256, 300, 511, 512, 513, 590, 600, 601]
    export(tmp_path, ledger.checkpoint(), ledger.leaves, ledger.get, signed)
    for size in signed[:-1]:
        level = 0
        while count := size >> (8 * level):
            number, width = divmod(count, 256)
            if width:
                partial, full = (
                    tmp_path / tile_path(str(level), number, width),
                    tmp_path / tile_path(str(level), number),
                )
                content = partial.read_bytes() if partial.exists() else full.read_bytes()[: 32 * width]
                assert content == b"".join(ledger.get(8 * level, 256 * number + place) for place in range(width))
                assert partial.exists() == (not full.exists())
            level += 1
    bundles = {path.name: path.read_bytes() for path in (tmp_path / "tile/entries/002.p").iterdir()}
    assert set(bundles) == {"1", "78", "88"}
    assert bundles["88"].startswith(bundles["78"])
    assert not (tmp_path / "tile/0/002.p/89").exists()


def test_what_was_pruned_is_left_out_by_prefix(tmp_path: Path) -> None:
    ledger = ledger_of(1000)
    # In the second bundle and in the last one, which is not full.
    bodies: list[bytes | None] = [None if index in (300, 900) else leaf for index, leaf in enumerate(ledger.leaves)]
    with pytest.raises(ProofError, match="body of entry 300"):
        export(tmp_path / "refused", ledger.checkpoint(), bodies, ledger.get)
    begin = minimum_index(300)
    assert (minimum_index(None), begin, minimum_index(511), minimum_index(512)) == (0, 512, 512, 768)
    export(tmp_path, ledger.checkpoint(), bodies, ledger.get, [800, 900, 901], minimum_index=begin)
    found = {str(path.relative_to(tmp_path / "tile/entries")) for path in (tmp_path / "tile/entries").rglob("*")}
    assert {path for path in found if not path.endswith(".p")} == {"002", "003.p/32", "003.p/132"}
    assert (tmp_path / "tile/0/003.p/232").exists()


def test_a_stored_hash_that_does_not_follow_from_the_leaves_is_not_exported(tmp_path: Path) -> None:
    ledger = ledger_of(600)
    for place in ((0, 7), (8, 1)):
        good = ledger.hashes[place]
        ledger.hashes[place] = bytes(32)
        with pytest.raises(ProofError):
            export(tmp_path, ledger.checkpoint(), ledger.leaves, ledger.get)
        ledger.hashes[place] = good
    assert not list(tmp_path.iterdir())
