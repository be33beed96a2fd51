from datetime import date

import pytest

from ebbtide.model.partition_dates import days_of_transform, parse_day


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
