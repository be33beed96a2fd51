"""People in a hot table: found by values of every type, told to no log of the server, and taken out in one go."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest
from pydantic import SecretStr

from ebbtide.app.tier_opened import hot_tables
from ebbtide.config.hottier import HotTable, ServerUrl
from ebbtide.config.subjects import Identities, Subject
from ebbtide.erasure.hot import NO_COLUMN, HotPlace, HotSearch, find_hot, values_of
from ebbtide.errors import UnreadableError
from ebbtide.hottier.people import clean_up, take_out
from ebbtide.hottier.server import connect
from ebbtide.hottier.table import find
from ebbtide.ledger.commitment import Identifier
from ebbtide.model.durations import Duration
from tests.hottier.tier import TABLE, Hot
from tests.state.postgres import start_server

_UUID = "0d7f8a52-8a7e-4b83-9c6e-1f0c2a9d3b11"
_COLUMNS = (
    "id bigint, at timestamptz NOT NULL, v text, n numeric(12,2), small int, who uuid, raw bytea, day date,"
    " PRIMARY KEY (id, at)"
)
_IDENTITIES = Identities(
    {
        "id": Subject("id", "", ()),
        "name": Subject("name", "", (), match="casefold"),
        "mail": Subject("mail", "", (), match="normalised-email"),
        "exact": Subject("exact", "", ()),
    }
)


@pytest.fixture
def people(hot: Hot) -> Hot:
    """Rows of one person in two chunks, told by columns of every type, among rows of others."""
    hot.sql.execute("DROP TABLE m")
    hot.sql.execute(f"CREATE TABLE m ({_COLUMNS}) PARTITION BY RANGE (at)")
    for day in range(1, 4):
        hot.sql.execute(
            f"CREATE TABLE m_{day} PARTITION OF m"
            f" FOR VALUES FROM ('2024-01-0{day} 00:00+00') TO ('2024-01-0{day + 1} 00:00+00')"
        )
    hot.sql.execute(
        "INSERT INTO m (id, at) SELECT g, '2024-01-01 00:00+00'::timestamptz + g * interval '1 minute'"
        " FROM generate_series(1, 60) g"
    )
    rows = [
        (7001, 1, "Straße ", None), (7002, 1, "7300", "7300.00"), (7003, 2, " Ada@Example.ORG ", "73.5"),
        (7004, 2, "ada@example.org", None), (7300, 3, "x", "12.50"),
    ]  # fmt: skip
    for id_, day, text, number in rows:
        hot.sql.execute(
            "INSERT INTO m VALUES"
            " (%s, make_timestamptz(2024, 1, %s, 3, 0, 0, 'UTC'), %s, %s, 73, %s, %s, '2024-02-29')",
            [id_, day, text, number, _UUID, b"\x01\x02"],
        )
    return hot


def _seek(
    hot: Hot, columns: dict[str, tuple[str, ...]], *person: tuple[str, str], with_rows: bool = False
) -> HotSearch:
    place = HotPlace(hot_tables(hot.tide.project)[TABLE], columns)
    who = [[Identifier(type_, value) for type_, value in person]]
    return find_hot([place], who, _IDENTITIES, with_rows=with_rows)


def _counts(found: HotSearch) -> dict[str, int]:
    assert found.missed == ()
    return {each.ref: each.rows for each in found.held.get(0, ())}


def test_values_of_every_type_are_compared_as_the_lake_compares_their_text(people: Hot) -> None:
    def found(column: str, value: str, identity: str = "id") -> dict[str, int]:
        return _counts(_seek(people, {column: (identity,)}, (identity, value)))

    assert found("id", "7300") == {"chunk:m_3": 1}
    assert found("id", "07300") == {}
    assert found("v", "7300") == {"chunk:m_1": 1}
    assert found("n", "7300") == {"chunk:m_1": 1}
    assert found("n", "73.5") == {"chunk:m_2": 1}
    assert found("n", "73.50") == {}
    assert found("small", "73") == {"chunk:m_1": 2, "chunk:m_2": 2, "chunk:m_3": 1}
    assert found("who", _UUID) == found("small", "73")
    assert found("who", _UUID.upper()) == {}
    assert found("day", "2024-02-29") == found("small", "73")
    assert found("raw", "\x01\x02") == found("small", "73")
    assert found("v", "ada@example.org") == {"chunk:m_2": 1}
    assert found("v", "ada@example.org", "name") == {"chunk:m_2": 1}
    assert found("v", "ada@example.org", "mail") == {"chunk:m_2": 2}
    assert found("v", "strasse", "mail") == {"chunk:m_1": 1}
    assert found("v", "strasse", "name") == {}  # a space is a part of it


def test_an_array_is_told_as_a_column_in_which_nobody_can_be_found(people: Hot) -> None:
    people.sql.execute("ALTER TABLE m ADD tags text[], ADD numbers bigint[]")
    people.sql.execute("UPDATE m SET tags = '{x,7300}', numbers = '{7300}' WHERE id = 7001")
    found = _seek(people, {"tags": ("id",), "numbers": ("id",), "id": ("id",)}, ("id", "7300"))
    assert {(each.place, each.because) for each in found.missed} == {
        (f"{TABLE}.tags", NO_COLUMN), (f"{TABLE}.numbers", NO_COLUMN),
    }  # fmt: skip
    assert [each.ref for each in found.held[0]] == ["chunk:m_3"]


def test_a_row_counts_once_however_many_columns_tell_of_it(people: Hot) -> None:
    columns = {"id": ("id",), "v": ("id", "exact"), "n": ("id",), "at": ("id",)}
    found = _seek(people, columns, ("id", "7300"), ("exact", "7300"), with_rows=True)
    assert [(each.ref, each.rows, each.columns) for each in found.held[0]] == [
        ("chunk:m_1", 1, ("n", "v")), ("chunk:m_3", 1, ("id",)),
    ]  # fmt: skip
    assert sorted('"id": 7002' in each.row or '"id": 7300' in each.row for each in found.rows[0]) == [True, True]
    (missed,) = found.missed  # an instant tells nobody apart
    assert (missed.place, missed.failed) == (f"{TABLE}.at", False)


def test_whoever_is_taken_out_is_out_once_and_nobody_else(people: Hot) -> None:
    place = HotPlace(hot_tables(people.tide.project)[TABLE], {"id": ("id",), "v": ("mail",)})
    before = Counter(people.sql.execute("SELECT id FROM m").fetchall())
    values = values_of([[Identifier("id", "7300"), Identifier("mail", "ada@example.org")]])
    with connect(place.table.server) as connection:
        found = find(connection, place.table)
        ways, _ = place.ways(found, _IDENTITIES)
        taken = take_out(connection, found, ways, values, act="a1")
        assert sorted(taken.rows.values()) == [1, 2]
        again = take_out(connection, found, ways, values, act="a1")
        assert (again.rows, again.position > taken.position) == ({}, True)
    gone = before - Counter(people.sql.execute("SELECT id FROM m").fetchall())
    assert set(gone) == {(7003,), (7004,), (7300,)}


def test_room_is_free_only_where_the_server_gave_it_free(people: Hot) -> None:
    """A session that still sees the rows keeps them, and a role that may not is only warned."""
    table = hot_tables(people.tide.project)[TABLE]
    reader = people.another()
    reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    reader.execute("SELECT count(*) FROM m")
    people.sql.execute("DELETE FROM m WHERE id = 7300")
    with connect(table.server) as connection:
        found = find(connection, table)
        leaves = [leaf.oid for leaf in found.leaves]
        assert not clean_up(connection, found, leaves)
        reader.rollback()
        assert clean_up(connection, found, leaves)
        connection.execute("SET ROLE pg_monitor")
        assert not clean_up(connection, found, leaves)


def test_columns_are_replaced_where_the_row_stays(people: Hot) -> None:
    place = HotPlace(hot_tables(people.tide.project)[TABLE], {"v": ("mail",)})
    values = values_of([[Identifier("mail", "ada@example.org")]])
    with connect(place.table.server) as connection:
        found = find(connection, place.table)
        ways, _ = place.ways(found, _IDENTITIES)
        take_out(connection, found, ways, values, act="a1", redact={"v": None, "raw": "gone"})
    rows = people.sql.execute("SELECT id, v, raw FROM m WHERE id IN (7003, 7004) ORDER BY id").fetchall()
    assert rows == [(7003, None, b"gone"), (7004, None, b"gone")]


def test_a_role_without_a_right_is_told_the_grant(people: Hot) -> None:
    people.sql.execute("DROP ROLE IF EXISTS looker")
    people.sql.execute("CREATE ROLE looker LOGIN")
    try:
        people.dsn = people.dsn.replace("user=postgres", "user=looker")
        people.write(people.policy)
        (missed,) = _seek(people, {"id": ("id",)}, ("id", "7300")).missed
        assert (missed.place, missed.failed) == (TABLE, True)
        assert "GRANT SELECT ON public.m TO looker" in missed.because
    finally:
        people.sql.execute("DROP OWNED BY looker")
        people.sql.execute("DROP ROLE looker")


def test_a_server_that_does_not_answer_is_told_and_the_others_are_asked(people: Hot) -> None:
    here = HotPlace(hot_tables(people.tide.project)[TABLE], {"id": ("id",)})
    people.dsn = "host=/nowhere user=postgres dbname=x"
    people.write(people.policy)
    away = HotPlace(hot_tables(people.tide.project)[TABLE], {"id": ("id",)})
    found = find_hot([away, here], [[Identifier("id", "7300")]], _IDENTITIES)
    assert [(each.place, each.failed) for each in found.missed] == [(TABLE, True)]
    assert [each.rows for each in found.held[0]] == [1]


def test_no_value_of_a_person_reaches_the_servers_log() -> None:
    """Statements, their parameters, durations and errors are all logged there."""
    secret, other = "ada.lovelace.1815@example.org", "grace.hopper.1906@example.org"
    everything = ("log_statement=all", "log_min_duration_statement=0", "log_parameter_max_length=-1",
                  "log_parameter_max_length_on_error=-1", "logging_collector=on", "log_directory=told")  # fmt: skip
    server = start_server(*everything)
    try:
        dsn = f"host={server.folder} user=postgres dbname=postgres"
        with psycopg.connect(dsn, autocommit=True) as sql:
            sql.execute("CREATE TABLE m (at timestamptz, v text, PRIMARY KEY (at))")
            with sql.cursor().copy("COPY m FROM STDIN") as rows:
                rows.write_row(("2024-01-01 00:00+00", secret))
            table = HotTable("public.m", "at", Duration(1, "d"), ServerUrl(SecretStr(dsn)), "here")
            place = HotPlace(table, {"v": ("mail",)})
            who = [[Identifier("mail", secret), Identifier("mail", other)]]
            found = find_hot([place], who, _IDENTITIES)
            assert _counts(found) == {"table": 1}
            with connect(table.server) as connection:
                there = find(connection, table)
                ways, _ = place.ways(there, _IDENTITIES)
                sql.execute("CREATE RULE m_stays AS ON DELETE TO m DO ALSO SELECT 1 / 0")
                with pytest.raises(UnreadableError), connect(table.server) as broken:
                    take_out(broken, there, ways, values_of(who), act="a1")
                sql.execute("DROP RULE m_stays ON m")
                for refused in ("CHECK (v <> 'gone')", "EXCLUDE (v WITH =) DEFERRABLE INITIALLY DEFERRED"):
                    sql.execute("ALTER TABLE m ADD u text DEFAULT 'x'; UPDATE m SET u = v")
                    sql.execute(f"ALTER TABLE m ADD CONSTRAINT never {refused}")
                    sql.execute("INSERT INTO m VALUES ('2024-01-02 00:00+00', 'away', 'x')")
                    put = {"v": "gone"} if "gone" in refused else {"v": "away"}
                    with pytest.raises(psycopg.IntegrityError, match="refused by never"):
                        take_out(connection, there, ways, values_of(who), act="a1", redact=put)
                    sql.execute("DELETE FROM m WHERE v = 'away'")
                    sql.execute("ALTER TABLE m DROP CONSTRAINT never, DROP u")
                take_out(connection, there, ways, values_of(who), act="a1")
            assert sql.execute("SELECT count(*) FROM m").fetchone() == (0,)
        told = "".join(path.read_text() for path in (server.folder / "data" / "told").iterdir())
        assert ("pg_temp.ebbtide_people" in told, "ERROR" in told) == (True, True)
        assert (secret in told, other in told) == (False, False)
    finally:
        server.stop()


def _leave(hot: Hot, *ids: int) -> None:
    place = HotPlace(hot_tables(hot.tide.project)[TABLE], {"id": ("id",)})
    with connect(place.table.server) as connection:
        found = find(connection, place.table)
        ways, _ = place.ways(found, _IDENTITIES)
        take_out(connection, found, ways, values_of([[Identifier("id", str(id_))] for id_ in ids]), act="a1")


def test_the_mirror_replays_people_who_left_however_large_their_share_of_a_chunk(hot: Hot) -> None:
    hot.fill(1, rows=5).added()
    hot.sync()
    _leave(hot, 1001, 1002, 1003, 1004)
    assert (hot.sync().mirror, hot.in_lake()) == ("STREAMING", hot.here())
    hot.sql.execute("DELETE FROM m WHERE id = 1005")  # nobody asked for this one
    assert hot.sync().mirror == "STOPPED"


def test_a_proven_chunk_that_somebody_left_is_sealed_and_proven_anew(hot: Hot) -> None:
    hot.write(hot.policy.replace("drop_after: 10d", "drop_after: 60d"))
    hot.fill(1, 2).added()
    assert set(hot.run().tiered) >= {"m_1", "m_2"}
    _leave(hot, 1003)
    assert hot.sync().errors == ()
    assert (hot.chunk("m_1").state, hot.chunk("m_2").state) == ("active", "tiered")
    assert hot.run().tiered == ("m_1",)
    assert hot.in_lake() == hot.here()
