"""Lineage of single statements: what flows, what only filters, and what cannot be told."""

from __future__ import annotations

import pytest

from ebbtide.errors import InputError
from ebbtide.lineage.statements import outline
from tests.lineage.flows import TABLES, direct, rows, short, trace

USERS = TABLES["lake.app.users"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT uid, email AS e FROM lake.app.users", {"users.Uid > t.uid", "users.email > t.e"}),
        ("SELECT lake.app.users.uid FROM lake.app.users", {"users.Uid > t.uid"}),
        ("SELECT u.UID FROM USERS u", {"users.Uid > t.uid"}),
        ("SELECT upper(email) || name AS n FROM users", {"users.email > t.n", "users.name > t.n"}),
        ("SELECT 1 AS n, @date AS d FROM users", set()),
        ("SELECT count(*) AS n FROM users", set()),
        ("SELECT md5(email) AS n FROM users", {"users.email ~> t.n"}),
        ("SELECT mask(email) AS n FROM users", {"users.email ~> t.n"}),
        ("SELECT count(DISTINCT uid) AS n FROM users", {"users.Uid ~> t.n"}),
        ("SELECT concat(md5(email), email) AS n FROM users", {"users.email > t.n"}),
        (
            "SELECT CASE WHEN email LIKE '%x' THEN name END AS n FROM users",
            {"users.email > t.n", "users.name > t.n"},
        ),
        ("SELECT x FROM lake.a.b.deep", {"deep.x > t.x"}),
        ("SELECT users.addr.city AS n FROM users", {"users.addr > t.n", "users.addr.city > t.n"}),
        ("SELECT addr.zip AS n FROM users", {"users.addr > t.n", "users.addr.zip > t.n"}),
        ("SELECT tag AS n FROM users LATERAL VIEW explode(tags) x AS tag", {"users.tags > t.n"}),
        ("SELECT v.a AS n FROM VALUES (1, 2) AS v(a, b)", set()),
        (
            "SELECT (SELECT max(amount) FROM orders o WHERE o.uid = u.uid) AS n FROM users u",
            {"orders.amount > t.n"},
        ),
        ("SELECT sum(o.amount) FILTER (WHERE o.ts > 1) AS n FROM orders o", {"orders.amount > t.n"}),
        (
            "SELECT lag(email) OVER (PARTITION BY country ORDER BY name) AS n FROM users",
            {"users.email > t.n"},
        ),
        (
            "SELECT uid, email AS a, upper(a) AS b FROM users",
            {"users.Uid > t.uid", "users.email > t.a", "users.email > t.b"},
        ),
    ],
)
def test_values_flow_directly(sql: str, expected: set[str]) -> None:
    flow = trace(sql)
    assert direct(flow) == expected
    assert flow.problems == ()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM orders WHERE amount > 3", {"orders.amount"}),
        ("SELECT o.id FROM orders o JOIN users u ON u.uid = o.uid", {"orders.uid", "users.Uid"}),
        ("SELECT id FROM orders JOIN users USING (uid)", {"orders.uid", "users.Uid"}),
        ("SELECT o.id FROM orders o LEFT SEMI JOIN users u ON u.uid = o.uid", {"orders.uid", "users.Uid"}),
        ("SELECT count(*) AS n FROM users GROUP BY country", {"users.country"}),
        ("SELECT id FROM orders ORDER BY ts LIMIT 3", {"orders.ts"}),
        ("SELECT max(id) AS n FROM orders GROUP BY uid HAVING sum(amount) > 1", {"orders.uid", "orders.amount"}),
        ("SELECT row_number() OVER (PARTITION BY uid ORDER BY ts) AS n FROM orders", {"orders.uid", "orders.ts"}),
        ("SELECT sum(amount) FILTER (WHERE ts > 1) AS n FROM orders", {"orders.ts"}),
        (
            "SELECT id FROM orders WHERE uid IN (SELECT uid FROM users WHERE country = 'x')",
            {"orders.uid", "users.Uid", "users.country"},
        ),
        (
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM users u WHERE u.uid = o.uid)",
            {"orders.uid", "users.Uid"},
        ),
        ("WITH q AS (SELECT id FROM orders WHERE ts = 1) SELECT id FROM q", {"orders.ts"}),
        ("SELECT id FROM orders EXCEPT SELECT uid FROM users", {"users.Uid"}),
        ("SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY ts) = 1", {"orders.ts"}),
    ],
)
def test_what_only_decides_about_rows_is_indirect(sql: str, expected: set[str]) -> None:
    flow = trace(sql)
    assert rows(flow) == expected
    assert not {edge.split(" ")[0] for edge in direct(flow)} & (expected - {"orders.amount"})
    assert flow.problems == ()


def test_stars_are_expanded_through_ctes_and_subqueries() -> None:
    flow = trace("WITH q AS (SELECT * FROM users) SELECT s.* FROM (SELECT * FROM q) s")
    top = [name for name in USERS if "." not in name]
    assert {f"users.{name} > t.{name.lower()}" for name in top} <= direct(flow)
    assert flow.columns == ("uid", "email", "name", "addr", "country", "tags")


def test_a_union_joins_by_position_and_by_name() -> None:
    assert direct(trace("SELECT uid, email FROM users UNION ALL SELECT id, ts FROM orders")) == {
        "users.Uid > t.uid", "orders.id > t.uid", "users.email > t.email", "orders.ts > t.email",
    }  # fmt: skip


def test_an_insert_fills_columns_by_position_by_list_and_by_name() -> None:
    by_position = {"users.email > t.uid", "users.Uid > t.email", "users.name > t.n"}
    assert direct(trace("INSERT INTO lake.app.t SELECT email, uid, name FROM users")) == by_position
    by_list = {"users.email > t.n"}
    assert direct(trace("INSERT INTO lake.app.t (n) SELECT email FROM users")) == by_list
    assert direct(trace("INSERT INTO lake.app.t BY NAME SELECT uid AS n FROM users")) == {"users.Uid > t.n"}
    static = "INSERT OVERWRITE lake.app.t PARTITION (n = 1) SELECT uid, email FROM users"
    assert direct(trace(static)) == {"users.Uid > t.uid", "users.email > t.email"}
    outer = "WITH q AS (SELECT uid FROM users) INSERT INTO lake.app.t (uid) SELECT uid FROM q"
    assert direct(trace(outer)) == {"users.Uid > t.uid"}
    assert trace("INSERT INTO lake.app.t VALUES (1, 2, 3)").edges == ()


def test_a_view_names_its_columns() -> None:
    flow = trace("CREATE OR REPLACE VIEW lake.app.v (a, b) AS SELECT uid, email FROM users", "lake.app.v")
    assert direct(flow) == {"users.Uid > v.a", "users.email > v.b"}
    assert flow.is_view
    assert not trace("CREATE TABLE lake.app.t USING iceberg AS SELECT uid FROM users").is_view


def test_a_merge_reads_what_each_branch_writes_and_its_conditions_only_filter() -> None:
    flow = trace(
        "MERGE INTO lake.app.t t USING (SELECT uid, email, country FROM users) s ON t.uid = s.uid "
        "WHEN MATCHED AND s.country = 'x' THEN UPDATE SET t.email = s.email, n = t.n + 1 "
        "WHEN NOT MATCHED THEN INSERT (uid, email) VALUES (s.uid, lower(s.email))"
    )
    assert direct(flow) == {"users.Uid > t.uid", "users.email > t.email"}
    assert rows(flow) == {"t.uid", "users.Uid", "users.country"}
    assert flow.inputs == ("lake.app.users",)
    stars = trace(
        "MERGE INTO lake.app.t USING users s ON t.uid = s.uid "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert {"users.Uid > t.uid", "users.email > t.email"} <= direct(stars)


def test_a_recursive_cte_carries_what_passes_through_it_again_and_again() -> None:
    flow = trace(
        "WITH RECURSIVE r(a, b, c) AS (SELECT uid, email, name FROM users UNION ALL SELECT b, c, a FROM r) "
        "SELECT a AS n FROM r"
    )
    assert direct(flow) == {"users.Uid > t.n", "users.email > t.n", "users.name > t.n"}


def test_a_struct_that_is_passed_on_keeps_its_fields_apart() -> None:
    expected = {"users.addr > people.addr", "users.addr.city > people.addr.city", "users.addr.zip > people.addr.zip"}
    assert direct(trace("SELECT addr FROM users", "lake.app.people")) == expected
    made = direct(trace("SELECT struct(name AS city, email AS zip) AS addr FROM users", "lake.app.people"))
    assert {"users.name > people.addr.city", "users.email > people.addr.city"} <= made


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT mystery FROM users u JOIN orders o ON u.uid = o.uid", "column mystery could not be told"),
        ("SELECT u.mystery FROM users u", "lake.app.users has no column mystery"),
        ("SELECT * FROM users PIVOT (max(email) FOR country IN ('a', 'b'))", "could not be told"),
        ("SELECT uid FROM users UNION ALL SELECT id, ts FROM orders", "differ in their number"),
        ("INSERT INTO lake.app.t SELECT uid FROM users", "1 columns for 3 of the table"),
    ],
)
def test_what_cannot_be_told_takes_every_input_column_and_says_so(sql: str, said: str) -> None:
    flow = trace(sql)
    assert any(said in problem.message and "every input column" in problem.message for problem in flow.problems)
    reached = {short(edge).split(" > ")[0] for edge in flow.edges}
    if "mystery" in sql or "PIVOT" in sql:
        assert {f"users.{name}" for name in USERS} <= reached
    assert {"users.Uid"} <= reached
    if "u.mystery" in sql:
        assert "users.mystery" in reached  # a label that somebody put on it flows all the same


def test_the_star_of_an_unknown_table_stands_for_all_of_it() -> None:
    flow = trace("SELECT * FROM other.x.y")
    assert direct(flow) == {f"other.x.y.* > t.{name}" for name in ("uid", "email", "n")}
    assert "the columns of other.x.y are not known" in flow.problems[0].message


def test_inputs_are_every_table_that_is_read_even_without_a_column() -> None:
    flow = trace("SELECT count(*) AS n FROM users, orders WHERE EXISTS (SELECT 1 FROM lake.a.b.deep)")
    assert flow.inputs == ("lake.a.b.deep", "lake.app.orders", "lake.app.users")


def test_functions_that_make_rows_are_no_tables() -> None:
    flow = trace("SELECT r.id AS n, u.email FROM range(10) r CROSS JOIN users u")
    assert flow.inputs == ("lake.app.users",)
    assert direct(flow) == {"users.email > t.email"}


def test_a_function_that_gives_several_columns_fills_each_of_them() -> None:
    flow = trace("SELECT stack(2, 'a', email, 'b', name) AS (k, v) FROM users")
    assert direct(flow) == {f"users.{source} > t.{target}" for source in ("email", "name") for target in ("k", "v")}


def test_the_star_of_a_struct_is_not_the_star_of_its_table() -> None:
    flow = trace("SELECT addr.* FROM users", "lake.app.people", {**TABLES, "lake.app.people": ["city", "zip"]})
    assert {"users.addr.city > people.city", "users.addr.zip > people.zip"} <= direct(flow)
    assert flow.problems


def test_two_tables_of_one_name_are_told_apart() -> None:
    tables = {"lake.a.users": ["uid", "x"], "lake.b.users": ["uid", "y"], "lake.app.t": ["a", "b"]}
    flow = trace("SELECT a.users.uid AS a, b.users.y AS b FROM lake.a.users JOIN lake.b.users", tables=tables)
    assert direct(flow) == {"lake.a.users.uid > t.a", "lake.b.users.y > t.b"}


def test_a_cte_hides_a_table_of_its_name() -> None:
    flow = trace("WITH users AS (SELECT id AS uid FROM orders) SELECT uid FROM users")
    assert direct(flow) == {"orders.id > t.uid"}
    assert flow.inputs == ("lake.app.orders",)


@pytest.mark.parametrize(
    ("sql", "where", "message"),
    [
        ("SELECT a\nFROM t\nWHERE (b", "model.sql:3:8", "not SQL"),
        ("SELECT FROM WHERE", "model.sql:1:17", "not SQL: Expected table name"),
        ("SELECT\n  'secret", "model.sql:2:3", "does not end"),
        ("SELECT 1; SELECT 2", "model.sql:1:1", "2 statements"),
        ("-- nothing", "model.sql:1:1", "0 statements"),
        ("DELETE FROM t WHERE a = 'secret'", "model.sql:1:1", "no lineage"),
        ("MSCK REPAIR TABLE t", "model.sql:1:1", "no lineage in a command"),
        ("CREATE TABLE t (a INT)", "model.sql:1:1", "no lineage in CREATE"),
        ("SELECT {{ ref('x') }}", "model.sql:1:17", "not SQL"),
    ],
)
def test_what_is_no_model_is_refused_with_file_line_and_column(sql: str, where: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        outline(sql, where="model.sql")
    assert caught.value.where == where
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_star_of_a_merge_leaves_out_what_the_target_has_no_column_for() -> None:
    merge = "MERGE INTO lake.app.t USING users u ON t.uid = u.uid WHEN MATCHED THEN UPDATE SET * " \
            "WHEN NOT MATCHED THEN INSERT *"  # fmt: skip
    flow = trace(merge, tables={**TABLES, "lake.app.t": ["uid", "email"]})
    assert direct(flow) == {"users.Uid > t.uid", "users.email > t.email"}
    # A target column that the star does not fill was renamed, perhaps: then nothing is left out.
    stale = trace(merge, tables={**TABLES, "lake.app.t": ["uid", "e_mail"]})
    assert "users.email > t.email" in direct(stale)
