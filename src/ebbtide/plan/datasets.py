"""One row per dataset with everything that its objects ask of it: policies, named heads, floors, holds, locks."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import PolicySet
from ebbtide.plan import format_floors
from ebbtide.plan.durations import day_is_older, instant_is_older
from ebbtide.plan.references import REFS, named_heads
from ebbtide.plan.select import choose
from ebbtide.plan.world import World, joined, no_texts, only_if

# Hudi says of every table that only its own cleaner removes from it. That is the way the plan's removals go there, so
# it locks orphans and nothing else; any further doubt locks the table as everywhere (formats.md).
_OWN_CLEANER = "the base path of a Hudi table is locked"
_SETTINGS = {
    **dict.fromkeys(("covers", "scan_error", "date_column", "date_by", "date_doubt", "identity"), "string"),
    **dict.fromkeys(("locked_by", "own_labels"), "array<string>"),
    "partitioned": "boolean",
}
_HOLDS = "array<struct<first:date,last:date,text:string>>"


def prepare(policies: PolicySet, world: World, holds: DataFrame) -> DataFrame:
    """The datasets. `blocks` are reasons why nothing of one may go; `for_<target>` are policy numbers in order."""
    tables = with_settings(world.tables)
    chosen = choose(policies, tables)
    chosen = chosen.join(named_heads(world), "table_id", "left").join(held_datasets(holds), "table_id", "left")
    chosen = chosen.withColumns(
        {
            "refs": F.coalesce("refs", F.array().cast(REFS)),
            "holds": F.coalesce("holds", F.array().cast(_HOLDS)),
            "capabilities": F.coalesce("capabilities", no_texts()),
            **format_floors.rules(),
        }
    )
    return chosen.withColumn("blocks", _blocks()).select(
        "table_id", "format", "schedule", "time_grain", "covers", "date_column", "date_by", "date_doubt", "own_labels",
        "partitioned", "identity",
        "capabilities", "chosen", "floor_numbers", "refs", "holds", "blocks", "floor_counts", "floor_times",
        "floor_consumers", "floor_gc", "floor_append",
        *(column for column in chosen.columns if column.startswith("for_")),
    )  # fmt: skip


def with_settings(tables: DataFrame) -> DataFrame:
    """`tables` with the columns that only some who hand it in have."""
    for column, type_ in _SETTINGS.items():
        if column not in tables.columns:
            tables = tables.withColumn(column, F.lit(None).cast(type_))
    return tables


def held_datasets(holds: DataFrame) -> DataFrame:
    """Per dataset its holds, as spans of days with a text."""
    text = F.concat(F.lit("hold:"), "owner", F.coalesce(F.concat(F.lit(" ("), "reason", F.lit(")")), F.lit("")))
    span = F.struct(F.col("partition_from").alias("first"), F.col("partition_to").alias("last"), text.alias("text"))
    return holds.where("table_id IS NOT NULL").groupBy("table_id").agg(F.sort_array(F.collect_set(span)).alias("holds"))


def _blocks() -> Column:
    doubts = F.filter(F.coalesce("unknown", no_texts()), lambda reason: ~reason.startswith(_OWN_CLEANER))
    lost = F.filter("refs", lambda ref: ref["position"].isNull())
    return joined(
        F.transform(F.coalesce("locked_by", no_texts()), lambda other: F.concat(F.lit("locked:"), other)),
        F.transform(doubts, lambda reason: F.concat(F.lit("unknown:"), reason)),
        only_if(F.col("scan_error").isNotNull(), F.concat(F.lit("unknown:"), "scan_error")),
        F.transform(lost, lambda ref: F.concat(F.lit("unknown:the head of "), ref["name"], F.lit(" was not read"))),
    )


def whole_holds() -> Column:
    """Holds on the dataset as a whole."""
    return _texts(F.filter("holds", lambda h: h["first"].isNull() & h["last"].isNull()))


def any_holds() -> Column:
    """All holds on the dataset, those on partition ranges included: for objects whose days nobody knows."""
    return _texts(F.col("holds"))


def holds_on_days(first: Column, last: Column) -> Column:
    """Holds that cover some of these days. Unknown days lie inside every hold."""
    return _texts(
        F.filter(
            "holds",
            lambda h: F.coalesce(h["first"] <= last, F.lit(True)) & F.coalesce(first <= h["last"], F.lit(True)),
        )
    )


def _texts(found: Column) -> Column:
    return joined(F.transform(found, lambda h: h["text"]))


def under_floor(policies: PolicySet, when: Column, now: datetime, *, days: bool = False) -> Column:
    """The statutory floors that keep something of this day or instant; an unknown age is kept."""
    older = day_is_older if days else instant_is_older
    return joined(
        *(
            only_if(
                F.array_contains("floor_numbers", n) & ~older(when, floor.keep_at_least, now), f"floor:{floor.label}"
            )
            for n, floor in enumerate(policies.floors)
        ),
        no_texts(),
    )
