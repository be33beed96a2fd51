"""What cannot be tiered is refused in one line with a hint, and nothing changes anywhere (spec §6)."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from ebbtide.errors import EbbtideError, UnreadableError
from tests.cli.command import ebbtide
from tests.hottier.tier import COLUMNS, TABLE, Hot
from tests.state.postgres import Server, start_server

_LEFT = (
    "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_replication_slots"
    " WHERE database = current_database()), (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_trigger)"
)
_POLICY = "  - {{name: {name}, time: {time}, chunk: 1d, tier_after: 7d, drop_after: 10d, cold: lake.hot.m, ahead: 1}}\n"
_PLAIN = "CREATE TABLE t (id bigint, at timestamptz, v text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)"


@pytest.mark.parametrize(
    ("made", "name", "time", "code", "why"),
    [
        ("SELECT 1", "public.nobody", "at", 2, "no table public.nobody on the server"),
        ("CREATE VIEW t AS SELECT * FROM m", "public.t", "at", 2, "public.t is not a table"),
        ("SELECT 1", "public.m_1", "at", 2, "is a partition of another table"),
        ("SELECT 1", "public.m", "seen", 2, "has no time column 'seen'"),
        ("SELECT 1", "public.m", "v", 2, "has no time column 'v'"),
        ("CREATE TABLE t (id bigint, at timestamptz) PARTITION BY RANGE (at)", "public.t", "at", 2, "no primary key"),
        ("CREATE TABLE t (id bigint, at timestamptz, PRIMARY KEY (id, at)) PARTITION BY LIST (at)", "public.t", "at", 2,
         "is not partitioned by ranges of 'at' alone"),
        ("CREATE TABLE t (id bigint, at timestamptz, PRIMARY KEY (id, at))", "public.t", "at", 2, "is not partitioned"),
        (f"{_PLAIN}; CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO ('2024-01-01')"
         " PARTITION BY LIST (id)", "public.t", "at", 3, "t_1 is partitioned once more"),
        (f"{_PLAIN}; CREATE UNLOGGED TABLE t_1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO ('2024-01-01')",
         "public.t", "at", 3, "t_1 is unlogged"),
        (f"{_PLAIN}; CREATE TABLE t_1 PARTITION OF t DEFAULT", "public.t", "at", 3, "t_1 is a default partition"),
        ("CREATE RULE r AS ON DELETE TO m DO INSTEAD NOTHING", "public.m", "at", 3, "m has rules"),
        ("CREATE TABLE c (id bigint, at timestamptz, FOREIGN KEY (id, at) REFERENCES m)", "public.m", "at", 3,
         "m is what a foreign key points to"),
        ("ALTER TABLE m ADD x json", "public.m", "at", 3, "x of type json has no canonical form"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused_and_nothing_is_changed(
    hot: Hot, made: str, name: str, time: str, code: int, why: str
) -> None:
    with hot.tide as tide:
        tide.tier.init()
    for text in made.split("; "):
        hot.sql.execute(text)
    hot.write(_POLICY.format(name=name, time=time))
    before = hot.sql.execute(_LEFT).fetchone()
    with hot.tide as tide:
        for dry_run in (True, False):
            with pytest.raises(EbbtideError) as refused:
                tide.tier.add(name, dry_run=dry_run)
            assert why in refused.value.message
            assert "\n" not in refused.value.message
            assert refused.value.hint
            assert refused.value.exit_code == code
        assert tide.tier.status()[0].mirror == "OFF"
    assert hot.sql.execute(_LEFT).fetchone() == before
    assert not (hot.root / "lake").exists()


@pytest.fixture(scope="module")
def locked() -> Iterator[Server]:
    """A server that asks for passwords."""
    server = start_server("wal_level=logical")
    with psycopg.connect(f"host={server.folder} user=postgres dbname=postgres", autocommit=True) as there:
        there.execute("CREATE ROLE ann LOGIN PASSWORD 'right-Horse'")
        there.execute(f"CREATE TABLE m ({COLUMNS}) PARTITION BY RANGE (at)")
    path = server.folder / "data" / "pg_hba.conf"
    path.write_text("local all postgres trust\nlocal all all scram-sha-256\n", encoding="utf-8")
    with psycopg.connect(f"host={server.folder} user=postgres dbname=postgres", autocommit=True) as there:
        there.execute("SELECT pg_reload_conf()")
    yield server
    server.stop()


def test_a_wrong_password_is_told_and_never_printed(hot: Hot, locked: Server) -> None:
    hot.dsn = f"host={locked.folder} user=ann password=wrong-Staple dbname=postgres"
    hot.write(hot.policy)
    with hot.tide as tide:
        with pytest.raises(UnreadableError, match="it refuses the password") as first:
            tide.tier.init()
        with pytest.raises(UnreadableError, match="it refuses the password") as second:
            tide.tier.add(TABLE, partition=True, dry_run=True)
    assert not [each for each in (first, second) if "Staple" in str(each.value) + str(each.value.hint)]
    told = ebbtide("--log-file", str(hot.root / "log"), "--verbose", "tier", "add", TABLE, cwd=hot.root)
    said = told.stdout + told.stderr + (hot.root / "log").read_text(encoding="utf-8")
    assert (told.returncode, "it refuses the password" in said) == (4, True), said
    assert "Staple" not in said
