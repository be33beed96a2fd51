"""The Merkle tree: published roots, an independent oracle, and proofs that must be refused."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger import tree
from tests.ledger import oracle

# Leaf inputs and roots for sizes 1 to 8, as Certificate Transparency's own tests publish them.
PUBLISHED_LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
PUBLISHED_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
MILLION = 1_000_000


class Store:
    """What a database keeps: complete subtrees only, each written once. Counts the reads."""

    def __init__(self) -> None:
        self.hashes: dict[tuple[int, int], bytes] = {}
        self.size = 0
        self.reads = 0

    def get(self, level: int, index: int) -> bytes:
        self.reads += 1
        return self.hashes[level, index]

    def append(self, leaves: list[bytes]) -> None:
        for level, first, hashes in list(tree.append(self.size, leaves, self.get)):
            for offset, item in enumerate(hashes):
                assert (level, first + offset) not in self.hashes, "a stored hash is never written again"
                self.hashes[level, first + offset] = item
        self.size += len(leaves)


def leaves_of(count: int) -> list[bytes]:
    return [oracle.leaf(b"entry %d" % index) for index in range(count)]


@pytest.fixture(scope="module")
def leaves() -> list[bytes]:
    return leaves_of(300)


@pytest.fixture(scope="module")
def store(leaves: list[bytes]) -> Store:
    store = Store()
    store.append(leaves)
    return store


@pytest.fixture(scope="module")
def million() -> tuple[Store, list[bytes]]:
    store, leaves = Store(), leaves_of(MILLION)
    for start in range(0, MILLION, 99_991):
        store.append(leaves[start : start + 99_991])
    return store, leaves


def test_published_roots_of_rfc_6962_trees() -> None:
    store = Store()
    for size, root in enumerate(PUBLISHED_ROOTS):
        assert tree.root(size, store.get).hex() == root
        if size < len(PUBLISHED_LEAVES):
            store.append([tree.leaf_hash(bytes.fromhex(PUBLISHED_LEAVES[size]))])


def test_a_leaf_is_never_read_as_a_node(leaves: list[bytes]) -> None:
    assert tree.leaf_hash(leaves[0] + leaves[1]) != tree.node_hash(leaves[0], leaves[1])


def test_root_and_inclusion_agree_with_the_oracle_for_every_size_up_to_300(store: Store, leaves: list[bytes]) -> None:
    for size in range(301):
        root = tree.root(size, store.get)
        assert root == oracle.mth(leaves[:size])
        # The oracle hashes whole subtrees again for each path: every index for small trees, some for large ones.
        for index in range(size) if size <= 64 else {0, 1, size // 3, size // 2, size - 2, size - 1}:
            assert list(tree.inclusion_proof(index, size, store.get)) == oracle.path(index, leaves[:size])
        for index in range(size):
            tree.verify_inclusion(leaves[index], index, size, tree.inclusion_proof(index, size, store.get), root)


def test_consistency_holds_between_every_two_sizes_up_to_300(store: Store, leaves: list[bytes]) -> None:
    roots = [tree.root(size, store.get) for size in range(301)]
    for new in range(1, 301):
        for old in range(1, new + 1):
            proof = tree.consistency_proof(old, new, store.get)
            tree.verify_consistency(old, roots[old], new, roots[new], proof)
            if new <= 40 or old in (1, new // 2, new - 1):
                assert list(proof) == oracle.proof(old, leaves[:new])


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=12))
def test_batches_of_any_size_store_the_same_hashes_as_one_append(sizes: list[int]) -> None:
    leaves = leaves_of(sum(sizes))
    whole, batched, start = Store(), Store(), 0
    whole.append(leaves)
    for size in sizes:
        batched.append(leaves[start : start + size])
        start += size
    assert whole.hashes == batched.hashes


def test_proofs_of_random_trees_up_to_a_million_hold_and_cost_their_logarithm(
    million: tuple[Store, list[bytes]],
) -> None:
    store, leaves = million
    chance = random.Random(20261115)
    sizes = [MILLION, MILLION - 1, 2**19, 2**19 + 1, 2**19 - 1] + [chance.randrange(1, MILLION) for _ in range(200)]
    for size in sizes:
        old, index, budget = (
            chance.randrange(1, size + 1),
            chance.randrange(size),
            2 * math.ceil(math.log2(size + 1)) + 2,
        )
        store.reads = 0
        root = tree.root(size, store.get)
        assert store.reads <= budget
        store.reads = 0
        inclusion = tree.inclusion_proof(index, size, store.get)
        assert store.reads <= budget
        store.reads = 0
        consistency = tree.consistency_proof(old, size, store.get)
        assert store.reads <= budget
        tree.verify_inclusion(leaves[index], index, size, inclusion, root)
        tree.verify_consistency(old, tree.root(old, store.get), size, root, consistency)
        with pytest.raises(ProofError):
            tree.verify_inclusion(leaves[(index + 1) % MILLION], index, size, inclusion, root)


def test_root_of_a_million_agrees_with_the_oracle(million: tuple[Store, list[bytes]]) -> None:
    store, leaves = million
    assert tree.root(MILLION, store.get) == oracle.mth(leaves)
    assert tree.root(777_777, store.get) == oracle.mth(leaves[:777_777])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 21, 64, 65])
def test_every_proof_of_the_wrong_index_size_or_leaf_is_refused(store: Store, leaves: list[bytes], size: int) -> None:
    root = tree.root(size, store.get)
    for index in range(size):
        proof = tree.inclusion_proof(index, size, store.get)
        for other in range(-1, size + 2):
            if other != index:
                with pytest.raises(ProofError):
                    tree.verify_inclusion(leaves[index], other, size, proof, root)
        for other in range(1, 2 * size + 2):
            # Hashes and way can be the same for another size; then the root is that of this size, and not the other's.
            if other != size:
                with pytest.raises(ProofError):
                    tree.verify_inclusion(leaves[index], index, other, proof, tree.root(other, store.get))
        with pytest.raises(ProofError):
            tree.verify_inclusion(leaves[(index + 1) % 300], index, size, proof, root)
        for wrong in _broken(proof):
            with pytest.raises(ProofError):
                tree.verify_inclusion(leaves[index], index, size, wrong, root)


@pytest.mark.parametrize("new", [1, 2, 3, 7, 8, 9, 21, 32, 33])
def test_every_broken_consistency_proof_is_refused(store: Store, new: int) -> None:
    roots = [tree.root(size, store.get) for size in range(2 * new + 2)]
    for old in range(1, new + 1):
        proof = tree.consistency_proof(old, new, store.get)
        for other in range(2 * new + 1):
            if other != old:
                with pytest.raises(ProofError):
                    tree.verify_consistency(other, roots[other], new, roots[new], proof)
            if other != new:
                with pytest.raises(ProofError):
                    tree.verify_consistency(old, roots[old], other, roots[other], proof)
        with pytest.raises(ProofError):
            tree.verify_consistency(old, roots[old + 1], new, roots[new], proof)
        with pytest.raises(ProofError):
            tree.verify_consistency(old, roots[old], new, roots[new + 1], proof)
        for wrong in _broken(proof):
            with pytest.raises(ProofError):
                tree.verify_consistency(old, roots[old], new, roots[new], wrong)


@pytest.mark.parametrize("new", [1, 2, 5, 300])
def test_consistency_from_an_empty_tree_to_a_full_one_is_refused(store: Store, new: int) -> None:
    root = tree.root(new, store.get)
    for proof in ([], [root], [tree.EMPTY_ROOT, root]):
        with pytest.raises(ProofError):
            tree.verify_consistency(0, tree.EMPTY_ROOT, new, root, proof)
    with pytest.raises(InputError):
        tree.consistency_proof(0, new, store.get)


def test_two_empty_trees_are_the_same_only_with_the_empty_root() -> None:
    tree.verify_consistency(0, tree.EMPTY_ROOT, 0, tree.EMPTY_ROOT, [])
    with pytest.raises(ProofError):
        tree.verify_consistency(0, bytes(32), 0, bytes(32), [])


def test_a_smaller_new_tree_is_refused(store: Store) -> None:
    roots = [tree.root(size, store.get) for size in (5, 9)]
    with pytest.raises(ProofError, match="size"):
        tree.verify_consistency(9, roots[1], 5, roots[0], tree.consistency_proof(5, 9, store.get))


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 300), st.data())
def test_any_changed_bit_of_a_proof_is_refused(
    store: Store, leaves: list[bytes], size: int, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, size - 1))
    root = tree.root(size, store.get)
    proof = list(tree.inclusion_proof(index, size, store.get))
    parts = [leaves[index], root, *proof]
    which, bit = data.draw(st.integers(0, len(parts) - 1)), data.draw(st.integers(0, 255))
    parts[which] = (int.from_bytes(parts[which]) ^ 1 << bit).to_bytes(32)
    with pytest.raises(ProofError):
        tree.verify_inclusion(parts[0], index, size, parts[2:], parts[1])


@pytest.mark.parametrize("size", [-1, 2**63])
def test_sizes_out_of_range_are_refused(store: Store, size: int) -> None:
    for call in (
        lambda: tree.root(size, store.get),
        lambda: tree.inclusion_proof(0, size, store.get),
        lambda: tree.verify_inclusion(bytes(32), 0, size, [], bytes(32)),
        lambda: tree.verify_consistency(1, bytes(32), size, bytes(32), []),
        lambda: list(tree.append(size, [bytes(32)], store.get)),
    ):
        with pytest.raises(InputError):
            call()


def test_hashes_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match="32 bytes"):
        tree.verify_inclusion(bytes(32), 0, 2, [bytes(31)], bytes(32))
    with pytest.raises(InputError, match="32 bytes"):
        tree.verify_consistency(1, bytes(32), 2, bytes(33), [bytes(32)])


def test_a_store_that_does_not_have_a_hash_is_an_error_and_not_an_empty_tree(store: Store) -> None:
    with pytest.raises(KeyError):
        tree.root(301, store.get)


def _broken(proof: tuple[bytes, ...]) -> list[list[bytes]]:
    """Proofs that are too long, too short or in another order."""
    broken = [[*proof, bytes(32)], [bytes(32), *proof]]
    if proof:
        broken += [list(proof[1:]), list(proof[:-1]), [bytes(32), *proof[1:]]]
    if len(set(proof)) > 1:
        broken.append(list(reversed(proof)))
    return broken
