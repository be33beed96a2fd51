"""Settings of the formats that no cleanup goes below (spec §2), read from `tables.floors`.

They are parsed once per dataset into rules; each version then asks the rules. A setting that cannot be read keeps
everything: unknown means no. Ages under a floor are measured by the plan's clock.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as F

from ebbtide.model.dataset import OF_CHANGELOG
from ebbtide.plan.world import joined, no_texts, only_if

_COUNTS = ("history.expire.min-snapshots-to-keep", "snapshot.num-retained.min")
_SINCE_COMMIT = ("snapshot.time-retained",)
_OF_CHANGELOGS = ("changelog.time-retained",)
_SINCE_SUPERSEDED = ("delta.deletedFileRetentionDuration",)
_PER_REF = r"^ref\.(.*)\.min-snapshots-to-keep\z"
_OF_BRANCH = r"^branch:(.*)\.snapshot\.(?:num-retained\.min|time-retained)\z"
_AMOUNT = r"([0-9]+) *([a-z]+)"
_LINE_AND_NUMBER = r"^(.*)/([0-9]+)\z"
_MICROS = {
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1_000),
}
_FOR_EVER = 1e17  # three thousand years; a sum of whole numbers could overflow, and keep nothing


def rules() -> dict[str, Column]:
    """Columns for a row of `tables`: how many versions stay per branch, for how long, and from which one on."""
    entries = F.map_entries(F.coalesce(F.col("floors"), F.create_map().cast("map<string,string>")))

    def of_branch(e: Column, name: str) -> Column:
        return e["key"].rlike(_OF_BRANCH) & e["key"].endswith(f".{name}")

    counted = F.filter(
        entries,
        lambda e: e["key"].isin(*_COUNTS) | e["key"].rlike(_PER_REF) | of_branch(e, "snapshot.num-retained.min"),
    )
    timed = F.filter(
        entries,
        lambda e: (
            e["key"].isin(*_SINCE_COMMIT, *_OF_CHANGELOGS, *_SINCE_SUPERSEDED) | of_branch(e, "snapshot.time-retained")
        ),
    )
    consumers = F.filter(entries, lambda e: e["key"].startswith("consumer:") | e["key"].startswith("changelog:"))
    return {
        "floor_counts": F.transform(
            counted,
            lambda e: F.struct(
                _text(e).alias("text"),
                F.concat(*(F.regexp_extract(e["key"], named, 1) for named in (_PER_REF, _OF_BRANCH))).alias("branch"),
                _whole(e["value"]).alias("count"),
            ),
        ),
        "floor_times": F.transform(
            timed,
            lambda e: F.struct(
                _text(e).alias("text"),
                F.regexp_extract(e["key"], _OF_BRANCH, 1).alias("branch"),
                e["key"].isin(*_SINCE_SUPERSEDED).alias("since_superseded"),
                e["key"].isin(*_OF_CHANGELOGS).alias("of_changelogs"),
                _micros(e["value"]).alias("micros"),
            ),
        ),
        "floor_consumers": F.transform(
            consumers,
            lambda e: F.struct(
                F.concat(F.lit("floor:"), e["key"]).alias("text"),
                F.regexp_extract(e["value"], _LINE_AND_NUMBER, 1).alias("line"),
                _whole(F.regexp_extract(e["value"], _LINE_AND_NUMBER, 2)).alias("number"),
            ),
        ),
        "floor_gc": F.when(F.lower(F.col("floors")["gc.enabled"]) == "false", F.array(F.lit("floor:gc.enabled=false")))
        .otherwise(no_texts()),
        # Delta refuses every commit that takes rows out of the head of such a table; older versions may go.
        "floor_append": only_if(
            F.coalesce(F.lower(F.col("floors")["delta.appendOnly"]) == "true", F.lit(False)),
            "floor:delta.appendOnly=true",
        ),
    }  # fmt: skip


def kept_by(now: datetime) -> Column:
    """The rules that keep a version: for rows with `places`, `branches`, both times and `object_id`."""
    counts = F.filter(
        "floor_counts",
        lambda rule: (
            rule["count"].isNull()
            | F.exists(
                F.coalesce(F.col("places"), F.array().cast("array<struct<branch:string,rank:int,views_after:bigint>>")),
                lambda place: (
                    ((rule["branch"] == "") | (rule["branch"] == place["branch"])) & (place["rank"] <= rule["count"])
                ),
            )
        ),
    )
    at = F.unix_micros(F.lit(now))
    times = F.filter(
        "floor_times",
        lambda rule: (
            ((rule["branch"] == "") | F.array_contains("branches", rule["branch"]))
            & (rule["of_changelogs"] == F.col("object_id").rlike(OF_CHANGELOG))
            & F.coalesce(
                F.unix_micros(F.when(rule["since_superseded"], F.col("superseded_at")).otherwise(F.col("committed_at")))
                + rule["micros"]
                >= at,
                F.lit(True),
            )
        ),
    )
    line = F.regexp_extract("object_id", _LINE_AND_NUMBER, 1)
    number = _whole(F.regexp_extract("object_id", _LINE_AND_NUMBER, 2))
    consumers = F.filter(
        "floor_consumers",
        lambda rule: (rule["line"] == line) & F.coalesce(rule["number"] <= number, F.lit(True)),
    )
    kept = joined(*(F.transform(found, lambda rule: rule["text"]) for found in (counts, times, consumers)))
    rules_ = F.size("floor_counts") + F.size("floor_times") + F.size("floor_consumers")
    return F.when(rules_ == 0, F.col("floor_gc")).otherwise(joined(kept, F.col("floor_gc")))


def asks_for_lines() -> Column:
    """Whether a dataset's floors count versions along its branches."""
    return F.size("floor_counts") > 0


def _text(entry: Column) -> Column:
    return F.concat(F.lit("floor:"), entry["key"], F.lit("="), entry["value"])


def _whole(text: Column) -> Column:
    return F.when(text.rlike(r"^[0-9]{1,9}\z"), text).cast("int")


def _micros(text: Column) -> Column:
    """The length of `7 d`, `1h` or `INTERVAL 1 week 2 days`; NULL where any part is not understood, or for ever."""
    text = F.lower(F.trim(text))
    units = F.create_map(*(F.lit(part) for pair in _MICROS.items() for part in pair))
    numbers = F.regexp_extract_all(text, F.lit(_AMOUNT), F.lit(1))
    names = F.regexp_extract_all(text, F.lit(_AMOUNT), F.lit(2))
    parts = F.zip_with(numbers, names, lambda number, name: number.cast("double") * units[name])
    understood = text.rlike(rf"^(?:interval +)?(?:{_AMOUNT} *)+\z")
    total = F.aggregate(parts, F.lit(0.0), lambda total, part: total + part)
    return F.when(understood & (total < _FOR_EVER), total.cast("bigint"))
