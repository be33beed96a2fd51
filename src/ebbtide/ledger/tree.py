"""The Merkle tree of the ledger (RFC 6962; the checks of proofs are those of RFC 9162, section 2.1).

Invariants:

1. A leaf is hashed with the prefix 0x00, an inner node with 0x01, so that neither can be read as the other.
2. Stored are the hashes of **complete** subtrees only: `(level, index)` covers the leaves
   `index * 2^level … (index + 1) * 2^level - 1`. Such a hash never changes once it is written.
3. Everything else is computed from O(log n) of them, which the caller hands in as `get(level, index)`.
4. A check takes nothing on trust: sizes, indexes and the exact number of hashes are part of what is checked, and
   nothing follows from the empty tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from ebbtide.errors import InputError, ProofError

Get: TypeAlias = Callable[[int, int], bytes]
"""Reads the stored hash of the complete subtree `(level, index)`; raises when it is not there."""

HASH_BYTES = 32
MAX_SIZE = 2**63 - 1
EMPTY_ROOT = sha256(b"").digest()


class HashRun(NamedTuple):
    """Hashes to store: `hashes[i]` belongs to `(level, first + i)`."""

    level: int
    first: int
    hashes: list[bytes]


def leaf_hash(entry: bytes) -> bytes:
    """Hash one ledger entry as a Merkle leaf (RFC 6962, section 2.1)."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees into the one above them (RFC 6962, section 2.1)."""
    return sha256(b"\x01" + left + right).digest()


def append(size: int, leaf_hashes: Sequence[bytes], get: Get) -> Iterator[HashRun]:
    """What appending these leaves to a tree of `size` stores, level by level from the leaves up.

    `get` is asked only for hashes that were stored before, at most one a level.
    """
    _check_size(size)
    _check_size(size + len(leaf_hashes))
    level, first, hashes = 0, size, list(leaf_hashes)
    while hashes:
        yield HashRun(level, first, hashes)
        # A parent is complete when its right child is; a left one that waited for its sibling comes from the store.
        if first % 2:
            hashes = [get(level, first - 1), *hashes]
        hashes = [node_hash(left, right) for left, right in zip(hashes[::2], hashes[1::2], strict=False)]
        level, first = level + 1, first // 2


def root(size: int, get: Get) -> bytes:
    """The root hash of the first `size` leaves."""
    _check_size(size)
    return _subtree(0, size, get) if size else EMPTY_ROOT


def peaks(size: int) -> Iterator[tuple[int, int]]:
    """The complete subtrees that a tree of `size` is made of, as level and index, the largest first."""
    _check_size(size)
    yield from _complete(0, size)


def inclusion_proof(index: int, size: int, get: Get) -> tuple[bytes, ...]:
    """The hashes beside the way from leaf `index` up to the root of `size` leaves (RFC 6962, section 2.1.1)."""
    _check_size(size)
    if not 0 <= index < size:
        raise InputError(f"no entry {index} in a ledger of {size}", hint="indexes count from 0")
    beside: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            beside.append(_subtree(middle, end, get))
            end = middle
        else:
            beside.append(_subtree(start, middle, get))
            start = middle
    return tuple(reversed(beside))


def consistency_proof(old_size: int, new_size: int, get: Get) -> tuple[bytes, ...]:
    """The hashes that show the tree of `old_size` inside that of `new_size` (RFC 6962, section 2.1.2)."""
    _check_size(new_size)
    if not 0 < old_size <= new_size:
        raise InputError(
            f"no consistency proof from size {old_size} to {new_size}", hint="ask for 0 < old size <= new size"
        )
    proof: list[bytes] = []
    start, end = 0, new_size
    while old_size != end:
        middle = start + _split(end - start)
        if old_size <= middle:
            proof.append(_subtree(middle, end, get))
            end = middle
        else:
            proof.append(_subtree(start, middle, get))
            start = middle
    # The verifier knows the old root; it needs the last subtree only when that is not the whole old tree.
    if start:
        proof.append(_subtree(start, end, get))
    return tuple(reversed(proof))


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root_hash: bytes) -> None:
    """Refuse unless the leaf hash stands at `index` in the tree of `size` with this root (RFC 9162, 2.1.3.2)."""
    _check_size(size)
    _check_hashes(leaf, root_hash, *proof)
    if not 0 <= index < size:
        raise ProofError("inclusion proof: index", expected=f"below the tree size {size}", found=str(index))
    # Below the point where the way to the leaf leaves the right edge every level has a sibling; above it only the
    # levels where the way turns right do.
    inner = (index ^ (size - 1)).bit_length()
    expected = inner + (index >> inner).bit_count()
    if len(proof) != expected:
        raise ProofError("inclusion proof: number of hashes", expected=str(expected), found=str(len(proof)))
    node = leaf
    for level, sibling in enumerate(proof):
        left = level >= inner or index >> level & 1
        node = node_hash(sibling, node) if left else node_hash(node, sibling)
    if node != root_hash:
        raise ProofError("inclusion proof: root hash", expected=root_hash.hex(), found=node.hex())


def verify_consistency(old_size: int, old_root: bytes, new_size: int, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Refuse unless the new tree begins with the whole old one (RFC 9162, section 2.1.4.2).

    From size 0 nothing can be concluded about a tree that has entries, so that is refused.
    """
    _check_size(old_size)
    _check_size(new_size)
    _check_hashes(old_root, new_root, *proof)
    if old_size > new_size:
        raise ProofError("consistency proof: size", expected=f"at least {old_size}", found=str(new_size))
    if old_size == 0 and (new_size or old_root != EMPTY_ROOT):
        raise ProofError("consistency proof: old size", expected="above 0", found="0")
    if old_size == new_size:
        if proof:
            raise ProofError("consistency proof: number of hashes", expected="0", found=str(len(proof)))
        if old_root != new_root:
            raise ProofError("consistency proof: root hash", expected=old_root.hex(), found=new_root.hex())
        return
    old, new = _roots(old_size, new_size, old_root, proof)
    if old != old_root:
        raise ProofError("consistency proof: old root hash", expected=old_root.hex(), found=old.hex())
    if new != new_root:
        raise ProofError("consistency proof: new root hash", expected=new_root.hex(), found=new.hex())


def _roots(old_size: int, new_size: int, old_root: bytes, proof: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Both roots as the proof has them, for 0 < old size < new size."""
    # The walk starts at the largest subtree that ends where the old tree does, and goes up the new tree from there.
    start = (old_size & -old_size).bit_length() - 1
    place, last = (old_size - 1) >> start, (new_size - 1) >> start
    inner = (place ^ last).bit_length()
    expected = inner + (place >> inner).bit_count() + (1 if place else 0)
    if len(proof) != expected:
        raise ProofError("consistency proof: number of hashes", expected=str(expected), found=str(len(proof)))
    old = new = proof[0] if place else old_root
    for level, sibling in enumerate(proof[1:] if place else proof):
        if level >= inner or place >> level & 1:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
        else:
            # What lies to the right of the old tree belongs to the new one only.
            new = node_hash(new, sibling)
    return old, new


def _subtree(start: int, end: int, get: Get) -> bytes:
    """The hash over leaves `start … end - 1`, where `start` is a multiple of the least power of 2 that holds them."""
    parts = [get(level, index) for level, index in _complete(start, end)]
    found = parts.pop()
    while parts:
        found = node_hash(parts.pop(), found)
    return found


def _complete(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The complete subtrees that make up leaves `start … end - 1`, the largest first."""
    while start < end:
        level = (end - start).bit_length() - 1
        yield level, start >> level
        start += 1 << level


def _split(count: int) -> int:
    """The largest power of 2 below `count`."""
    return 1 << (count - 1).bit_length() - 1


def _check_size(size: int) -> None:
    if not 0 <= size <= MAX_SIZE:
        raise InputError(f"{size} is not a tree size", hint="sizes count from 0 to 2^63 - 1")


def _check_hashes(*hashes: bytes) -> None:
    if any(len(item) != HASH_BYTES for item in hashes):
        raise InputError("a hash that has not 32 bytes", hint="the tree is hashed with SHA-256")
