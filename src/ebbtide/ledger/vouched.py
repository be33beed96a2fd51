"""The log held against what is known without its database (spec §5): trust never comes from the ledger itself.

1. The origin is the project's, where it has set one.
2. The key that signs now lies in the key folder. A ledger that was replaced whole, under a key of its own, names
   another one.
3. The last checkpoint is signed by a key of that folder, and every copy outside, of any of these keys, is continued.
   Where a copy should be and is none, a person says once that this host may begin (`ledger checkpoint --adopt`).
4. Every entry was appended by this signer, or is covered by such a checkpoint. One that nobody appended is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ebbtide.errors import InputError, NotAppendedError, ProofError, RefusedError
from ebbtide.ledger import tree
from ebbtide.ledger.entries import parse_entry
from ebbtide.ledger.frontier import Appended, Frontier
from ebbtide.ledger.home import Home
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import Checkpoint, Note, VerifierKey
from ebbtide.ledger.outside import OutsideCopy, check_continues, check_root


@dataclass(frozen=True, slots=True)
class Outside:
    """What is known of a ledger without its database, as it was at one moment."""

    home: Home
    keys: frozenset[VerifierKey]
    copies: Mapping[OutsideCopy, Note]
    appended: Mapping[str, Appended]

    @classmethod
    def read(cls, home: Home) -> Outside:
        """Read keys, copies and frontiers. What is there and cannot be read is an error."""
        keys = frozenset(signer.key for signer in home.signers())
        copies = {copy: note for copy in home.copies(keys) if (note := copy.read())}
        appended = {origin: home.frontier(origin).read() for origin in {key.name for key in keys}}
        return cls(home, keys, copies, appended)

    def known_to(self, trust: Trust) -> dict[OutsideCopy, Note]:
        """Every copy that a ledger of these keys must agree with."""
        # A key that was rotated may have left the folder; its copy stays as it was.
        old = self.home.copies(trusted.key for trusted in trust.ledger) - self.copies.keys()
        return {**self.copies, **{copy: note for copy in old if (note := copy.read())}}

    def here(self, trust: Trust) -> Trust:
        """Of these keys the ones that lie in the key folder."""
        return Trust(tuple(trusted for trusted in trust.ledger if trusted.key in self.keys))


def check_origin(origin: str, home: Home) -> None:
    """Refuse a ledger that is not the project's."""
    if home.origin not in (None, origin):
        raise InputError(
            f"ledger.origin is {home.origin}, but this ledger is {origin}",
            hint=f"an origin is set once: write `origin: {origin}` again, or begin with a new state",
        )


def check_key(present: VerifierKey, outside: Outside) -> None:
    """Refuse a ledger that another key signs than those of the key folder."""
    if present not in outside.keys:
        raise RefusedError(
            f"the ledger says that {present.encode()} signs it, which is no key in {outside.home.keys.path}",
            hint="its key is missing here, or the ledger was replaced: bring the key from where it signs",
        )


def check_signed(log: LedgerLog, outside: Outside, *, adopting: bool = False) -> Checkpoint | None:
    """Refuse a log that is not the project's, or not what was signed before; gives the last checkpoint of it."""
    home = outside.home
    trust = log.trust()
    check_origin(trust.origin, home)
    check_key(trust.ledger[-1].key, outside)
    signed = None
    if note := log.checkpoint():
        signed = check_continues(log, note, outside.here(trust), whence="its last checkpoint")
    copies = outside.known_to(trust)
    for copy, note in copies.items():
        check_continues(log, note, trust, whence=f"the copy at {copy.path}")
    if not adopting:
        check_copy_there(trust, home, copies)
    return signed


def check_copy_there(trust: Trust, home: Home, copies: Iterable[OutsideCopy]) -> None:
    """Refuse where no copy is that could tell a restored or replaced ledger from the real one."""
    wanted = {home.copy(trusted.key) for trusted in trust.ledger}
    if wanted.isdisjoint(copies):
        raise RefusedError(
            f"there is no copy of the last checkpoint at {home.copy(trust.ledger[-1].key).path}",
            hint="on a new host, or under another HOME, run `ebbtide ledger audit`, then once "
            "`ebbtide ledger checkpoint --adopt`; `ledger.checkpoint` names one place for all of them",
        )


def check_appended(
    log: LedgerLog, appended: Appended, signed: Checkpoint | None, *, also: Iterable[Frontier] = ()
) -> None:
    """Refuse unless every entry was appended by this signer, or is covered by the checkpoint."""
    certain = appended.certain
    check_root(log, certain.size, certain.root, whence="what was appended here")
    known = known_size(log, [*appended.frontiers(), *also], signed)
    if (first := log.first_row(known)) is not None:
        raise NotAppendedError(first, log.size - 1)


def known_size(log: LedgerLog, frontiers: Iterable[Frontier], signed: Checkpoint | None) -> int:
    """How much of the log these vouch for."""
    size = log.size
    held = [
        frontier.size for frontier in frontiers if frontier.size <= size and log.root(frontier.size) == frontier.root
    ]
    return max(0, *held, signed.size if signed else 0)


def take_over(log: LedgerLog, appended: Appended, signed: Checkpoint | None, up_to: int) -> tuple[int, Frontier]:
    """The frontier up to a size that a person vouches for, and where what was known before ended.

    Every entry between is read and hashed again; the stored hashes over them must be theirs.
    """
    if up_to != log.size:
        raise RefusedError(f"the ledger has {log.size} entries, not {up_to}", hint="look at them again")
    check_root(log, appended.certain.size, appended.certain.root, whence="what was appended here")
    known = known_size(log, appended.frontiers(), signed)
    leaves: list[bytes] = []
    for index, leaf_hash, body in log.rows(known, up_to):
        if index != known + len(leaves) or body is None:
            raise ProofError(f"entry {known + len(leaves)}", expected="a body", found="none")
        parse_entry(body)
        if (found := tree.leaf_hash(body)) != leaf_hash:
            raise ProofError(f"body of entry {index}", expected=f"leaf hash {leaf_hash.hex()}", found=found.hex())
        leaves.append(leaf_hash)
    grown, _ = Frontier.read(known, log.get).append(leaves)
    if grown.size != up_to or grown != log.frontier():
        raise ProofError("stored hashes", expected="those of the entries", found="others")
    return known, grown
