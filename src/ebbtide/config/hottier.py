"""`hottier/*.yml`: tables of a PostgreSQL server that are tiered into the lake (spec §6)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from ebbtide.config import yaml
from ebbtide.config.environment import from_environment
from ebbtide.config.policies import Hours
from ebbtide.config.project import WrongValueError
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration, as_hours
from ebbtide.model.ids import DatasetId, encode_part, written

_CHUNK = re.compile(r"[1-9][0-9]{0,2}[hdw]")


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """Where a server is. It never prints itself: the address may hold a password."""

    secret: SecretStr = field(repr=False)
    where: str = field(default="", compare=False)

    def __str__(self) -> str:
        return "<hidden>"


@dataclass(frozen=True, slots=True)
class HotTable:
    """One table of a server. `name` is as a person wrote it, `cold` a dataset's id.

    `cold` is None where it is plain retention: then its chunks are dropped outright.
    """

    name: str
    time: str
    chunk: Duration
    server: ServerUrl
    where: str
    tier_after: Duration | None = None
    drop_after: Duration | None = None
    cold: str | None = None
    ahead: int = 3
    """Chunks that are there before anybody writes into them."""
    delete_share: float = 0.3
    """The largest share of a chunk that one transaction may delete before a person confirms."""
    max_retained: int = 8 << 30
    """Bytes of the server's log that the mirror may hold back."""
    mirror: Literal["stream", "batch"] = "stream"
    """How its rows come into the lake: change by change from the log, or chunk by chunk once they are sealed."""
    file: str = ""
    """The file that declares it, below the project: what a plan names as the policy of its chunks."""
    compact: Duration | None = None
    """How often the cold table's small files are joined, at the most; None is never."""

    @property
    def path(self) -> tuple[str, str]:
        """Its schema and name on the server; a dot inside of a name is written %2E."""
        schema, _, name = self.name.partition(".")
        if not schema or not name or "." in name:
            hint = "write schema.table; a dot inside a name is %2E"
            raise InputError(f"not a table: {self.name!r}", where=self.where, hint=hint)
        return unquote(schema), unquote(name)

    @property
    def id(self) -> str:
        """The one way in which its name is written: by it the state, the ledger and holds know the table."""
        return ".".join(encode_part(part) for part in self.path)

    @property
    def streamed(self) -> bool:
        """Whether it is mirrored from the server's log."""
        return self.cold is not None and self.mirror == "stream"

    @property
    def gated(self) -> bool:
        """Whether its policy means a cold copy: nothing is dropped that is not proven durable (spec §6)."""
        return self.cold is not None or self.tier_after is not None


class _HotTableSettings(BaseModel):
    """A table of the server."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    name: str = Field(min_length=1, description="`schema.table`")
    time: str = Field(min_length=1, description="the column that has a row's time")
    chunk: str = Field(description="how much time a chunk holds: `1d`")
    tier_after: Hours | None = Field(None, description="the age from which a chunk is proven durable in the lake")
    drop_after: Hours | None = Field(None, description="the age from which a chunk is dropped")
    cold: str | None = Field(None, description="the table of the lake that mirrors it: `catalog.namespace.table`")
    ahead: int = Field(3, strict=True, ge=0, le=400, description="how many chunks are there before they are needed")
    delete_share: float = Field(0.3, strict=True, ge=0, le=1, description="most of a chunk that one DELETE may take")
    max_retained: int = Field(
        8 << 30, strict=True, ge=1 << 20, description="most bytes of log that a mirror holds back"
    )
    compact: Hours | None = Field(
        Duration(1, "d"), description="how often small files of the cold table are joined; `null` is never"
    )

    @field_validator("chunk")
    @classmethod
    def _one_length(cls, value: str) -> str:
        if not _CHUNK.fullmatch(value):
            raise WrongValueError(f"not a chunk's length: {value!r}", "write a number and h, d or w, as in 1d")
        return value


class _HotTierFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)
    server: str = Field(description="a PostgreSQL URL; takes `${NAME}`")
    mirror: Literal["stream", "batch"] = Field(
        "stream", description="how rows come: by logical replication, or chunk by chunk once they are sealed"
    )
    tables: tuple[_HotTableSettings, ...] = Field(min_length=1)


def names_of_hot_tables(root: Path) -> tuple[str, ...]:
    """What is declared, without asking the environment where any server is."""
    return tuple(
        table.name for path in yaml.files_in(root / "hottier") for table in yaml.load(path, _HotTierFile).tables
    )


def colds_of_hot_tables(root: Path) -> dict[str, str | None]:
    """Each declared table's id with its cold table, without asking the environment where any server is."""
    return {
        written(table.name): None if table.cold is None else str(DatasetId.parse(table.cold))
        for path in yaml.files_in(root / "hottier")
        for table in yaml.load(path, _HotTierFile).tables
    }


def load_hot_tables(root: Path, environment: Mapping[str, str] | None = os.environ) -> dict[str, HotTable]:
    """Every table of `hottier/*.yml` by its id. Two entries for one table, or for one cold table, are refused.

    Without an environment servers are not asked for: what a table says of itself is the same.
    """
    found: dict[str, HotTable] = {}
    colds: dict[str, str] = {}
    for path in yaml.files_in(root / "hottier"):
        file, where = yaml.load_with_places(path, _HotTierFile)
        url = file.server
        if environment is not None:
            url = from_environment(url, where=where(("server",)), environment=environment)
        for n, said in enumerate(file.tables):
            here = where(("tables", n))
            table = _checked(
                said, ServerUrl(SecretStr(url), where(("server",))), here, file.mirror, str(path.relative_to(root))
            )
            if table.id in found:
                raise InputError(f"{table.name} stands twice", where=here, hint=f"see {found[table.id].where}")
            if table.cold is not None and table.cold in colds:
                hint = f"{colds[table.cold]} has it: give every hot table a cold table of its own"
                raise InputError(f"{table.cold} would have two mirrors", where=here, hint=hint)
            found[table.id] = table
            if table.cold is not None:
                colds[table.cold] = table.name
    return found


def _checked(
    said: _HotTableSettings, server: ServerUrl, here: str, mirror: Literal["stream", "batch"], file: str
) -> HotTable:
    both = said.tier_after, said.drop_after
    if both[0] is not None and both[1] is not None and as_hours(both[0]) >= as_hours(both[1]):
        raise InputError(
            f"tier_after {both[0]} is not shorter than drop_after {both[1]}",
            where=here,
            hint="chunks are proven durable first and dropped later: let drop_after be the longer one",
        )
    if said.tier_after is not None and said.cold is None:
        raise InputError(
            "tier_after without `cold`", where=here, hint="name the cold table, as in cold: lake.hot.metrics"
        )
    cold = None if said.cold is None else str(DatasetId.parse(said.cold))
    chunk = Duration(int(said.chunk[:-1]), said.chunk[-1])
    return HotTable(
        said.name, said.time, chunk, server, here, said.tier_after, said.drop_after, cold, said.ahead,
        said.delete_share, said.max_retained, mirror, file, said.compact,
    )  # fmt: skip
