"""`ebbtide init`: a commented project to start from."""

from __future__ import annotations

from pathlib import Path

from ebbtide.config.schemas import modeline, schema_files
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError, RefusedError
from ebbtide.governance.packs import Installed, install, pack_names
from ebbtide.private import private_folder, writing

_PROJECT = """\
# An Ebbtide project. Paths are relative to this file. docs/configuration.md has every key.
project: {name}

# Each catalog has a name, a format and a warehouse; further keys go to the engine as they are.
catalogs:
  # Iceberg: type is jdbc, hadoop, rest, hive or glue.
  lake: {{format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}}
  # Delta and Hudi: tables are found at <warehouse>/<namespace>/<table>.
  # events: {{format: delta, warehouse: ./delta}}
  # cdc: {{format: hudi, warehouse: ./hudi}}
  # Paimon: the catalog's own layout.
  # stream: {{format: paimon, warehouse: ./paimon}}

# What Spark runs on, and any of its settings.
spark: {{master: "local[*]", conf: {{}}}}

# Where the inventory of the last scan is kept.
inventory: .ebbtide/inventory
"""

_POLICIES = """\
# What may live how long. Nothing goes by this file alone: `ebbtide plan` shows what it would do, `ebbtide mark`
# schedules it, and only `ebbtide sweep` (or `run`), after the grace, removes anything. docs/policies.md has every key.
policies:
  # Old versions of every table: time travel ends after a month, and the last ten versions stay whatever their age.
  # No row that a branch, a tag or a reader still sees is touched.
  - name: old-versions
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 10}
    grace: 14d

  # Rows by age, partition by partition, for tables that somebody labelled:
  # - name: user-data
  #   select: {tables: ["lake.**"], any_labels: [TableContent.user_data]}
  #   partitions: {older_than: 90d, age_of: oldest}
  #   grace: 14d
"""


def init_project(folder: Path, *, name: str | None = None, pack: str | None = None, dry_run: bool = False) -> Installed:
    """Write a new project into `folder`, and a pack into a new or an existing one. Only schemas are overwritten."""
    path = folder / "ebbtide.yml"
    if path.exists() and pack is None:
        raise RefusedError(f"{path} is already there", hint="edit it, or init in another folder; --schemas for editors")
    if pack is not None and pack not in pack_names():
        raise InputError(f"no pack {pack!r}", hint=nearest(pack, pack_names()))
    fresh, policies = not path.exists(), folder / "policies" / "retention.yml"
    sample = fresh and pack is None and not any((folder / "policies").glob("*"))
    with writing(folder, hint="init in a folder that can be written", asked=True):
        if fresh and not dry_run:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(modeline("ebbtide", depth=0) + _PROJECT.format(name=name or folder.resolve().name))
        if sample and not dry_run:
            policies.parent.mkdir(exist_ok=True)
            policies.write_text(modeline("policies", depth=1) + _POLICIES)
        added = install(pack, folder, dry_run=dry_run) if pack is not None else Installed((), ())
        made = (path, policies) if sample else (path,)
        write_schemas(folder, dry_run=dry_run)
    return Installed((*(made if fresh else ()), *added.written), added.kept)


def write_schemas(folder: Path, *, dry_run: bool) -> None:
    """What editors check the project's files with, as this version of Ebbtide reads them."""
    for path, text in {} if dry_run else schema_files().items():
        private_folder((folder / path).parent)
        (folder / path).write_text(text)


def init_schemas(folder: Path, *, dry_run: bool = False) -> None:
    """The schemas alone, into a project that is there."""
    if not (folder / "ebbtide.yml").exists():
        raise InputError(f"there is no project in {folder}", hint="`ebbtide init` makes one, with its schemas")
    with writing(folder, hint="init in a folder that can be written", asked=True):
        write_schemas(folder, dry_run=dry_run)
