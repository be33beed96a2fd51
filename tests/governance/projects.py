"""Small projects whose catalog has a name of its own, so that the shared session can learn it beside the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner, Result

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.cli.commands import app

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
CLASSIFIERS = """\
classifiers:
  - {name: PII, kind: column, propagate: true, labels: [tag, email]}
  - {name: TableContent, kind: table, propagate: true, labels: [machine_data, static_data, user_data]}
  - {name: LegalHold, kind: table, propagate: false, labels: [is_true]}
"""


@dataclass(frozen=True, slots=True)
class SmallProject:
    """A folder with a project file and an Iceberg catalog, filled by pyiceberg."""

    root: Path
    name: str

    @classmethod
    def make(cls, root: Path, name: str, *, more: str = "") -> SmallProject:
        project = cls(root, name)
        place = 'type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake'
        project.write(
            {
                "ebbtide.yml": f"project: {name}\ncatalogs:\n  {name}: {{format: iceberg, {place}}}\n{more}",
                "classifiers/pii.yml": CLASSIFIERS,
            }
        )
        project.catalog.create_namespace_if_not_exists("app")
        return project

    @property
    def catalog(self) -> SqlCatalog:
        return SqlCatalog(self.name, uri=f"sqlite:///{self.root}/catalog.db", warehouse=f"file://{self.root}/lake")

    @property
    def tide(self) -> Ebbtide:
        return Ebbtide(self.root)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def table(self, name: str, rows: pa.Table) -> None:
        """Create a table, or add rows to it."""
        made = self.catalog.create_table_if_not_exists(("app", name), rows.schema)
        if rows.num_rows:
            made.append(rows)

    def run(self, *arguments: str) -> Result:
        """The command line, in this process and so on the shared session."""
        return CliRunner().invoke(app, ["--project", str(self.root), *arguments], env={"COLUMNS": "200"})
