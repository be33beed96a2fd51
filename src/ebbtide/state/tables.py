"""The tables as this version of Ebbtide knows them.

`migrations/` makes them; a test keeps the two the same. Ids are text: native ids have 64 bits and more.
The tables of the ledger are here too, because they share the state's transactions (spec §5: intent, hold and unmark
are written together with what they change).
"""

from __future__ import annotations

from sqlalchemy import Column, Index, MetaData, Table, Text

from ebbtide.state.columns import Bytes, Count, Day, Instant, Texts

metadata = MetaData()

version = Table(
    "ebbtide_version",
    metadata,
    Column("id", Count, primary_key=True, autoincrement=False),
    Column("version", Count, nullable=False),
)

actors = Table(
    "actors",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

marks = Table(
    "marks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("because", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("frozen", Text),
    Column("files", Text),
    Column("rows", Count, nullable=False),
    Column("bytes", Count, nullable=False),
    Column("run", Text, nullable=False),
    Column("marked_at", Instant, nullable=False),
    Column("grace_until", Instant, nullable=False),
    Column("state", Text, nullable=False),
    Column("waits_for", Texts, nullable=False),
    Column("closed_at", Instant),
    Column("closed_because", Text),
    Column("salt", Bytes, nullable=False),
    Column("act", Text),
    Column("acted_at", Instant),
    Column("facts", Text),
)
# One open mark an object: marking again finds the first one (spec §1). That index, `marks_open`, is in the migration
# alone: to declare its condition here would load PostgreSQL's dialect for everybody.
Index("marks_object", marks.c.dataset, marks.c.object)

unmarks = Table(
    "unmarks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("salt", Bytes, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("until", Instant),
    Column("released_at", Instant),
    Column("released_by", Text),
)
Index("unmarks_object", unmarks.c.dataset, unmarks.c.object)

holds = Table(
    "holds",
    metadata,
    Column("id", Text, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("dataset", Text),
    Column("first_day", Day),
    Column("last_day", Day),
    Column("commitments", Texts, nullable=False),
    Column("sealed", Bytes),
    Column("owner", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("salt", Bytes, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("released_at", Instant),
    Column("released_by", Text),
)

condemned = Table(
    "condemned",
    metadata,
    Column("id", Text, primary_key=True),
    Column("path", Text, nullable=False, unique=True),
    Column("dataset", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("condemned_at", Instant, nullable=False),
    Column("salt", Bytes, nullable=False),
)

# What an act of the ledger said in keyed forms: the salt, and main's head when it was begun.
acts = Table(
    "acts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("head", Text),
    Column("salt", Bytes, nullable=False),
)

# Acts that wait between two stages: begun, not over, and nothing of theirs died.
paused_acts = Table("paused_acts", metadata, Column("act", Text, primary_key=True))

# The files of an act, in plain words, for as long as a mark may need them, or the act is paused.
act_files = Table(
    "act_files",
    metadata,
    Column("act", Text, primary_key=True),
    Column("part", Count, primary_key=True, autoincrement=False),
    Column("body", Bytes, nullable=False),
)

declarations = Table(
    "declarations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("until", Instant),
    Column("salt", Bytes, nullable=False),
    Column("actor", Text, nullable=False),
    Column("declared_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("ended_by", Text),
)

requests = Table(
    "requests",
    metadata,
    Column("id", Text, primary_key=True),
    Column("law", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("commitments", Texts, nullable=False),
    Column("sealed", Bytes),
    Column("note", Text, nullable=False),
    Column("salt", Bytes, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("due_at", Instant, nullable=False),
    Column("extended_to", Instant),
    Column("updated_at", Instant, nullable=False),
    Column("closed_at", Instant),
    Column("key_slot", Count),
)
Index("requests_key_slot", requests.c.key_slot)
# `requests_left_keys` and `requests_key_files`, which have conditions, are in the migration alone, as `marks_open` is.

# Whom an open request is about, by keyed hashes whose key lies with the requests' keys. They go when it closes.
request_lookups = Table(
    "request_lookups",
    metadata,
    Column("digest", Bytes, primary_key=True),
    Column("request", Text, primary_key=True),
)
Index("request_lookups_request", request_lookups.c.request)

# What becomes of a request's places. Of a place that an act works on, `act` is the last one.
erasure_places = Table(
    "erasure_places",
    metadata,
    Column("request", Text, primary_key=True),
    Column("place", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("because", Text, nullable=False),
    Column("until", Day),
    Column("act", Text),
    Column("updated_at", Instant, nullable=False),
)

# Erasures that let go of files which are not gone yet. Their lists (`act_files`) are kept until they are.
erasure_acts = Table(
    "erasure_acts",
    metadata,
    Column("act", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("free_from", Instant, nullable=False),
    Column("erased", Text),
)

# Whom they are about: places may be said otherwise by a search or a hold while an act waits for readers.
erasure_act_requests = Table(
    "erasure_act_requests",
    metadata,
    Column("act", Text, primary_key=True),
    Column("request", Text, primary_key=True),
)

# Which key those hashes were made with: one row, so that a host with another key is told, and finds nobody by mistake.
lookup_keys = Table(
    "lookup_keys",
    metadata,
    Column("id", Count, primary_key=True, autoincrement=False),
    Column("fingerprint", Bytes, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("verb", Text, nullable=False),
    Column("fence", Count, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("finished_at", Instant),
    Column("exit_code", Count),
    Column("summary", Text),
    Column("actor", Text),
    Column("step", Text),
    Column("done", Count),
    Column("total", Count),
    Column("seen_at", Instant),
    Column("cancel_requested", Text),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("fence", Count, nullable=False),
    Column("holder", Text, nullable=False),
    Column("acquired_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("released_at", Instant),
)

ledger_entries = Table(
    "ledger_entries",
    metadata,
    Column("idx", Count, primary_key=True, autoincrement=False),
    Column("leaf_hash", Bytes, nullable=False),
    # Last, so that reading hashes never touches the overflow pages of long bodies. NULL once it is pruned.
    Column("body", Bytes),
)

# The roots of complete subtrees of 2^4, 2^8, 2^12, … leaves; every hash between them is at most 7 hashings away.
ledger_nodes = Table(
    "ledger_nodes",
    metadata,
    Column("height", Count, primary_key=True, autoincrement=False),
    Column("idx", Count, primary_key=True, autoincrement=False),
    Column("hash", Bytes, nullable=False),
)

ledger_acts = Table(
    "ledger_acts",
    metadata,
    Column("act", Text, primary_key=True),
    Column("intent", Count, nullable=False, unique=True),
    Column("outcome", Count, unique=True),
)

ledger_keys = Table(
    "ledger_keys",
    metadata,
    Column("entry", Count, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
)

ledger_certificate_keys = Table(
    "ledger_certificate_keys",
    metadata,
    Column("entry", Count, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
)

# Which entries a request is made of. Of a batch also its leaves: `place` is then the leaf's index in the batch's tree,
# and a pruned leaf leaves its hash.
ledger_requests = Table(
    "ledger_requests",
    metadata,
    Column("entry", Count, primary_key=True, autoincrement=False),
    Column("place", Count, primary_key=True, autoincrement=False),
    Column("request", Text, nullable=False),
    Column("leaf_hash", Bytes),
    Column("leaf", Bytes),
)
Index("ledger_requests_request", ledger_requests.c.request)

ledger_checkpoints = Table(
    "ledger_checkpoints",
    metadata,
    Column("size", Count, primary_key=True, autoincrement=False),
    Column("note", Bytes, nullable=False),
)

ledger_attachments = Table(
    "ledger_attachments",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("part", Count, primary_key=True, autoincrement=False),
    Column("body", Bytes, nullable=False),
)

# Tables of a PostgreSQL server in front of the lake. Positions are bytes of that server's log.
hot_tables = Table(
    "hot_tables",
    metadata,
    Column("id", Text, primary_key=True),
    Column("cold", Text),
    Column("system", Text, nullable=False),
    Column("timeline", Count, nullable=False),
    Column("slot", Text),
    Column("publication", Text),
    Column("state", Text, nullable=False),
    Column("because", Text, nullable=False),
    Column("position", Count),
    Column("passed", Count),
    Column("lag_bytes", Count),
    Column("retained_bytes", Count),
    Column("confirm", Count),
    Column("confirmed", Count),
    Column("lateness", Count),
    Column("added_at", Instant, nullable=False),
)

hot_chunks = Table(
    "hot_chunks",
    metadata,
    Column("hot_table", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("oid", Count, nullable=False),
    Column("first", Instant),
    Column("last", Instant),
    Column("state", Text, nullable=False),
    Column("sealed", Count),
    Column("changed", Count),
    Column("cold_version", Text),
    Column("rows", Count),
    Column("digest", Text),
    Column("tiered_at", Instant),
    Column("dropped_at", Instant),
    Column("forced_by", Text),
    Column("pinned", Count, nullable=False),
    Column("act", Text),
    Column("waits_for", Texts, nullable=False),
)
