"""Every type that is mirrored is the same value in the lake, and has the same digest on both sides (spec §6)."""

from __future__ import annotations

import random
import threading

import psycopg
import pytest

from ebbtide.app.tier_opened import hot_tables
from ebbtide.errors import RefusedError
from ebbtide.formats.iceberg.cold import ColdRange
from ebbtide.hottier.digest import cold_digest, hot_digest
from ebbtide.hottier.server import connect
from ebbtide.hottier.table import find
from ebbtide.hottier.values import CannotFollowError
from tests.hottier.tier import POLICY, Hot
from tests.tiers import deep_after_first

_TYPES = {
    "i2": ("int2", ["-32768", "0", "32767"]),
    "i4": ("int4", ["-2147483648", "7"]),
    "i8": ("int8", ["-9223372036854775808", "9223372036854775807"]),
    "f4": ("float4", ["'NaN'", "'-0'", "'Infinity'", "1.5e-45", "16777217"]),
    "f8": ("float8", ["'NaN'", "'-0'", "'-Infinity'", "5e-324", "0.1", "1e22"]),
    "n9": ("numeric(9,2)", ["-1234567.89", "0", "0.01", "-0.10", "9999999.99"]),
    "n0": ("numeric(18,0)", ["999999999999999999", "-10000", "10000"]),
    "n12": ("numeric(18,12)", ["-0.000000000001", "123456.789012345678"]),
    "n38": ("numeric(38,10)", ["-9999999999999999999999999999.9999999999", "0.0000000001", "40000"]),
    "b": ("boolean", ["true", "false"]),
    "t": ("text", ["''", "'|-|'", "'é\U0001f600 \\'", "E'a\\nb\\tc'", "repeat('x', 9000)"]),
    "vc": ("varchar(5)", ["'ab  '"]),
    "bp": ("char(5)", ["'ab'", "''"]),
    "by": ("bytea", [r"'\x'", r"'\x00ff10'"]),
    "d": ("date", ["'0001-01-01'", "'1969-12-31'", "'2038-01-20'", "'9999-12-31'"]),
    "ts": ("timestamp", ["'1969-12-31 23:59:59.999999'", "'2038-01-19 03:14:08'", "'2024-03-31 02:30:00'"]),
    "tz": ("timestamptz", ["'1900-01-01 00:00:00+00'", "'2024-10-27 02:30:00+01'", "'2262-04-12 00:00:00.000001+00'"]),
    "u": ("uuid", ["'6ecd8c99-4036-403d-bf84-cf8400f67836'"]),
    "j": ("jsonb", ["""'{"b": 1, "a": 2.50, "é": [null, "x"]}'""", "'null'"]),
    "e": ("mood", ["'sad'", "'very ok'"]),
    "dm": ("small", ["3"]),
    "ai": ("int4[]", ["'{}'", "'{1,NULL,-3}'", "'{NULL}'", "'{2147483647}'"]),
    "ats": ("text[]", ["'{}'", r"""ARRAY['a b', NULL, '"q\', 'é', '|-', '']""", r"""'{"\"{}\\"}'"""]),
    "an": ("numeric(38,10)[]", ["'{-0.0000000001,NULL,9999999999999999999999999999.9999999999}'"]),
    "az": ("timestamptz[]", ["'{1969-12-31 23:59:59.999999+00,2038-01-19 03:14:08+00}'"]),
    "ae": ("mood[]", ["'{sad,very ok,NULL}'"]),
    "ab": ("bytea[]", [r"ARRAY['\x00ff'::bytea, NULL, '']"]),
    "aj": ("jsonb[]", ["""ARRAY['{"b": 1, "a": [2.50]}'::jsonb, 'null', NULL]"""]),
    "af": ("float8[]", ["'{NaN,-0,5e-324,Infinity}'"]),
    "au": ("uuid[]", ["'{6ecd8c99-4036-403d-bf84-cf8400f67836}'"]),
    "ac": ("char(3)[]", ["'{a,NULL}'"]),
}


def _awkward(hot: Hot) -> None:
    hot.sql.execute("CREATE TYPE mood AS ENUM ('sad', 'very ok')")
    hot.sql.execute("CREATE DOMAIN small AS numeric(4,1) CHECK (VALUE < 100)")
    columns = ", ".join(f"{name} {type_}" for name, (type_, _) in _TYPES.items())
    hot.sql.execute(f"CREATE TABLE w (id int, at timestamptz, {columns}, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)")
    hot.sql.execute("CREATE TABLE w_1 PARTITION OF w FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')")
    hot.write(POLICY.replace("public.m", "public.w"))


def _write_all(hot: Hot, first: int) -> None:
    session = hot.another(autocommit=True)
    session.execute("SET TimeZone = 'Asia/Kolkata'; SET DateStyle = 'SQL, DMY'; SET extra_float_digits = -5")
    longest = max(len(values) for _, values in _TYPES.values())
    for n in range(longest + 2):
        values = [known[n] if n < len(known) else "NULL" for _, known in _TYPES.values()]
        session.execute(f"INSERT INTO w VALUES ({first + n}, '2024-01-01 10:00+00', {', '.join(values)})")


def test_every_type_has_the_same_digest_here_and_in_the_lake(hot: Hot) -> None:
    _awkward(hot)
    _write_all(hot, 0)
    with hot.tide as tide:
        tide.tier.init()
        tide.tier.add("public.w")  # by COPY
    _write_all(hot, 100)  # by the log
    with hot.tide as tide:
        assert tide.tier.sync("public.w")[0].mirror == "STREAMING"
    project = hot.tide.project
    table = hot_tables(project)["public.w"]
    with connect(table.server) as session:
        session.execute("SET TimeZone = 'America/New_York'")
        found = find(session, table)
        here = hot_digest(session, found.chunks[0], found.columns)
    from ebbtide.app.tier_opened import cold_of

    cold = cold_of(project, table)
    assert cold is not None
    assert here.rows == 2 * (2 + max(len(values) for _, values in _TYPES.values()))
    whole = ColdRange("at", None, None, "timestamptz")
    assert cold_digest(cold.batches(whole), found.columns) == here
    for column in found.columns.columns:  # a difference in one column alone would show
        alone = type(found.columns)((column,))
        with connect(table.server) as session:
            assert cold_digest(cold.batches(whole), alone) == hot_digest(session, found.chunks[0], alone), column.name


@pytest.mark.parametrize(
    ("value", "said"),
    deep_after_first(
        ("ts = 'infinity'", "an infinite time"),
        ("n9 = 'NaN'", "NaN or infinity"),
        ("d = '-infinity'", "an infinite time"),
        ("an = '{NaN}'", "NaN or infinity"),
        ("ai = '{{1,2},{3,4}}'", "an array of several dimensions"),
        ("ai = '[0:1]={1,2}'", "not counted from 1"),
    ),
)
def test_a_value_that_the_lake_cannot_hold_shuts_the_gate(hot: Hot, value: str, said: str) -> None:
    _awkward(hot)
    _write_all(hot, 0)
    with hot.tide as tide:
        tide.tier.init()
        tide.tier.add("public.w")
        hot.sql.execute(f"UPDATE w SET {value} WHERE id = 0")
        result = tide.tier.sync("public.w")[0]
        assert result.mirror == "DEGRADED"
        assert said in result.errors[0]


_UNFIT = {
    "a numeric": "numeric", "n huge": "numeric(1000,500)", "n below": "numeric(5,-2)", "js": "json", "iv": "interval",
    "tm": "time", "tmz": "timetz", "mo": "money", "ip": "inet", "ci": "cidr", "bits": "bit varying", "xm": "xml",
    "ra": "tstzrange", "mr": "int4multirange", "co": "pair", "ex": "vector(3)", "ts": "tsvector", "pt": "point",
    "ar": "inet[]", "ad": "small[]", "dc": "boxed", "oi": "oid", "${x}": "hstoreish",
}  # fmt: skip


def test_every_column_without_a_canonical_form_is_named_when_its_table_is_added(hot: Hot) -> None:
    unfit = dict(_UNFIT)
    if hot.sql.info.server_version < 150_000:  # it knows no negative scale, and its binaries have no extension
        del unfit["n below"], unfit["ex"]
    else:
        hot.sql.execute("CREATE EXTENSION vector")
    hot.sql.execute("CREATE TYPE pair AS (a int, b text); CREATE TYPE hstoreish AS RANGE (subtype = int)")
    hot.sql.execute("CREATE DOMAIN small AS numeric(4,1); CREATE DOMAIN boxed AS pair")
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in unfit.items())
    generated = "k bigint GENERATED BY DEFAULT AS IDENTITY, g int GENERATED ALWAYS AS (id + 1) STORED"
    hot.sql.execute(
        f"CREATE TABLE w (id int, at timestamptz, {generated}, {columns}, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)"
    )
    hot.write(POLICY.replace("public.m", "public.w"))
    with hot.tide as tide:
        tide.tier.init()
        with pytest.raises(RefusedError) as refused:
            tide.tier.add("public.w")
    said = refused.value.message
    assert [name for name in unfit if f"column {name} of type" not in said] == []
    assert "column g is generated: the log does not carry it" in said
    assert "column k" not in said
    assert hot.sql.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)


def test_a_value_that_the_lake_cannot_hold_is_said_when_its_table_is_added(hot: Hot) -> None:
    hot.sql.execute("ALTER TABLE m ADD until timestamptz")
    hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'x', 1, 'infinity')")
    with hot.tide as tide:
        tide.tier.init()
        with pytest.raises(CannotFollowError, match="column until holds an infinite time"):
            tide.tier.add("public.m")
    assert hot.status().mirror == "OFF"
    assert hot.sql.execute(
        "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    ).fetchone() == (0,)


def test_eight_writers_with_every_kind_of_change_leave_the_same_rows_in_the_lake(hot: Hot) -> None:
    hot.fill(1, 2, 3, 4, rows=200).added()
    failed: list[BaseException] = []

    def write(seed: int) -> None:
        choose = random.Random(seed)
        with psycopg.connect(hot.dsn) as session:
            for _ in range(60):
                try:
                    for _ in range(choose.randint(1, 4)):
                        session.execute(*_change(choose, seed))
                    session.rollback() if choose.random() < 0.15 else session.commit()
                except (
                    psycopg.errors.DeadlockDetected,
                    psycopg.errors.UniqueViolation,
                    psycopg.errors.SerializationFailure,
                ):
                    session.rollback()
                except BaseException as error:
                    failed.append(error)
                    return

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    rounds = 0
    while any(thread.is_alive() for thread in threads) or rounds < 2:
        hot.sync()
        rounds += 1
    for thread in threads:
        thread.join()
    assert not failed
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()


def _change(choose: random.Random, seed: int) -> tuple[str, dict[str, object]]:
    day, row = choose.randint(1, 4), choose.randint(1, 200)
    values: dict[str, object] = {"id": day * 1000 + row, "day": day, "row": row, "v": f"{seed}-{choose.random()}"}
    at = "make_timestamptz(2024, 1, %(day)s, 0, 0, 0, 'UTC') + %(row)s * interval '1 minute'"
    statements = (
        "UPDATE m SET v = %(v)s WHERE id = %(id)s",
        "UPDATE m SET v = %(v)s, n = n + 1 WHERE id = %(id)s",
        "DELETE FROM m WHERE id = %(id)s AND %(row)s %% 4 = 0",
        "UPDATE m SET at = '2024-01-01 12:00+00'::timestamptz + (%(row)s %% 4) * interval '1 day' WHERE id = %(id)s",
        f"INSERT INTO m VALUES (%(id)s, {at}, %(v)s, 1) ON CONFLICT (id, at) DO UPDATE SET v = excluded.v",
        f"INSERT INTO m VALUES (%(id)s + 500, {at}, %(v)s, 2) ON CONFLICT DO NOTHING",
    )
    return choose.choice(statements), values
