"""Codes of reasons: documented, and the only ones that a plan says."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from ebbtide.model.reasons import PREFIXES, SENTENCES, Code, Reason

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"


def test_every_code_is_documented_in_the_words_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(code.value, code.meaning) for code in Code]


def test_the_sql_of_a_plan_says_no_other_codes() -> None:
    steps = files("ebbtide.plan").joinpath("sql")
    said = {
        code
        for folder in steps.iterdir()
        for step in folder.iterdir()
        for code in re.findall(r"(?<!AS )said\('(\w+)'", step.read_text(encoding="utf-8"))
    }
    assert len(said) > 20
    assert said <= {*Code}


def test_no_text_could_have_two_codes() -> None:
    starts = [*PREFIXES, *SENTENCES.values()]
    assert not [(a, b) for a in starts for b in starts if a != b and b in SENTENCES.values() and b.startswith(a)]
    assert not [(a, b) for a in PREFIXES for b in PREFIXES if a != b and b.startswith(a)]


def test_only_a_floor_that_is_a_setting_names_one() -> None:
    assert (
        Reason("floor:delta.logRetentionDuration=interval 30 days", Code.FLOOR).setting == "delta.logRetentionDuration"
    )
    assert Reason("floor:tax", Code.FLOOR).setting is None
    assert Reason("hold:a=b", Code.HOLD).setting is None
