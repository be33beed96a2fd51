"""One file of keys: each is written whole or counts for nothing, is its request's alone, and is destroyed alone."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ebbtide.errors import EbbtideError, RefusedError, UnreadableError
from ebbtide.state.request_keys import SLOT_BYTES, TAG_BYTES, RequestKeys


@pytest.fixture
def keys(tmp_path: Path) -> RequestKeys:
    return RequestKeys(tmp_path / "keys" / "requests.keys")


def test_a_key_is_read_by_its_slot_and_its_request_only(keys: RequestKeys) -> None:
    slots, made = keys.append(["a", "b", "c"])
    assert list(slots) == [0, 1, 2]
    assert len(set(made)) == 3
    assert [keys.read(slot, name) for slot, name in zip(slots, "abc", strict=True)] == list(made)
    for slot, name in ((0, "b"), (1, "a"), (3, "a"), (10**9, "a")):
        with pytest.raises(UnreadableError):
            keys.read(slot, name)
    assert list(keys.append(["d"])[0]) == [3]


def test_the_file_is_for_its_owner_only_and_no_link(keys: RequestKeys, tmp_path: Path) -> None:
    keys.append(["a"])
    assert keys.path.stat().st_mode & 0o777 == 0o600
    assert keys.path.parent.stat().st_mode & 0o777 == 0o700
    keys.path.chmod(0o640)
    acts: list[Callable[[], object]] = [
        lambda: keys.read(0, "a"),
        lambda: keys.append(["b"]),
        lambda: keys.destroy([(0, "a")]),
    ]
    for act in acts:
        with pytest.raises(RefusedError, match="others may read"):
            act()
    keys.path.chmod(0o600)
    moved = tmp_path / "moved"
    keys.path.rename(moved)
    keys.path.symlink_to(moved)
    for act in acts:
        with pytest.raises(EbbtideError):
            act()


def test_one_key_is_destroyed_alone(keys: RequestKeys) -> None:
    _, made = keys.append([f"r{number}" for number in range(100)])
    before = keys.path.read_bytes()
    keys.destroy([(50, "r50"), (7, "r7")])
    keys.destroy([(50, "r50")])
    after = keys.path.read_bytes()
    assert len(after) == len(before)
    for slot in range(-1, 100):
        place = slice(SLOT_BYTES * (slot + 1), SLOT_BYTES * (slot + 2))
        gone = before[place][:TAG_BYTES] + bytes(SLOT_BYTES - TAG_BYTES)
        assert after[place] == (gone if slot in (7, 50) else before[place])
    assert made[50] not in after
    with pytest.raises(UnreadableError, match="destroyed"):
        keys.read(50, "r50")
    # Of another request, destroyed for another one, behind the end; and none of several where one is refused.
    for slot, name in ((8, "r9"), (50, "r51"), (100, "r100")):
        with pytest.raises(RefusedError, match="not of request"):
            keys.destroy([(1, "r1"), (slot, name)])
    assert keys.read(1, "r1") == made[1]
    assert keys.read(8, "r8") == made[8]


@pytest.mark.parametrize("cut", [1, 31, 63, 64, 65, 120, 127])
def test_a_write_that_was_cut_counts_for_nothing_and_the_next_one_goes_behind_it(keys: RequestKeys, cut: int) -> None:
    _, made = keys.append(["a"])
    # Keys of which no record ends in a zero: what is cut off is filled up with zeros, and one would not be missed.
    keys.append(["b", "c"], [bytes(31) + b"b", bytes(31) + b"c"])
    assert {keys.path.read_bytes()[SLOT_BYTES * slot - 1] for slot in (3, 4)}.isdisjoint({0})
    os.truncate(keys.path, SLOT_BYTES * 2 + cut)
    slots, more = keys.append(["d"])
    assert keys.read(0, "a") == made[0]
    assert keys.read(slots[0], "d") == more[0]
    assert slots[0] == 1 + -(-cut // SLOT_BYTES)
    for slot, name in ((1, "b"), (2, "c")):
        if cut < SLOT_BYTES * slot:
            with pytest.raises(UnreadableError):
                keys.read(slot, name)


@pytest.mark.parametrize("size", [0, 1, 63])
def test_a_file_that_was_cut_before_its_first_key_begins_anew(keys: RequestKeys, size: int) -> None:
    keys.append(["a"])
    os.truncate(keys.path, size)
    slots, made = keys.append(["b"])
    assert keys.read(slots[0], "b") == made[0]


def test_any_changed_byte_of_a_key_is_noticed(keys: RequestKeys) -> None:
    keys.append(["a"])
    raw = keys.path.read_bytes()
    for at in range(SLOT_BYTES, 2 * SLOT_BYTES):
        keys.path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(UnreadableError):
            keys.read(0, "a")


def test_another_file_in_its_place_is_not_written_to(keys: RequestKeys) -> None:
    keys.path.parent.mkdir()
    keys.path.write_bytes(b"x" * 500)
    keys.path.chmod(0o600)
    with pytest.raises(UnreadableError):
        keys.append(["a"])
    assert keys.path.read_bytes() == b"x" * 500


def test_keys_behind_a_slot_are_destroyed_and_those_before_stay(keys: RequestKeys) -> None:
    assert not keys.behind(None)
    for slots in (range(0), range(1)):
        with suppress(UnreadableError):
            keys.destroy_all(slots)
    assert not keys.path.exists()
    with pytest.raises(UnreadableError, match="not here"):
        keys.behind((0, "a"))
    _, made = keys.append(["a", "b", "c"])
    for slot, name in ((0, "b"), (3, "d")):
        with pytest.raises(RefusedError, match="not of request"):
            keys.behind((slot, name))
    assert keys.behind(None) == range(3)
    assert not keys.behind((2, "c"))
    assert keys.behind((0, "a")) == range(1, 3)
    keys.destroy_all(keys.behind((0, "a")))
    assert not keys.behind((0, "a"))
    assert keys.read(0, "a") == made[0]
    assert keys.path.read_bytes()[SLOT_BYTES * 2 :] == bytes(SLOT_BYTES * 2)


@pytest.mark.parametrize("cut", [1, 24, 47])
def test_a_destruction_that_was_cut_is_done_again(keys: RequestKeys, cut: int) -> None:
    keys.append(["a"])
    with keys.path.open("r+b") as file:
        file.seek(SLOT_BYTES + TAG_BYTES)
        file.write(bytes(cut))
    with pytest.raises(UnreadableError):
        keys.read(0, "a")
    keys.destroy([(0, "a")])
    assert not any(keys.path.read_bytes()[SLOT_BYTES + TAG_BYTES :])


def _append(path: Path, name: str, sent: multiprocessing.Queue[list[tuple[int, str, bytes]]]) -> None:
    keys = RequestKeys(path)
    found: list[tuple[int, str, bytes]] = []
    for number in range(20):
        slots, made = keys.append([f"{name}{number}.{each}" for each in range(3)])
        found += [(slot, f"{name}{number}.{at}", key) for at, (slot, key) in enumerate(zip(slots, made, strict=True))]
        keys.destroy([(slots[1], f"{name}{number}.1")])
    sent.put(found)


def test_processes_that_write_at_the_same_time_share_no_slot(keys: RequestKeys) -> None:
    context = multiprocessing.get_context("spawn")
    sent: multiprocessing.Queue[list[tuple[int, str, bytes]]] = context.Queue()
    workers = [context.Process(target=_append, args=(keys.path, name, sent)) for name in "xyz"]
    for worker in workers:
        worker.start()
    found = [item for _ in workers for item in sent.get(timeout=60)]
    for worker in workers:
        worker.join()
    assert sorted(slot for slot, _, _ in found) == list(range(180))
    for slot, name, key in found:
        if name.endswith(".1"):
            with pytest.raises(UnreadableError, match="destroyed"):
                keys.read(slot, name)
        else:
            assert keys.read(slot, name) == key
