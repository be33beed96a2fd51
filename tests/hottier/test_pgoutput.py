"""Changes in the log that nobody can read are never passed over (spec §6)."""

from __future__ import annotations

import struct

import pytest

from ebbtide.hottier.pgoutput import ChangeBatch, joined
from ebbtide.hottier.values import CannotFollowError


def _relation(oid: int) -> bytes:
    column = b"\x01id\0" + struct.pack("!Ii", 20, -1)
    return b"R" + struct.pack("!I", oid) + b"public\0m_1\0d" + struct.pack("!h", 1) + column


def _insert(oid: int, value: int) -> bytes:
    return b"I" + struct.pack("!I", oid) + b"N" + struct.pack("!hcIq", 1, b"b", 8, value)


def _commit(end: int) -> bytes:
    return b"C\0" + struct.pack("!QQq", end - 8, end, 0)


def _batch(*messages: bytes) -> ChangeBatch:
    return joined(b"".join(messages), b"".join(struct.pack("!i", len(each)) for each in messages))


def _places(batch: ChangeBatch) -> list[int]:
    return [int(n) for changes in batch.changes() for n in changes.order]


def test_relations_that_were_told_before_are_kept_for_the_changes_behind() -> None:
    whole = _batch(b"B", _relation(7), _insert(7, 1), _commit(10), b"B", _insert(7, 2), _commit(20))
    left = whole.after(10)
    assert (left.end, len(_places(left))) == (20, 1)
    assert left.after(20).end is None
    assert left.until(21).end == 20


def test_what_is_left_behind_the_last_commit_is_read_on_with_what_was_described() -> None:
    first = _batch(b"B", _relation(7), _relation(8), _insert(7, 1), _commit(10), b"B", _relation(7), _insert(7, 2))
    whole, messages, lengths = first.split()
    assert (whole.end, len(_places(whole))) == (10, 1)
    behind = (_insert(8, 3), _commit(20))
    more = b"".join(struct.pack("!i", len(each)) for each in behind)
    second = joined(messages + b"".join(behind), lengths + more)
    assert [relation.oid for _, relation in second.relations] == [7, 8, 7]
    assert (second.end, len(_places(second))) == (20, 2)
    last, messages, lengths = second.split()
    assert last.end == 20
    assert [relation.oid for _, relation in joined(messages, lengths).relations] == [8, 7]


@pytest.mark.parametrize(
    "messages",
    [
        (b"B", _insert(7, 1), _commit(10)),  # nobody described it
        (b"B", _relation(8), _insert(7, 1), _commit(10)),  # but another
        (b"B", _insert(7, 1), _relation(7), _insert(7, 2), _commit(10)),  # described only later
    ],
)
def test_changes_that_no_relation_describes_stop_the_mirror(messages: tuple[bytes, ...]) -> None:
    with pytest.raises(CannotFollowError, match="did not describe"):
        _places(_batch(*messages))
