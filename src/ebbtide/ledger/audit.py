"""The audit: the whole database against everything that was ever signed (spec §5).

Nothing stored is believed. Every leaf is hashed again from its body, every subtree and every root from the leaves; then

1. indexes are dense, bodies hash to their leaves, and say what an entry of their kind says;
2. a body is missing only where an entry of the log says that it was pruned;
3. stored subtree hashes, acts, keys, attachments, and what is kept of requests (`audit_requests.py`) are those that
   follow from the entries;
4. every checkpoint is signed by a key that was trusted at its size and has the root of that many leaves, so each later
   one continues each earlier one;
5. every copy outside is such a checkpoint too, and the database's last one is not older;
6. origin, keys and appends are those that are known without the database (`audit_outside.py`);
7. holds, unmarks, marks and requests of the state are what the entries say of them (`state_audit.py`).

A finding names the row, with what was expected and what was found. Where a leaf was replaced together with its hash,
no single row is wrong by itself: the finding then names the entries that one checkpoint signed and the one before did
not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import select

from ebbtide.errors import EbbtideError
from ebbtide.ledger.attachments import attachment, kept
from ebbtide.ledger.audit_outside import read_outside, vouched_findings
from ebbtide.ledger.audit_requests import request_findings
from ebbtide.ledger.keys import Trust, TrustedKey
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import Note, VerifierKey
from ebbtide.ledger.recompute import Mismatch, Recomputed, read_entries, span, uncovered
from ebbtide.ledger.state_audit import compare_state
from ebbtide.ledger.vouched import Outside
from ebbtide.state.reader import StateReader
from ebbtide.state.tables import ledger_acts, ledger_entries, ledger_keys, ledger_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit read and found. Nothing read means no."""

    entries: int
    checkpoints: int
    attachments: int
    pruned: int
    unsigned: int
    """Entries after the last checkpoint: a writer died before it was signed. Signing again covers them."""
    copies: tuple[str, ...]
    """Where copies outside were found."""
    findings: tuple[Mismatch, ...]

    def __bool__(self) -> bool:
        return self.entries > 0 and self.checkpoints > 0 and not self.findings


def audit(ledger: Ledger) -> AuditReport:
    """Read everything, believe nothing, name what is wrong."""
    # Before the snapshot: what is outside by then is in the database already.
    outside, unread = read_outside(ledger.home)
    with ledger.database.reader() as state:
        since, _ = read_outside(ledger.home)
        log, truth = LedgerLog(state.connection), Recomputed()
        checkpoints = dict(log.checkpoints())
        findings = [
            *unread,
            *read_entries(state, log, truth, {*checkpoints}),
            *_pruned(state, truth),
            *_nodes(state, truth),
            *_rows(state, truth),
            *request_findings(state, truth),
            *_attachments(state, truth),
            *compare_state(state, log),
        ]
        copies: list[str] = []
        try:
            trust = _trust(truth)
        except EbbtideError as error:
            findings.append(Mismatch("keys of the ledger", "those of its entries", error.message))
        else:
            findings += _checkpoints(log.size, truth, trust, checkpoints)
            if outside:
                findings += _copies(outside, log, trust, checkpoints, copies)
                findings += vouched_findings(log, outside, since or outside, trust)
        return AuditReport(
            entries=log.size,
            checkpoints=len(checkpoints),
            attachments=len(kept(state.connection)),
            pruned=len(truth.missing),
            unsigned=max(0, log.size - max(checkpoints, default=0)),
            copies=tuple(copies),
            findings=tuple(findings),
        )


def _pruned(state: StateReader, truth: Recomputed) -> Iterator[Mismatch]:
    for index in uncovered(truth.missing, truth.pruned):
        yield Mismatch(f"body of entry {index}", "a body, for no entry says that it was pruned", "none")
    for item in truth.pruned:
        query = select(ledger_entries.c.idx).where(ledger_entries.c.idx.between(item.first, item.last))
        for index in state.connection.execute(query.where(ledger_entries.c.body.is_not(None))).scalars():
            yield Mismatch(f"body of entry {index}", "none, for it was pruned", "a body")


def _nodes(state: StateReader, truth: Recomputed) -> Iterator[Mismatch]:
    stored = {(row.height, row.idx): row.hash for row in state.connection.execute(select(ledger_nodes))}
    for place in sorted(truth.nodes.keys() | stored.keys(), key=str):
        expected, found = truth.nodes.get(place), stored.get(place)
        height, index = place
        if expected is None and truth.end is not None and 0 <= height < 63 and (index + 1) << height > truth.end:
            continue
        if expected != found:
            where = f"stored hash {index} of height {height}"
            if expected is not None:
                where += f", over {span(index << height, ((index + 1) << height) - 1)}"
            yield Mismatch(where, _hex(expected), _hex(found))


def _rows(state: StateReader, truth: Recomputed) -> Iterator[Mismatch]:
    keys = {row.entry: row.key for row in state.connection.execute(select(ledger_keys))}
    expected_keys = dict(truth.keys)
    for entry in sorted(keys.keys() | expected_keys.keys()):
        if keys.get(entry) != expected_keys.get(entry):
            yield Mismatch(f"key of entry {entry}", expected_keys.get(entry, "no row"), keys.get(entry, "no row"))
    acts = {row.act: (row.intent, row.outcome) for row in state.connection.execute(select(ledger_acts))}
    for act in sorted(acts.keys() | truth.acts.keys()):
        if acts.get(act) != truth.acts.get(act):
            yield Mismatch(f"act {act}", _act(truth.acts.get(act)), _act(acts.get(act)))


def _attachments(state: StateReader, truth: Recomputed) -> Iterator[Mismatch]:
    stored = kept(state.connection)
    for digest in sorted(truth.attached - stored):
        yield Mismatch(f"attachment {digest}", "kept, for an entry names it", "none")
    for digest in sorted(stored):
        try:
            for _ in attachment(state.connection, digest):
                pass
        except EbbtideError as error:
            yield Mismatch(f"attachment {digest}", "its content", error.message)


def _trust(truth: Recomputed) -> Trust:
    """The keys as the entries have them, whatever the table of keys says."""
    if not truth.keys:
        raise EbbtideError("no entry names a key")
    ends: list[int | None] = [*(index + 1 for index, _ in truth.keys[1:]), None]
    return Trust(tuple(TrustedKey(VerifierKey.parse(key), end) for (_, key), end in zip(truth.keys, ends, strict=True)))


def _checkpoints(size: int, truth: Recomputed, trust: Trust, checkpoints: dict[int, bytes]) -> Iterator[Mismatch]:
    turns = {old.until: {old.key, new.key} for old, new in pairwise(trust.ledger)}
    good = 0
    for at, data in sorted(checkpoints.items()):
        where = f"checkpoint {at}"
        try:
            checkpoint, verified = trust.verify(Note.parse(data if isinstance(data, bytes) else b""))
        except EbbtideError as error:
            yield Mismatch(where, "a note signed by the ledger", error.message)
            continue
        if checkpoint.size != at:
            yield Mismatch(where, f"size {at}", f"size {checkpoint.size}")
        elif at > size:
            yield Mismatch(span(size, at - 1), f"a row, for {where} signed it", "none")
        elif (found := truth.roots.get(at)) is None:
            yield Mismatch(f"{where}, over {span(good, at - 1)}", f"root hash {checkpoint.root.hex()}", "a gap")
        elif found != checkpoint.root:
            yield Mismatch(f"{where}, over {span(good, at - 1)}", f"root hash {checkpoint.root.hex()}", found.hex())
        else:
            good = at
        if not turns.get(at, set()) <= {item.key for item in verified}:
            yield Mismatch(where, "signatures of the old and the new key", "not both")
    for turn in turns:
        if turn is not None and turn not in checkpoints and turn < max(checkpoints, default=0):
            yield Mismatch(f"checkpoint {turn}", "a row, for a key was rotated there", "none")


def _copies(
    outside: Outside, log: LedgerLog, trust: Trust, checkpoints: dict[int, bytes], seen: list[str]
) -> Iterator[Mismatch]:
    last = max(checkpoints, default=0)
    try:
        known = outside.known_to(trust)
    except EbbtideError as error:
        yield Mismatch("copies outside", "what can be read", error.message)
        return
    for copy, note in sorted(known.items(), key=str):
        where = f"copy at {copy.path}"
        try:
            seen.append(str(copy.path))
            checkpoint, _ = trust.verify(note)
            if checkpoint.size > log.size:
                yield Mismatch(span(log.size, checkpoint.size - 1), f"a row, for the {where} signed it", "none")
                continue
            root = log.root(checkpoint.size)
        except EbbtideError as error:
            yield Mismatch(where, "a checkpoint of this ledger", error.message)
            continue
        if root != checkpoint.root:
            where = f"{where}, over {span(0, checkpoint.size - 1)}"
            yield Mismatch(where, f"root hash {checkpoint.root.hex()}", root.hex())
        if checkpoint.size > last:
            yield Mismatch("last checkpoint", f"at least {checkpoint.size}, by the {where}", str(last))


def _act(found: tuple[int | None, int | None] | None) -> str:
    if found is None:
        return "no row"
    intent, outcome = found
    return f"intent {'none' if intent is None else intent}, outcome {'none' if outcome is None else outcome}"


def _hex(found: object) -> str:
    return found.hex() if isinstance(found, bytes) else "none" if found is None else "something else"
