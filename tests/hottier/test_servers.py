"""A log's positions mean something on one server and timeline only: a replica, and one that was promoted (spec §6)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from ebbtide.errors import UnreadableError
from tests.cli.command import ebbtide
from tests.hottier.conftest import LOGICAL
from tests.hottier.tier import POLICY, TABLE, Hot
from tests.state.postgres import Server, start_replica

_PROVEN = datetime(2024, 1, 10, 12, tzinfo=UTC)


@pytest.fixture
def proven(hot: Hot) -> Hot:
    """Two chunks that are proven durable on the primary."""
    hot.fill(1, 2).added()
    assert hot.run(_PROVEN).tiered == ("m_1", "m_2")
    return hot


@pytest.fixture
def replica(logical_server: Server, proven: Hot) -> Iterator[Server]:
    server = start_replica(logical_server, *LOGICAL)
    proven.dsn = proven.dsn.replace(str(logical_server.folder), str(server.folder))
    proven.write(POLICY)
    yield server
    server.stop()


def test_a_server_in_recovery_takes_no_chunks_and_a_promoted_one_is_another_server(
    proven: Hot, replica: Server
) -> None:
    before = proven.in_lake()
    assert replica.process.poll() is None
    result = proven.run()
    assert "it is in recovery: a replica takes no chunks (name the primary)" in result.errors[0]
    assert (result.dropped, ebbtide("tier", "sync", cwd=proven.root).returncode) == ((), 4)
    with proven.tide as tide, pytest.raises(UnreadableError, match="in recovery"):
        tide.tier.resync(TABLE)
    assert proven.status().mirror == "STREAMING"  # nothing is wrong with the primary

    with psycopg.connect(proven.dsn, autocommit=True) as there:
        assert there.execute("SELECT pg_promote()").fetchone() == (True,)
        there.execute("INSERT INTO m VALUES (1, '2024-01-02 10:00+00', 'after it', 1)")
        assert proven.run().mirror == "DEGRADED"
        assert "was promoted" in proven.status().because
        chunks = there.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'm'::regclass").fetchone()
        assert chunks is not None
        assert chunks[0] >= 4
        assert proven.in_lake() == before
        with proven.tide as tide:
            tide.tier.resync(TABLE)
        assert {"m_1", "m_2"} <= set(proven.run().dropped)
        assert there.execute("SELECT count(*) FROM m").fetchone() == (0,)
    assert len(proven.in_lake()) == len(before) + 1
