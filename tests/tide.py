"""A small lake with a project of its own, on the shared session: for tests that plan, mark and sweep real tables.

Its clock is simulated: tables are written now, and the verbs run at `now + days`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.mark import run_mark
from ebbtide.app.plan import as_json, make_plan
from ebbtide.app.sweep import run_sweep
from ebbtide.config import Project, load_project
from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import FEW_ROWS, session
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Driver, Table
from tests.conformance.drivers import load_driver
from tests.places import ODD, ODD_FOR_PAIMON

_NUMBERS = count()
_TYPES = {"iceberg": ", type: jdbc, uri: 'jdbc:sqlite:catalog-{name}.db'"}


class Tide:
    """A project with a catalog per format that is asked for. Names are unique in the session."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        *formats: str,
        policies: str,
        settings: str = "",
        plainly: Collection[str] = ("paimon",),
    ) -> None:
        """`plainly` are the formats whose warehouse lies in a folder without a variable in its name."""
        self.root, self.started = root / ODD, datetime.now(UTC)
        number, root = next(_NUMBERS), self.root
        root.mkdir(parents=True, exist_ok=True)
        (root / "policies").mkdir()
        names = {format_: f"{format_}{os.getpid()}_{number}" for format_ in formats}
        folders = {format_: f"../{ODD_FOR_PAIMON}" if format_ in plainly else "." for format_ in formats}
        lines = [
            f"  {name}: {{format: {format_}, warehouse: {folders[format_]}/{name}"
            f"{_TYPES.get(format_, '').format(name=name)}}}"
            for format_, name in names.items()
        ]
        (root / "ebbtide.yml").write_text(
            "project: t\nclock: simulated\ncatalogs:\n" + "\n".join(lines) + "\n"
            "ledger: {origin: example.org/t, checkpoint: ../checkpoint}\n" + settings
        )
        self.policies(policies)
        self.spark = session(self.project.catalogs.values(), master="local[1]", conf=FEW_ROWS)
        self.drivers: dict[str, Driver] = {
            format_: load_driver(spark, self.project.catalogs[name]) for format_, name in names.items()
        }

    @property
    def project(self) -> Project:
        return load_project(self.root)

    @property
    def catalogs(self) -> Mapping[str, Catalog]:
        return self.project.catalogs

    @property
    def app(self) -> Ebbtide:
        return Ebbtide(self.project)

    def policies(self, text: str) -> None:
        (self.root / "policies" / "p.yml").write_text(text)

    def at(self, days: float) -> datetime:
        return self.started + timedelta(days=days)

    def plan(self, days: float) -> dict[str, dict[str, Any]]:
        """The objects of the plan on a fresh inventory, by `target:id` (`dataset#target:id` with several datasets)."""
        self.app.scan()
        with make_plan(self.project, now=self.at(days)) as made:
            rows = as_json(made)["objects"]
        several = len({row["dataset"] for row in rows}) > 1
        return {(f"{row['dataset']}#" if several else "") + f"{row['target']}:{row['object']}": row for row in rows}

    def mark(self, days: float, **options: Any) -> MarkReport:
        return run_mark(self.project, as_of=self.at(days), **options)

    def sweep(self, days: float, **options: Any) -> SweepReport:
        return run_sweep(self.project, as_of=self.at(days), **options)

    def states(self, table: Table) -> dict[str, tuple[str, str | None]]:
        """State and message of every transaction in the dataset's history."""
        self.app.scan()
        told = self.app.history(str(table.id))
        rows = [t for branch in told.branches for t in branch.transactions] + [*told.unreachable]
        return {row.id: (row.state, row.message) for row in rows}

    def files(self) -> set[str]:
        """Every file under the warehouses, as paths relative to the project."""
        return {
            self.relative(path)
            for catalog in self.catalogs.values()
            for path in Path(catalog.warehouse).rglob("*")
            if path.is_file()
        }

    def relative(self, path: str | Path) -> str:
        """As `files` has it; a warehouse may lie beside the project."""
        return os.path.relpath(path, self.root)

    def ledger_entries(self) -> list[dict[str, Any]]:
        """What all entries of the ledger say, in order."""
        from ebbtide.app.ledger import open_ledger

        with open_ledger(self.project).reading() as log:
            return [json.loads(body) for _, _, body in log.rows(0, log.size) if body]

    def ledger_kinds(self) -> list[str]:
        return [entry["kind"] for entry in self.ledger_entries()]
