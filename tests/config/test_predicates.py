"""What a policy may ask of a row: something that is the same at every run, or it is refused before anything runs."""

from __future__ import annotations

import pytest

from ebbtide.config.predicates import check_predicate
from ebbtide.config.project import WrongValueError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("at < now()", "at every run"),
        ("current_date > at", "at every run"),
        ("at < DATE 'yesterday'", "at every run"),
        ("at < TIMESTAMP 'now'", "at every run"),
        ("at < ' NOW UTC '", "at every run"),
        ("at < CAST('today' AS DATE)", "at every run"),
        ("who = session_user()", "at every run"),
        ("at < getdate()", "at every run"),
        ("at < dateadd(DAY, -3, getdate())", "at every run"),
        ("at < sysdate", "at every run"),
        ("at < localtimestamp", "at every run"),
        ("at < SYSDATE()", "at every run"),
        ("at < curtime()", "at every run"),
        ("randstr(3) = name", "at every run"),
        ("id < uniform(1, 10)", "at every run"),
        ("id < monotonically_increasing_id()", "at every run"),
        ("id = 1 AND input_file_name() LIKE '%a'", "at every run"),
        ("id IN (SELECT id FROM other)", "no other table"),
        ("id > 0 AND EXISTS (SELECT 1 FROM other)", "no other table"),
        ("id < (SELECT max(id) FROM other)", "no other table"),
        ("1 = 1", "asks nothing of a row"),
        ("true", "asks nothing of a row"),
        ("count(id) > 1", "on one row"),
        ("sum(id) OVER () > 1", "on one row"),
        ("explode(many) = 1", "on one row"),
        ("id > :least", "on one row"),
    ],
)
def test_what_moves_or_asks_nothing_of_a_row_is_refused(text: str, said: str) -> None:
    with pytest.raises(WrongValueError, match=said):
        check_predicate(text)


@pytest.mark.parametrize(
    "text",
    [
        "country = 'DE'",
        "NOT active",
        "`sysdate` < DATE '2020-01-01' AND t.current_time IS NULL",
        "to_date(day) < DATE '2020-01-01' AND lower(name) LIKE 'today%'",
        "address.city IN ('Bonn', 'Ulm') OR labels['kind'] IS NULL",
        "exists(many, x -> x > 3)",
    ],
)
def test_conditions_on_a_row_pass(text: str) -> None:
    check_predicate(text)
