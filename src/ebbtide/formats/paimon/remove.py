"""Removing from one Paimon table (spec §2, §7; formats.md, "Calls that bite").

`commit` drops branches, takes planned files out of heads in one overwrite commit, and deletes rows. Versions and whole
tables wait for `delete_files`: Paimon's expiry and its `DROP TABLE` remove the files in the same act. A dropped branch
leaves its files, which are orphans then; the tag that it hung on stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ebbtide.formats.conflicts import WriterWasFasterError, retry_on_conflict
from ebbtide.formats.paimon.discover import stands_as_found
from ebbtide.formats.paimon.expire import Expirable, expirable, expire
from ebbtide.formats.paimon.java import Changer, Library, open_changer, open_library
from ebbtide.formats.paimon.lines import MAIN, BranchLine, BranchLines, parse_lines
from ebbtide.formats.row_deletes import rows_of
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.paths import normalise
from ebbtide.model.removal import Committed, Drop, FileDeletion, Removal, RowDelete
from ebbtide.spark.session import quote, quote_text, sibling
from ebbtide.storage.files import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A commit of Paimon's own writers cleans up as the table's settings say: snapshots always, the others where it is told
# to. This one may not.
_NO_EXPIRY = {f"snapshot.num-retained.{which}": str(2**31 - 1) for which in ("min", "max")}
_NEITHER = {
    "partition.expiration-time": "36500 d",
    "consumer.expiration-time": "36500 d",
    "tag.automatic-creation": "none",
    "tag.num-retained-max": str(2**31 - 1),
    "tag.default-time-retained": "36500 d",
    **{f"changelog.num-retained.{which}": str(2**31 - 1) for which in ("min", "max")},
}


def commit(removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
    """Change metadata. Versions that `delete_files` can expire are neither done nor sent back."""
    found = removal.found
    library, changer = open_library(found, catalog, spark), open_changer(found, catalog, spark)
    done: list[str] = []
    sent_back: dict[str, str] = {}
    for branch in removal.branches:
        if reason := _drop_branch(found, library, branch, catalog, spark):
            sent_back[branch] = reason
        else:
            done.append(branch)
    for branch in sorted({drop.branch for drop in removal.drops}):
        drops = [drop for drop in removal.drops if drop.branch == branch]
        _drop(found, library, changer, branch, drops, done, sent_back)
    for rows in removal.rows:
        if reason := _delete(found, rows, spark):
            sent_back[rows.object] = reason
        else:
            done.append(rows.object)
    lines = _lines(found, library)
    ready = _expirable(removal, catalog, lines)
    head = lines.heads().get(MAIN)
    return Committed(version=head, done=(*done, *sorted(ready.gone)), sent_back={**sent_back, **ready.sent_back})


def delete_files(
    removal: Removal,
    paths: Collection[str],
    catalog: Catalog,
    spark: SparkSession,
    before_batch: Callable[[], None],
) -> FileDeletion:
    """Expire what can go, or drop the table, where that takes nothing but `paths`."""
    found = removal.found
    if removal.table:
        return _drop_table(found, frozenset(paths), catalog, spark, before_batch)
    library, changer = open_library(found, catalog, spark), open_changer(found, catalog, spark)
    ready = _expirable(removal, catalog, _lines(found, library))
    if not ready.ranges:
        reasons = sorted({*ready.sent_back.values()})
        left = "what a dropped branch or a drop leaves behind goes with versions, or as orphans"
        return FileDeletion(because="; ".join(reasons) or left) if paths else FileDeletion()
    freed = expire(changer, ready.ranges, {_relative(found, path) for path in paths}, before_batch)
    return FileDeletion(
        failed={normalise(f"{found.location}/{name}"): why for name, why in freed.failed.items()}, because=freed.because
    )


def _lines(found: TableHandle, library: Library) -> BranchLines:
    return parse_lines(str(found.id), library.history()["branches"])


def _expirable(removal: Removal, catalog: Catalog, lines: BranchLines) -> Expirable:
    store = open_store(removal.found.location, catalog.options)
    return expirable(lines, removal.versions, lambda line: _earliest(removal.found, store, line))


def _earliest(found: TableHandle, store: Store, line: BranchLine) -> int | None:
    """Where a line begins: at its hint while that snapshot is there, else at the lowest one, as for Paimon itself."""
    place = "" if line.name == MAIN else f"branch/branch-{line.name}/"
    hint = f"{found.location}/{place}snapshot/EARLIEST"
    if store.stat(hint) is not None:
        text = store.read(hint).decode("utf-8", "replace").strip()
        if text.isdecimal() and int(text) in line.snapshots:
            return int(text)
    return min(line.snapshots, default=None)


def _relative(found: TableHandle, path: str) -> str:
    return normalise(path).removeprefix(f"{found.location}/")


def _drop_branch(
    found: TableHandle, library: Library, branch: str, catalog: Catalog, spark: SparkSession
) -> str | None:
    """Drop a branch; why not, where it cannot be dropped. One that is gone already is done."""
    history = library.history()
    if branch == MAIN:
        return "the main branch is never dropped"
    if branch not in history["branches"]:
        return None
    if json.loads(history["schema"])["options"].get("scan.fallback-branch") == branch:
        return "readers of main fall back to it (scan.fallback-branch)"
    if not stands_as_found(found, branch, open_store(found.location, catalog.options)):
        return "it was written to, or made anew, since the plan"
    spark.sql(
        f"CALL {quote(found.id.catalog)}.sys.delete_branch("
        f"table => {quote_text(quote(*found.id.namespace, found.id.table))}, branch => {quote_text(branch)})"
    ).collect()
    return None


def _drop(
    found: TableHandle,
    library: Library,
    changer: Changer,
    branch: str,
    drops: list[Drop],
    done: list[str],
    sent_back: dict[str, str],
) -> None:
    """Drop partitions from a branch's head in one commit, tried again where writers come between."""
    whole = [drop for drop in drops if drop.partition is not None]
    for drop in drops:
        if drop.partition is None:
            sent_back[drop.object] = "Paimon drops whole partitions, not single files"
    wanted = [(number, _relative(found, path)) for number, drop in enumerate(whole) for path in drop.paths]

    def drop_at_head() -> dict[str, Any]:
        head = next((line.head for line in _lines(found, library).lines if line.name == branch), None)
        answer: dict[str, Any] = {} if head is None else changer.drop(branch, head, wanted)
        if answer.get("conflict"):
            raise WriterWasFasterError
        return answer

    answer = retry_on_conflict(f"{found.id} branch {branch}", (), drop_at_head)
    for number, drop in enumerate(whole):
        live, missing, late = answer.get("counts", {}).get(str(number), (0, 0, 0))
        if late:
            sent_back[drop.object] = f"a late write: {late} live files in the partition were not planned"
        elif live and missing:
            sent_back[drop.object] = f"{missing} of its {live + missing} files are no longer live: it was rewritten"
        else:
            done.append(drop.object)


def _delete(found: TableHandle, rows: RowDelete, spark: SparkSession) -> str | None:
    """Delete rows by SQL; why not, where it cannot be. Where none match, nothing is committed."""
    quiet = sibling(spark)
    table = quote(found.id.catalog, *found.id.namespace, found.id.table)
    told = {row["key"] for row in quiet.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    for name, value in (_NO_EXPIRY | {name: value for name, value in _NEITHER.items() if name in told}).items():
        quiet.conf.set(f"spark.paimon.{name}", value)

    def delete_matching() -> str | None:
        matching = rows_of(rows, quiet.table(table))
        if isinstance(matching, str):
            return matching
        if matching.frame.isEmpty():
            return None
        try:
            quiet.sql(f"DELETE FROM {table} WHERE {matching.predicate}")  # noqa: S608 (quoted, and a policy's own predicate)
        except (Py4JJavaError, PySparkException) as error:
            # Paimon 0.9 has no exception of its own for it: a RuntimeException, and these words.
            if "conflict" in str(error).lower():
                raise WriterWasFasterError from error
            raise
        return None

    return retry_on_conflict(f"{found.id} rows", (), delete_matching)


def _drop_table(
    found: TableHandle, paths: frozenset[str], catalog: Catalog, spark: SparkSession, before_batch: Callable[[], None]
) -> FileDeletion:
    """`DROP TABLE` removes the folder with all that is in it, so all that is in it must be named."""
    entries = open_store(found.location, catalog.options).list(found.location, recursive=True)
    foreign = sorted(entry.path for entry in entries if not entry.is_folder and entry.path not in paths)
    if foreign:
        return FileDeletion(
            because=f"the table's folder also holds {foreign[0]} ({len(foreign)} in all), which nobody named"
        )
    before_batch()
    spark.sql(f"DROP TABLE IF EXISTS {quote(found.id.catalog, *found.id.namespace, found.id.table)}")
    return FileDeletion()
