from datetime import date

import pytest

from ebbtide.model.partition_dates import Candidate, DateSource, date_source, days_of_transform, parse_day


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31", (date(2026, 1, 31), date(2026, 1, 31))),
        ("20240229", (date(2024, 2, 29), date(2024, 2, 29))),
        ("2024-02", (date(2024, 2, 1), date(2024, 2, 29))),
        ("2026-02-30", None),
        ("2026-13", None),
        ("202601", None),
        ("yesterday", None),
        ("", None),
        (" 2026-01-31", None),
        ("2026-01-31T00", None),
        ("2026-01-31\n", None),
        ("2024-02\n", None),
        ("٢٠٢٦-٠١-٠١", None),
        ("２０２６０１３１", None),
    ],
)
def test_only_whole_dates_and_months_are_dates(text: str, expected: tuple[date, date] | None) -> None:
    assert parse_day(text) == expected


def test_a_declared_pattern_covers_what_it_names() -> None:
    assert parse_day("31.01.2026", "dd.MM.yyyy") == (date(2026, 1, 31), date(2026, 1, 31))
    assert parse_day("2026/02", "yyyy/MM") == (date(2026, 2, 1), date(2026, 2, 28))
    assert parse_day("2026", "yyyy") == (date(2026, 1, 1), date(2026, 12, 31))
    for text in ("2026-01-31", "31.01.2026\n", "٣١.٠١.٢٠٢٦", " 1.01.2026", "1.1.2026"):
        assert parse_day(text, "dd.MM.yyyy") is None


@pytest.mark.parametrize(
    ("transform", "value", "expected"),
    [
        ("day", 20454, (date(2026, 1, 1), date(2026, 1, 1))),
        ("day", -1, (date(1969, 12, 31), date(1969, 12, 31))),
        ("month", 672, (date(2026, 1, 1), date(2026, 1, 31))),
        ("month", -1, (date(1969, 12, 1), date(1969, 12, 31))),
        ("year", 56, (date(2026, 1, 1), date(2026, 12, 31))),
        ("hour", 20454 * 24 + 23, (date(2026, 1, 1), date(2026, 1, 1))),
        ("hour", -1, (date(1969, 12, 31), date(1969, 12, 31))),
        ("day", 10**9, None),
        ("bucket[4]", 3, None),
    ],
)
def test_time_transforms_count_from_1970_in_both_directions(
    transform: str, value: int, expected: tuple[date, date] | None
) -> None:
    assert days_of_transform(transform, value) == expected


def test_the_date_is_in_one_column_typed_before_guessed() -> None:
    old, young = Candidate.written("k", "20200115"), Candidate.written("k", "20261109")
    day = Candidate("day", (date(2026, 11, 9), date(2026, 11, 9)))
    assert date_source(["day"], [(day, old)]) == DateSource("day", "type")
    assert date_source(["day"], [(old,), (young,)]) == DateSource("day", "type"), "a spec that no partition has counts"
    assert date_source([], [(old,), (young,), (Candidate.written("k", None),)]) == DateSource("k", "text")
    assert date_source([], [(old,), (Candidate.written("k", "acme"),)]).doubt == "not every value of k is a date"
    assert (
        date_source([], [(old, Candidate.written("j", "2026-01"))]).doubt == "more than one column may hold it (j, k)"
    )
    assert date_source(["a", "b"], [(day,)]).doubt == "more than one column may hold it (a, b)"
    assert date_source([], [(Candidate.written("k", None),), (Candidate.written("j", "x"),)]) == DateSource()
    assert date_source([], []) == DateSource()


def test_a_partition_has_the_days_of_its_tables_column_or_none() -> None:
    source, other = DateSource("day", "type"), Candidate.written("k", "20200115")
    assert source.days([other, Candidate("day", (date(2026, 1, 1), date(2026, 1, 31)))]) == (
        date(2026, 1, 1), date(2026, 1, 31)
    )  # fmt: skip
    assert source.days([other, Candidate("day", None)]) is None
    assert source.days([other]) is None, "its spec lacks the column"
    assert DateSource().days([other]) is None
