"""Small Iceberg lakes written with pyiceberg: real tables that need no session."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from ebbtide.model.dataset import Catalog


class SmallLake:
    """A JDBC catalog with a few tables."""

    def __init__(self, root: Path, name: str = "lake") -> None:
        self.root, self.name = root, name
        root.mkdir(parents=True, exist_ok=True)
        self.tables = SqlCatalog(name, uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/{name}")
        self.tables.create_namespace_if_not_exists("db")

    @property
    def catalog(self) -> Catalog:
        uri = f"jdbc:sqlite:{self.root}/catalog.db"
        return Catalog(self.name, "iceberg", f"{self.root}/{self.name}", "jdbc", {"uri": uri})

    def create(self, table: str, commits: int = 1, *, location: str | None = None) -> Path:
        rows = pa.table({"id": pa.array([], pa.int64()), "name": pa.array([], pa.string())})
        made = self.tables.create_table(("db", table), rows.schema, location=location)
        for n in range(commits):
            self.append(table, n)
        return Path(made.location().removeprefix("file://"))

    def append(self, table: str, value: int = 0) -> None:
        self.tables.load_table(("db", table)).append(pa.table({"id": [value], "name": ["x"]}))

    def metadata_file(self, table: str) -> Path:
        return Path(self.tables.load_table(("db", table)).metadata_location.removeprefix("file://"))
