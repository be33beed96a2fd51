"""A hot table in front of a lake, as tests drive it: through the library, on a real server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from ebbtide import Ebbtide
from ebbtide.app.results.tier import Chunk, TierResult
from ebbtide.app.tier_opened import cold_of, hot_tables
from ebbtide.formats.iceberg.cold import ColdTable

NOW = datetime(2024, 1, 20, 12, tzinfo=UTC)
TABLE = "public.m"
COLUMNS = "id bigint, at timestamptz NOT NULL, v text, n numeric(12,2), PRIMARY KEY (id, at)"

PROJECT = """\
project: hot
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
clock: simulated
ledger: {origin: example.org/hot}
"""
POLICY = "  - {name: public.m, time: at, chunk: 1d, tier_after: 7d, drop_after: 10d, cold: lake.hot.m, ahead: 1}\n"


@dataclass
class Hot:
    """The table, its project, and a session of an application."""

    root: Path
    sql: psycopg.Connection[tuple[Any, ...]]
    dsn: str
    policy: str = POLICY
    more: list[psycopg.Connection[tuple[Any, ...]]] = field(default_factory=list)

    def make(self) -> None:
        (self.root / "ebbtide.yml").write_text(PROJECT, encoding="utf-8")
        self.write(self.policy)
        self.sql.execute(f"CREATE TABLE m ({COLUMNS}) PARTITION BY RANGE (at)")
        for day in range(1, 5):
            self.sql.execute(
                f"CREATE TABLE m_{day} PARTITION OF m"
                f" FOR VALUES FROM ('2024-01-0{day} 00:00+00') TO ('2024-01-0{day + 1} 00:00+00')"
            )

    def write(self, policy: str) -> None:
        (self.root / "hottier").mkdir(exist_ok=True)
        os.environ["EBBTIDE_HOT_URL"] = self.dsn
        text = "server: ${EBBTIDE_HOT_URL}\ntables:\n" + policy
        (self.root / "hottier" / "m.yml").write_text(text, encoding="utf-8")

    @property
    def tide(self) -> Ebbtide:
        return Ebbtide(self.root)

    def added(self) -> Hot:
        """Initialised and added: its first copy is in the lake."""
        with self.tide as tide:
            tide.tier.init()
            tide.tier.add(TABLE)
        return self

    def fill(self, *days: int, rows: int = 20) -> Hot:
        for day in days:
            self.sql.execute(
                "INSERT INTO m SELECT %(d)s * 1000 + g, make_timestamptz(2024, 1, %(d)s, 0, 0, 0, 'UTC')"
                " + g * interval '1 minute', 'v' || g, g / 4.0 FROM generate_series(1, %(n)s) g",
                {"d": day, "n": rows},
            )
        return self

    def another(self, *, autocommit: bool = False) -> psycopg.Connection[tuple[Any, ...]]:
        made: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(self.dsn, autocommit=autocommit)
        self.more.append(made)
        return made

    def sync(self) -> TierResult:
        with self.tide as tide:
            return tide.tier.sync(TABLE)[0]

    def run(self, now: datetime = NOW) -> TierResult:
        with self.tide as tide:
            return tide.tier.run(TABLE, as_of=now)[0]

    def status(self) -> Any:
        with self.tide as tide:
            return tide.tier.status(TABLE)[0]

    def chunk(self, name: str) -> Chunk:
        found: Chunk = next(chunk for chunk in self.status().chunks if chunk.name == name)
        return found

    def cold(self) -> ColdTable:
        project = self.tide.project
        found = cold_of(project, hot_tables(project)[TABLE])
        assert found is not None
        return found

    def in_lake(self, columns: Sequence[str] = ("id", "at", "v", "n")) -> list[tuple[Any, ...]]:
        """Every row of the cold table, by its key."""
        table = self.cold().table.scan().to_arrow()
        rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
        return sorted(rows, key=lambda row: row[:2])

    def lose_first_day(self) -> None:
        """Somebody else removes rows of 1 January from the lake."""
        self.cold().table.delete("at < '2024-01-02T00:00:00+00:00'")

    def here(self) -> list[tuple[Any, ...]]:
        """Every row of the hot table, by its key."""
        return self.sql.execute("SELECT id, at, v, n FROM m ORDER BY id, at").fetchall()

    def chunks_here(self) -> set[str]:
        """The partitions of the hot table that are no tombstones."""
        return {
            row[0]
            for row in self.sql.execute(
                "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                " WHERE i.inhparent = 'm'::regclass AND c.relname !~ '_gone' AND c.relname ~ '^m_[1-4]$'"
            )
        }

    def partitions(self) -> set[str]:
        """All partitions of the hot table."""
        query = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'm'::regclass"
        return {row[0] for row in self.sql.execute(query)}

    def close(self) -> None:
        for each in (*self.more, self.sql):
            each.close()
