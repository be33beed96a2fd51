"""A plain table becomes a partitioned one while it is in use, with all that it had, or stays as it was (spec §6)."""

from __future__ import annotations

import pytest

from ebbtide.app import tier_copy
from ebbtide.errors import ConflictError, InputError, RefusedError, UnreadableError
from ebbtide.hottier import repartition
from tests.hottier.tier import COLUMNS, TABLE, Hot

_HAS = """
SELECT (SELECT relkind FROM pg_class WHERE oid = 'm'::regclass)::text,
       ARRAY(SELECT indexname::text FROM pg_indexes WHERE tablename = 'm' ORDER BY 1),
       ARRAY(SELECT tgname::text || tgenabled::text FROM pg_trigger
             WHERE tgrelid = 'm'::regclass AND NOT tgisinternal ORDER BY 1),
       ARRAY(SELECT conname::text || contype::text FROM pg_constraint
             WHERE conrelid = 'm'::regclass AND contype <> 'n' ORDER BY 1),
       has_table_privilege('reader_of_m', 'm', 'SELECT'), has_column_privilege('reader_of_m', 'm', 'v', 'UPDATE'),
       EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = 'm'::regclass
               AND prpubid = (SELECT oid FROM pg_publication WHERE pubname = 'theirs')),
       pg_get_serial_sequence('m', 'n'), obj_description('m'::regclass, 'pg_class'), relrowsecurity
FROM pg_class WHERE oid = 'm'::regclass
"""


@pytest.fixture
def plain(hot: Hot) -> Hot:
    """The table without partitions, with two days of rows."""
    hot.sql.execute("DROP TABLE m")
    hot.sql.execute(f"CREATE TABLE m ({COLUMNS})")
    return hot.fill(1, 2)


def test_all_that_a_table_had_is_carried_along_and_a_dry_run_changes_nothing(plain: Hot) -> None:
    sql = plain.sql
    for text in (
        "DO $$ BEGIN CREATE ROLE reader_of_m; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        "ALTER TABLE m ALTER id ADD GENERATED ALWAYS AS IDENTITY (START WITH 5000)",
        "CREATE SEQUENCE s OWNED BY m.n", "ALTER TABLE m ALTER n SET DEFAULT nextval('s')",
        "CREATE INDEX by_v ON m (v) WHERE n > 1", "ALTER TABLE m ADD CONSTRAINT sane CHECK (n < 1e6)",
        "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v || '!';"
        " RETURN NEW; END $$",
        "CREATE TRIGGER stamped BEFORE INSERT ON m FOR EACH ROW EXECUTE FUNCTION stamp()",
        "ALTER TABLE m ENABLE ALWAYS TRIGGER stamped",
        "GRANT SELECT ON m TO reader_of_m", "GRANT UPDATE (v) ON m TO reader_of_m",
        "CREATE PUBLICATION theirs FOR TABLE m", "COMMENT ON TABLE m IS 'what was measured'",
        "INSERT INTO m (at, v) VALUES ('2024-01-03 01:00+00', 'x')",
    ):  # fmt: skip
        sql.execute(text)
    before, rows = sql.execute(_HAS).fetchone(), plain.here()
    assert before is not None
    with plain.tide as tide:
        tide.tier.init()
        would = tide.tier.add(TABLE, partition=True, dry_run=True)
        assert sql.execute(_HAS).fetchone() == before
        done = tide.tier.add(TABLE, partition=True)
    assert done.statements == would.statements[:-1]  # the last of a dry run is the slot
    assert sql.execute(_HAS).fetchone() == ("p", *before[1:])
    assert plain.here() == rows == plain.in_lake()

    sql.execute("INSERT INTO m (at, v) VALUES ('2024-01-03 02:00+00', 'y')")
    (new,) = sql.execute("SELECT id, v, n FROM m WHERE v LIKE 'y%'").fetchall()
    assert (new[0], new[1], new[2]) == (5001, "y!", 2)
    assert plain.sync().mirror == "STREAMING"
    assert plain.in_lake() == plain.here()
    (wide,) = (chunk for chunk in plain.status().chunks if chunk.name == "m_before")
    assert (wide.first, wide.state) == (None, "active")


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("CREATE UNIQUE INDEX one ON m (v, id)", "the unique index one does not hold"),
        ("CREATE VIEW seen AS SELECT * FROM m", "the view seen reads it"),
        ("CREATE RULE r AS ON DELETE TO m DO INSTEAD NOTHING", "it has rules"),
        ("ALTER TABLE m SET UNLOGGED", "it is unlogged"),
        ("CREATE TABLE child (id bigint, at timestamptz, FOREIGN KEY (id, at) REFERENCES m)", "points to it"),
        ("CREATE TABLE m_before (x int)", "there is a table m_before already"),
        ("ALTER TABLE m ENABLE ROW LEVEL SECURITY", "row-level security"),
    ],
)
def test_what_cannot_be_carried_along_is_named_and_nothing_is_changed(plain: Hot, made: str, why: str) -> None:
    plain.sql.execute(made)
    with plain.tide as tide:
        tide.tier.init()
        with pytest.raises(RefusedError, match=why):
            tide.tier.add(TABLE, partition=True)
    assert plain.sql.execute("SELECT relkind::text FROM pg_class WHERE oid = 'm'::regclass").fetchone() == ("r",)


def test_a_table_that_is_in_use_stays_as_it_is_and_a_promise_that_is_left_is_told(
    plain: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = plain.another()
    steps = repartition._exchanged

    def busy(*args: object) -> None:
        reader.execute("SELECT 1 FROM m LIMIT 1")
        steps(*args)  # type: ignore[arg-type]

    with plain.tide as tide:
        tide.tier.init()
        with monkeypatch.context() as patch:
            patch.setattr(repartition, "_WAIT", "100ms")
            patch.setattr(repartition, "_TRIES", 1)
            patch.setattr(repartition, "_exchanged", busy)
            with pytest.raises(ConflictError, match="still promises") as told:
                tide.tier.add(TABLE, partition=True)
        assert "DROP CONSTRAINT" in str(told.value.hint)
        assert plain.sql.execute("SELECT relkind::text FROM pg_class WHERE oid = 'm'::regclass").fetchone() == ("r",)
        reader.rollback()
        tide.tier.add(TABLE, partition=True)  # begins anew
    assert plain.sql.execute("SELECT relkind::text FROM pg_class WHERE oid = 'm'::regclass").fetchone() == ("p",)
    assert plain.sql.execute("SELECT count(*) FROM pg_constraint WHERE conname = 'ebbtide_range'").fetchone() == (0,)
    assert plain.here() == plain.in_lake()


def _kind(hot: Hot) -> str:
    row = hot.sql.execute("SELECT relkind::text FROM pg_class WHERE oid = 'm'::regclass").fetchone()
    assert row is not None
    return str(row[0])


def test_a_cold_table_that_cannot_be_refuses_before_the_exchange_and_what_fails_after_it_says_so(
    plain: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(*_: object, **__: object) -> None:
        raise UnreadableError("the lake", "no room")

    plain.write(plain.policy.replace("lake.hot.m", "leak.hot.m"))
    with plain.tide as tide:
        tide.tier.init()
        with pytest.raises(InputError, match="no catalog 'leak'"):
            tide.tier.add(TABLE, partition=True)
    assert _kind(plain) == "r"
    plain.write(plain.policy)
    with plain.tide as tide:
        with monkeypatch.context() as patch:
            patch.setattr(tier_copy, "rows_of", failed)
            with pytest.raises(UnreadableError) as told:
                tide.tier.add(TABLE, partition=True)
        assert "is partitioned by now, and takes rows of before" in str(told.value.hint)
        assert f"`ebbtide tier add {TABLE}` again" in str(told.value.hint)
        assert _kind(plain) == "p"
        tide.tier.add(TABLE)
    assert plain.here() == plain.in_lake()
