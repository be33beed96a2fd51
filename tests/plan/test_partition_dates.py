"""What a plan says of partition dates that are a guess, or that nobody can tell (formats.md, "Partition dates")."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from tests.plan.worlds import Table, day_partition, decided, plan, policy, world

OLD = date(2020, 1, 15)


def test_a_plan_that_rests_on_a_guess_says_so_and_a_doubt_comes_with_its_hint(tmp_path: Path) -> None:
    typed = Table("lake.t.typed", partitions=(day_partition(OLD),), extra={"date_column": "day", "date_by": "type"})
    guess = Table("lake.t.guess", partitions=(day_partition(OLD),), extra={"date_column": "day", "date_by": "text"})
    undated = day_partition(OLD, days=(None, None))
    rivals = Table("lake.t.rivals", partitions=(undated,), extra={"date_doubt": "more than one column may hold it (a)"})
    null = Table("lake.t.null", partitions=(undated,), extra={"date_column": "day", "date_by": "type"})
    wrong = {"date_column": "dya", "date_by": "declared", "date_doubt": "it is not partitioned by dya"}
    declared = Table("lake.t.declared", partitions=(undated,), extra=wrong)
    tables = [t.commit("1", 1, partition=f"0/day={OLD}") for t in (typed, guess, rivals, null, declared)]
    made = plan(policy(tmp_path, "partitions: {older_than: 90d}"), world(*tables))
    said = {row["dataset"]: (row["decision"], row["because"]) for row in decided(made).values()}
    assert said == {
        "lake.t.typed": ("mark", "its last day 2020-01-15 is more than 90d ago"),
        "lake.t.guess": ("mark", "its last day 2020-01-15, read from the text of day, is more than 90d ago"),
        "lake.t.null": ("keep", "no date: never due"),
        "lake.t.rivals": (
            "keep", "no date: more than one column may hold it (a); declare partition_date in tables/*.yml"
        ),
        "lake.t.declared": ("keep", "no date: it is not partitioned by dya"),
    }  # fmt: skip
    hint = "declare partition_date in tables/*.yml"
    assert made.warnings == (
        f"the date of lake.t.guess is read from the text of a partition column: {hint}",
        f"no column of lake.t.declared, lake.t.rivals is known to be its date: {hint}",
    )
