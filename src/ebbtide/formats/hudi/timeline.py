"""A table's timeline as values: what Hudi's Java library says, fetched as JSON text, one answer per commit.

Only plain values leave this module. Whatever Java raises becomes an `UnreadableError` that names the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ebbtide.errors import SetupError, UnreadableError
from ebbtide.model.dataset import TableHandle
from ebbtide.model.paths import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The actions that a transaction may have; clean, savepoint, rollback, restore and indexing are none (formats.md).
COMMIT_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})
_REPLACE = "replacecommit"
_VERSION_OF_HUDI_1 = 8
_HINT = "restore the file from a copy, or repair the table with Hudi's own tools"


@dataclass(frozen=True, slots=True)
class Write:
    """One file that a commit wrote. `path` is relative to the table; `replaces` says that a slice was there before."""

    group: tuple[str, str]
    path: str
    rows: int | None
    deletes: int
    updates: int
    bytes: int
    replaces: bool


@dataclass(frozen=True, slots=True)
class HudiCommit:
    """One completed commit. Times are texts in the timeline's zone, as Hudi compares them; `at` is UTC."""

    id: str
    action: str
    operation: str
    completed: str
    at: datetime
    writes: tuple[Write, ...]
    replaced: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a table's metadata says. `commits` run from oldest to newest; `pending` are `(id, action, state)`."""

    properties: Mapping[str, str]
    schema: Mapping[str, Any] | None
    commits: tuple[HudiCommit, ...]
    savepoints: tuple[str, ...]
    pending: tuple[tuple[str, str, str], ...]

    @property
    def logs_named_by_commit(self) -> bool:
        """Whether a log file is named after the commit that wrote it; before version 8, after its base file."""
        return version_of(self.properties) >= _VERSION_OF_HUDI_1

    @property
    def merge_on_read(self) -> bool:
        return self.properties.get("hoodie.table.type") == "MERGE_ON_READ"


def read_timeline(found: TableHandle, spark: SparkSession | None) -> Timeline:
    """The active and the archived timeline of a table, its settings and its schema."""
    hudi = library(spark)
    with _readable(found, f"{found.location}/.hoodie/hoodie.properties"):
        as_json = hudi.common.util.JsonUtils.toString
        conf = hudi.storage.hadoop.HadoopStorageConfiguration(spark._jsc.hadoopConfiguration())  # type: ignore[union-attr]
        builder = hudi.common.table.HoodieTableMetaClient.builder()
        client = builder.setConf(conf).setBasePath(java_path(found.location)).build()
        config = client.getTableConfig()
        properties = {key: str(value) for key, value in json.loads(as_json(config.propsMap())).items()}
        zone_name: str = config.getTimelineTimezone().getZoneId().getId()
    zone = _zone(found, zone_name)
    with _readable(found, f"{found.location}/.hoodie, its timeline"):
        active = client.getActiveTimeline()
        instants = json.loads(as_json(active.getInstants()))
    folder = f"{found.location}/.hoodie"
    if version_of(properties) >= _VERSION_OF_HUDI_1:
        folder += f"/{properties.get('hoodie.timeline.path', 'timeline')}"
    commits = {commit.id: commit for commit in _commits(found, active, instants, zone, folder)}
    with _readable(found, f"{found.location}/.hoodie, its archived timeline"):
        archived = client.getArchivedTimeline()
        if not archived.empty():
            archived.loadCompletedInstantDetailsInMemory()
        old = json.loads(as_json(archived.getInstants()))
    # An instant can be in both for a moment while it is being archived.
    old_commits = {
        c.id: c for c in _commits(found, archived, old, zone, f"{folder}, in the archive: ") if c.id not in commits
    }
    with _readable(found, f"{found.location}/.hoodie, the table's schema"):
        schema = hudi.common.table.TableSchemaResolver(client).getTableSchemaIfPresent(False)
        struct = (
            json.loads(hudi.HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(schema.get()).json())
            if schema.isPresent()
            else None
        )
    both = (old_commits | commits).values()
    # Before Hudi 1 the completion is the file's modification time, which a copy of the table does not keep.
    in_order = version_of(properties) >= _VERSION_OF_HUDI_1
    return Timeline(
        properties,
        struct,
        tuple(sorted(both, key=lambda commit: (commit.completed if in_order else "", commit.id))),
        tuple(i["requestedTime"] for i in instants if i["action"] == "savepoint" and i["state"] == "COMPLETED"),
        tuple((i["requestedTime"], i["action"], i["state"]) for i in instants if i["state"] != "COMPLETED"),
    )


def library(spark: SparkSession | None) -> Any:
    """Hudi's package in the session's Java."""
    from ebbtide.spark.session import formats_of_session

    if "hudi" not in formats_of_session():
        raise SetupError("this version of PySpark has no Hudi", hint="use the Spark 3.5 profile")
    if spark is None or spark._jvm is None:
        raise SetupError("a Hudi table is read through a Spark session", hint="hand in a session that runs")
    return spark._jvm.org.apache.hudi


def version_of(properties: Mapping[str, str]) -> int:
    version = properties.get("hoodie.table.version", "")
    return int(version) if version.isdecimal() else 0


def _commits(
    found: TableHandle, timeline: Any, instants: list[Mapping[str, Any]], zone: tzinfo, folder: str
) -> Iterator[HudiCommit]:
    java_instants = timeline.getInstants()
    for position, instant in enumerate(instants):
        action = instant["action"]
        if action not in COMMIT_ACTIONS or instant["state"] != "COMPLETED":
            continue
        place = f"{folder}/{_file_name(instant)}"
        with _readable(found, place):
            java_instant = java_instants[position]
            read = timeline.readReplaceCommitMetadata if action == _REPLACE else timeline.readCommitMetadata
            content = json.loads(read(java_instant).toJsonString())
            commit = _commit(found, instant, content, zone)
            # Hudi takes an empty file for a commit that did nothing; a write that was cut off looks the same.
            empty = not commit.writes and not content.get("extraMetadata") and timeline.isEmpty(java_instant)
        if empty:
            raise UnreadableError(str(found.id), f"{place} is an empty file", hint=_HINT)
        yield commit


def _file_name(instant: Mapping[str, Any]) -> str:
    """The name of a completed instant's file; `isLegacy` marks the naming from before Hudi 1."""
    times = (
        instant["requestedTime"] if instant["isLegacy"] else f"{instant['requestedTime']}_{instant['completionTime']}"
    )
    return f"{times}.{instant['action']}"


def _commit(found: TableHandle, instant: Mapping[str, Any], content: Mapping[str, Any], zone: tzinfo) -> HudiCommit:
    completed = instant["completionTime"] or instant["requestedTime"]
    stats = content.get("partitionToWriteStats") or {}
    replaced = content.get("partitionToReplaceFileIds") or {}
    return HudiCommit(
        id=instant["requestedTime"],
        action=instant["action"],
        operation=content.get("operationType") or "",
        completed=completed,
        at=_utc(found, completed, zone),
        writes=tuple(_write(partition, stat) for partition, group in stats.items() for stat in group if stat["path"]),
        replaced=tuple((partition, file_id) for partition, ids in replaced.items() for file_id in ids),
    )


def _write(partition: str, stat: Mapping[str, Any]) -> Write:
    return Write(
        group=(partition, stat["fileId"]),
        path=stat["path"],
        rows=stat["numWrites"],
        deletes=stat["numDeletes"],
        updates=stat["numUpdateWrites"],
        bytes=stat["fileSizeInBytes"],
        replaces=stat["prevCommit"] not in (None, "null"),
    )


def _utc(found: TableHandle, text: str, zone: tzinfo) -> datetime:
    """An instant's text as UTC. Where a clock change makes it ambiguous the later reading counts: retain more."""
    for pattern, length in (("%Y%m%d%H%M%S%f", 17), ("%Y%m%d%H%M%S", 14)):
        if len(text) == length:
            try:
                return datetime.strptime(text, pattern).replace(tzinfo=zone, fold=1).astimezone(UTC)
            except (ValueError, OverflowError):
                break
    raise UnreadableError(str(found.id), f"instant time {text!r} is no time", hint=_HINT)


def _zone(found: TableHandle, name: str) -> tzinfo:
    try:
        return UTC if name in ("Z", "UTC", "GMT") else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UnreadableError(
            str(found.id),
            f"the timeline's time zone {name!r} is not known here",
            hint="set the session's user.timezone to a region's name, or hoodie.table.timeline.timezone to UTC",
        ) from error


def java_path(location: str) -> str:
    """The table's path as Hadoop opens it: local paths plain, S3 through its S3A connector."""
    plain = local_path(location)
    return plain if plain is not None else location.replace("s3://", "s3a://", 1)


@contextmanager
def _readable(found: TableHandle, place: str) -> Iterator[None]:
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        raise UnreadableError(str(found.id), f"{place} cannot be read: {_root(error)}", hint=_HINT) from error
    except (Py4JError, OSError) as error:
        raise UnreadableError(
            str(found.id), f"{place} cannot be read: Spark does not answer", hint="start the session again"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableError(str(found.id), f"{place} holds something unexpected: {error!r}", hint=_HINT) from error


def _root(error: Any) -> str:
    """The first line of the innermost Java exception."""
    cause = error.java_exception
    for _ in range(20):
        inner = cause.getCause()
        if inner is None:
            break
        cause = inner
    return str(cause.toString()).partition("\n")[0][:300]
