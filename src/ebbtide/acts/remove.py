"""Acts of the kind `remove`: the format's own operations on metadata, then exactly the files that were named."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ebbtide.acts.abilities import why_not_one_by_one
from ebbtide.acts.act import Act, ActResult, CommitRemoval, Phase, WatchFiles
from ebbtide.acts.rows import refuse_more, still_match
from ebbtide.errors import RefusedError
from ebbtide.formats.registry import load_format
from ebbtide.formats.same_table import same_table
from ebbtide.inventory.listing import look_again
from ebbtide.model.paths import is_inside
from ebbtide.model.removal import FileDeletion, Removal
from ebbtide.storage.handles import behind_links, led_elsewhere
from ebbtide.storage.remove import remove_empty_folders, remove_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Remover:
    """Carries out removals. `check` raises before a batch once the lease is lost, or the run was asked to stop."""

    session: Callable[[], SparkSession]
    check: Callable[[], None]

    def commit(self, result: ActResult) -> ActResult:
        """Let go of what the removal names, if it is still the same table in the same place."""
        stage = result.act.stage(Phase.METADATA)
        assert isinstance(stage, CommitRemoval)
        act, removal, spark = result.act, stage.removal, self.session()
        if stage.most_rows is not None:
            for delete in removal.rows:
                refuse_more(removal.found, act.catalog, delete, stage.most_rows, spark)
        if (place := led_elsewhere(act.places)) is not None:
            raise RefusedError(f"{place} is another folder than when the sweep began: nothing was changed")
        self.check()
        with same_table(removal.found, act.catalog, spark, goes=removal.table):
            committed = load_format(act.catalog.format).commit(removal, act.catalog, spark)
        done = [delete for delete in removal.rows if delete.object not in committed.sent_back]
        unhit = {delete.object for delete in done if still_match(removal.found, act.catalog, delete, spark)}
        return replace(result, committed=committed, unhit=frozenset(unhit))

    def delete(self, result: ActResult, also: Collection[str]) -> ActResult:
        """Remove what nothing needs; nothing at all where somebody could not be read."""
        act, removal = result.act, result.act.removal
        if isinstance(act.stage(Phase.FILES), WatchFiles):
            return result
        if result.unread is not None:  # an operation of the format's own could take what we cannot name
            return replace(result, deletion=FileDeletion(because=result.unread))
        if removal is None:
            return replace(result, deletion=self._by_list(act, result.deletes))
        return replace(result, deletion=self._by_format(act, removal, [*result.deletes, *also]))

    def _by_format(self, act: Act, removal: Removal, paths: Collection[str]) -> FileDeletion:
        # No format is asked for a file behind a link: its own operations remove by path, and would follow it.
        linked = behind_links(paths, act.places)
        paths = [path for path in paths if path not in linked]
        freed = FileDeletion()
        if paths or removal.versions:
            spark = self.session()
            with same_table(removal.found, act.catalog, spark, goes=removal.table):
                freed = load_format(act.catalog.format).delete_files(removal, paths, act.catalog, spark, self.check)
        return replace(freed, failed={**freed.failed, **linked, **_without_empty_folders(act, removal, paths)})

    def _by_list(self, act: Act, paths: Collection[str]) -> FileDeletion:
        """Orphans, and what an earlier act left. An orphan that was written since it was listed stays."""
        if (because := why_not_one_by_one(act)) is not None:
            return FileDeletion(because=because)
        if not paths:
            return FileDeletion()
        listed = {file.path: file.modified for file in act.files if file.modified is not None}
        kept = look_again({path: listed[path] for path in paths if path in listed}, act.catalog.options)
        going = [path for path in paths if path not in kept]
        failed = remove_files(going, act.catalog.options, self.check, act.places)
        folders = {path.rpartition("/")[0] for path in paths}
        if (root := act.root) is not None:
            inside = {folder for folder in folders if folder != root and is_inside(folder, root)}
            failed |= remove_empty_folders(inside, root, act.places)
        return FileDeletion(failed=failed | kept)


def _without_empty_folders(act: Act, removal: Removal, paths: Collection[str]) -> dict[str, str]:
    """Folders that the files leave empty go; so does one that the table lay in before, or that lies there no more."""
    stayed: dict[str, str] = {}
    for home in act.homes:
        stays = home == removal.found.location and not removal.table
        root = home if stays else home.rpartition("/")[0]
        folders = {path.rpartition("/")[0] for path in paths if is_inside(path, home)}
        stayed |= remove_empty_folders({folder for folder in folders if folder != root}, root, act.places)
    return stayed
