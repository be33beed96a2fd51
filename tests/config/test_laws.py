"""Laws are data: each says its clock and its source, deadlines follow the calendar, a project replaces them by name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.config.laws import law_of, load_laws
from ebbtide.errors import InputError


def day(month: int, number: int, year: int = 2026) -> datetime:
    return datetime(year, month, number, 9, tzinfo=UTC)


def test_what_ships_has_a_clock_a_source_and_asks_counsel() -> None:
    laws = load_laws()
    assert sorted(laws) == ["dpdp", "gdpr", "promise"]
    for law in laws.values():
        assert law.source
        assert "Ask counsel" in law.counsel
    assert laws["dpdp"].notice is not None
    assert laws["dpdp"].minimum_retention is not None
    assert laws["dpdp"].due != laws["gdpr"].due


def test_a_month_from_the_31st_of_january_ends_on_the_28th_of_february() -> None:
    gdpr = law_of(None, "gdpr")
    assert gdpr.due_at(day(1, 31)) == day(2, 28)
    assert gdpr.latest(day(1, 31)) == day(4, 30)
    promise = law_of(None, "promise")
    assert promise.latest(day(1, 1)) == promise.due_at(day(1, 1))


def test_a_project_replaces_and_adds_laws(tmp_path: Path) -> None:
    law = "{title: t, due: 45d, source: s, counsel: c}"
    (tmp_path / "laws.yml").write_text(f"laws:\n  ccpa: {law}\n  gdpr: {law}\n")
    laws = load_laws(tmp_path)
    assert sorted(laws) == ["ccpa", "dpdp", "gdpr", "promise"]
    assert str(laws["gdpr"].due) == "45d"
    with pytest.raises(InputError) as caught:
        law_of(tmp_path, "hipaa")
    assert caught.value.hint is not None
    assert "ccpa, dpdp, gdpr" in caught.value.hint


@pytest.mark.parametrize(
    "law", ["{title: t, due: 0d, source: s, counsel: c}", "{title: t, due: 3m, extended: 1m, source: s, counsel: c}"]
)
def test_a_law_that_is_due_before_it_begins_or_extended_backwards_is_refused(law: str, tmp_path: Path) -> None:
    (tmp_path / "laws.yml").write_text(f"laws:\n  odd: {law}\n")
    with pytest.raises(InputError, match="odd"):
        load_laws(tmp_path)
