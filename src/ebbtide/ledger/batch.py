"""Batches: what happened to many requests at once, as one entry of the ledger (spec §5).

An entry of kind `request.batch` holds the root of a Merkle tree, hashed as the ledger is (RFC 6962), over one leaf a
request; each leaf is an entry of its own kind, of the same time and clock as the batch. A request's certificate carries
its leaf and the path from there to the root, and nothing of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger import tree
from ebbtide.ledger.leaf import BATCH, Batched, Body, hex_bytes, read_body, requests_of

MAX_BATCH = 8192
"""How many leaves a batch has at most: a path is computed from their hashes, in milliseconds."""
MAX_PATH = 63
"""How many hashes a path has at most: no tree is so high."""


class Tree:
    """The tree over the leaf hashes of one batch."""

    def __init__(self, leaf_hashes: Sequence[bytes]) -> None:
        if not 0 < len(leaf_hashes) <= MAX_BATCH:
            raise InputError(f"a batch of {len(leaf_hashes)} leaves", hint=f"it has 1 to {MAX_BATCH}")
        self._size = len(leaf_hashes)
        self._levels = [run.hashes for run in tree.append(0, leaf_hashes, self._get)]

    @property
    def root(self) -> bytes:
        return tree.root(self._size, self._get)

    def path(self, index: int) -> tuple[bytes, ...]:
        return tree.inclusion_proof(index, self._size, self._get)

    def _get(self, level: int, index: int) -> bytes:
        return self._levels[level][index]


def read_batched(body: Body, batched: Batched | None) -> Body:
    """What an entry says of a request: itself, or of a batch the leaf, which is refused unless the root proves it."""
    if body["kind"] != BATCH:
        if batched is not None:
            raise ProofError("batch of an entry", expected=f"only of kind {BATCH}", found=str(body["kind"]))
        return body
    if batched is None:
        raise ProofError(f"entry of kind {BATCH}", expected="a leaf with its path", found="none")
    match body:
        case {"of": str(of), "count": count, "root": str(root)} if type(count) is int:
            leaf_hash = tree.leaf_hash(batched.leaf)
            tree.verify_inclusion(leaf_hash, batched.leaf_index, count, batched.path, hex_bytes(root))
            said = read_body(batched.leaf)
            for key, expected in (("kind", of), ("at", body["at"]), ("simulated", body.get("simulated"))):
                if said.get(key) != expected:
                    raise ProofError(f"{key} of a leaf in a batch", expected=str(expected), found=str(said.get(key)))
            if len(requests_of(said) or ()) != 1:
                raise ProofError("leaf in a batch", expected="of one request", found="of none, or of several")
            return said
    raise InputError(f"a {BATCH} entry without of, count and root", hint="see `batch.py`")
