"""Entries of every kind, for tests that must not miss one."""

from __future__ import annotations

from datetime import UTC, date, datetime

from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import (
    BodiesPruned,
    CatalogDeclared,
    DatasetIgnored,
    Files,
    FolderCondemned,
    HoldPlaced,
    HoldReleased,
    Indexes,
    Intent,
    KeyRotated,
    LedgerCreated,
    Marked,
    MarkRebound,
    MarkSentBack,
    Outcome,
    Unmarked,
    UnmarkReleased,
    salted,
)
from ebbtide.ledger.request_entries import (
    CertificateKey,
    EarlierEntry,
    Excepted,
    RequestBatch,
    RequestCertified,
    RequestListed,
    RequestMoved,
    RequestReceived,
    Verified,
)

AT = datetime(2026, 11, 15, 9, 0, 0, 7, tzinfo=UTC)
FILES = Files(count=2, bytes=10, digest="sha256:" + "0" * 64)


def said(number: int = 0, at: datetime = AT) -> Verified:
    """An entry that stands for itself: no row of the state is what it says."""
    return Verified(
        at=at, request=f"{number:032x}", place="lake.a.t", scanner="1", inventory="i", commitments=("aa",), found=0
    )


def hold(number: int = 0, at: datetime = AT) -> HoldPlaced:
    """What the ledger says of a hold, which is a row of the state as well."""
    return HoldPlaced(
        at=at,
        hold=f"{number:032x}",
        scope="partitions",
        owner="actor-1",
        reason=salted(b"s", "case 7"),
        dataset="lake.a.t",
        first_day=date(2026, 1, 1),
        last_day=date(2026, 1, 31),
    )


def intent(act: str, at: datetime = AT, files: Files | None = None) -> Intent:
    return Intent(at=at, act=act, verb="sweep", dataset="lake.a.t", object=str(2**63 - 1), fence=7, files=files)


def outcome(act: str, at: datetime = AT, result: str = "done") -> Outcome:
    return Outcome(at=at, act=act, result=result, version="9223372036854775806")


ALL: tuple[Entry, ...] = (
    LedgerCreated(at=AT, origin="example.org/acme", key="k"),
    KeyRotated(at=AT, old="k", new="l"),
    BodiesPruned(at=AT, before=AT, ranges=(Indexes(first=1, last=2), Indexes(first=4, last=4)), batches=(7,)),
    Marked(
        at=AT,
        mark="m",
        run="r",
        dataset="lake.a.ü",
        target="partitions",
        object="0/d=2026-01-01",
        policy="p",
        because=salted(b"s", "older than 90d"),
        fingerprint="sha256:aa",
        grace_until=AT,
        files=FILES.digest,
    ),
    MarkSentBack(at=AT, mark="m", run="r", because=salted(b"s", "a late write")),
    MarkRebound(at=AT, mark="m", run="r", act="a", fingerprint=salted(b"s", "f")),
    Unmarked(at=AT, unmark="u", dataset="d", object="1", actor="a", reason="r", until=AT, marks=("m", "n")),
    UnmarkReleased(at=AT, unmark="u", actor="a"),
    hold(),
    HoldPlaced(at=AT, hold="h", scope="subject", owner="a", reason="r", commitments=("aa", "bb")),
    HoldReleased(at=AT, hold="h", actor="a"),
    FolderCondemned(at=AT, condemned="c", dataset="lake.a.t", path="file:///lake/a/t", actor="a", files=3, bytes=9),
    CatalogDeclared(at=AT, declaration="d", catalog="lake", actor="a", ended=True),
    DatasetIgnored(at=AT, declaration="d", dataset="lake.a.t", actor="a", reason=salted(b"s", "lost"), until=AT),
    intent("a", files=FILES),
    Intent(
        at=AT, act="b", verb="delete", requests=("r1", "r2"), version="1", metadata="sha256:cc", forced_by="actor-2"
    ),
    Outcome(
        at=AT, act="a", result="partial", removed=FILES, left=FILES, findings=1, because="hmac-sha256:dd", metadata="m"
    ),
    RequestReceived(at=AT, request="r", law="gdpr", commitments=("aa",), received_at=AT, due_at=AT),
    RequestMoved(at=AT, request="r", state="planned", deadline=AT),
    Verified(at=AT, request="r", place="lake.a.t", scanner="1", inventory="i", commitments=("aa",), found=0, unread=1),
    Verified(
        at=AT,
        request="r",
        place="all",
        scanner="1",
        inventory=FILES.digest,
        commitments=("aa",),
        found=0,
        unread=1,
        objects=2,
        bytes=10,
        untold=FILES.digest,
    ),
    RequestBatch(at=AT, of="request.received", count=2, root="00", attachments=(FILES.digest,)),
    CertificateKey(at=AT, key="k"),
    RequestListed(at=AT, request="r", entries=(EarlierEntry(index=1, leaf="00"),)),
    RequestCertified(
        at=AT, request="r", state="certified", commitments=("aa",), entries=(EarlierEntry(index=1, leaf="00"),)
    ),
    RequestCertified(
        at=AT,
        request="r",
        state="certified with exceptions",
        commitments=("aa",),
        entries=(EarlierEntry(index=1, leaf="00"),),
        exceptions=(
            Excepted(place="lake.a.t", outcome="retained", basis="tax", until=date(2030, 1, 1)),
            Excepted(place="all", outcome="not readable", basis="1 object"),
        ),
    ),
)
