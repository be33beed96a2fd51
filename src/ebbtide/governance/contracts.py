"""Table contracts: what tables have to be, what differs, and repairing it (spec §3, "Table contracts").

A contract is what `tables/*.yml` says of a table together with its labels: a table with a PII column has one, written
or not. Formats know which of their settings carry it. A repair only ever changes settings, never data; still, a shorter
version window lets the format's own services remove earlier, so it stays out of what a hold or a floor may cover.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.config.classifiers import LEGAL_HOLD, PII
from ebbtide.config.tables import ContractSettings, TableSettings
from ebbtide.errors import EbbtideError, InputError, RefusedError
from ebbtide.formats.registry import load_contract_terms
from ebbtide.formats.same_table import same_table
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import Labelled
from ebbtide.model.contract import Aspect, Contract, ContractDrift
from ebbtide.model.ids import DatasetId
from ebbtide.state.values import Hold, HoldScope

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbtide.model.dataset import Catalog

_HELD = f"{LEGAL_HOLD}.is_true"
_WITH_KEYS = ("hudi", "paimon")


@dataclass(frozen=True, slots=True)
class DriftRepair:
    """What was done about a drift, or would be; `because` says why nothing was."""

    drift: ContractDrift
    done: bool
    because: str | None = None


def contracts(labelled: Labelled, inventory: Inventory) -> dict[str, Contract]:
    """The contract of every table that has one, those that are still to be created included."""
    columns: dict[str, list[str]] = {table_id: [] for table_id in inventory.current.entries}
    personal: dict[str, set[str]] = {}
    for row in labelled.columns().to_pylist():
        columns[row["table_id"]].append(row["column_id"])
        if any(label.startswith(f"{PII}.") for label in row["labels"]):
            personal.setdefault(row["table_id"], set()).add(row["column_id"])
    found = {}
    for row in labelled.tables().to_pylist():
        table_id = row["table_id"]
        settings = labelled.settings.get(table_id)
        hidden = leaves(columns[table_id], personal.get(table_id, set()))
        if row["is_pii"] or (settings and (settings.contract or settings.enforce or settings.is_pii is not None)):
            found[table_id] = _contract(table_id, settings, row["is_pii"], hidden, held=_HELD in row["labels"])
    for table_id, settings in labelled.settings.items():
        if table_id not in inventory.current.entries and settings.contract and settings.contract.columns:
            said = {name for name, labels in settings.columns.items() if any(x.startswith(f"{PII}.") for x in labels)}
            hidden = leaves(list(settings.contract.columns), said)
            is_pii = bool(settings.is_pii or hidden)
            found[table_id] = _contract(table_id, settings, is_pii, hidden, held=_HELD in settings.labels)
    return found


def leaves(columns: Sequence[str], personal: Collection[str]) -> tuple[str, ...]:
    """The columns that hold values: a label on a struct counts for its fields, which have the statistics."""
    parents = {name.rpartition(".")[0] for name in columns}
    return tuple(
        name
        for name in columns
        if name not in parents and any(name == one or name.startswith(f"{one}.") for one in personal)
    )


def _contract(
    table_id: str, settings: TableSettings | None, is_pii: bool, hidden: tuple[str, ...], *, held: bool
) -> Contract:
    said = (settings and settings.contract) or ContractSettings()
    return Contract(
        table_id=table_id,
        is_pii=is_pii,
        window=said.versions,
        pii_columns=hidden,
        columns=said.columns,
        partitioned_by=said.partitioned_by,
        key=said.key,
        enforce=bool(settings and settings.enforce),
        keeps_versions=held,
    )


def drift(labelled: Labelled, inventory: Inventory) -> list[ContractDrift]:
    """Everything that is not as a contract says, by table. A table that could not be read is left to `scan_errors`."""
    wanted = contracts(labelled, inventory)
    types: dict[str, dict[str, str]] = {}
    for row in inventory.table("columns").select(["table_id", "column_id", "type", "position"]).to_pylist():
        types.setdefault(row["table_id"], {})[row["column_id"]] = row["type"]
    drifts = [_missing(contract) for table_id, contract in wanted.items() if table_id not in inventory.current.entries]
    for row in inventory.rows("tables"):
        if (contract := wanted.get(row["table_id"])) is not None:
            terms = load_contract_terms(row["format"])
            own = types.get(row["table_id"], {})
            drifts += terms.drift(contract, row["properties"] or {}, own)
            drifts += _columns(contract, {name: terms.spark_type(type_) for name, type_ in own.items()})
    return sorted(drifts, key=lambda one: (one.table_id, one.aspect))


def _missing(contract: Contract) -> ContractDrift:
    return ContractDrift(contract.table_id, Aspect.TABLE, "not there", "created: `ebbtide contract create`")


def _columns(contract: Contract, own: Mapping[str, str | None]) -> list[ContractDrift]:
    """Columns that lack, have another type, or are not in the contract. People settle them: data hangs on it."""
    if not contract.columns:
        return []
    top = {name: type_ for name, type_ in own.items() if "." not in name}
    lacking = [f"no {name}" for name in contract.columns if name not in top]
    other = [f"{name} is {top[name]}" for name, type_ in contract.columns.items() if _differs(top.get(name), type_)]
    more = [f"{name} besides" for name in top if name not in contract.columns]
    if not (lacking or other or more):
        return []
    wanted = ", ".join(f"{name} {type_}" for name, type_ in contract.columns.items())
    return [ContractDrift(contract.table_id, Aspect.COLUMNS, ", ".join([*lacking, *other, *more]), wanted)]


def _differs(found: str | None, wanted: str) -> bool:
    plain = wanted.lower().replace(" ", "")
    same = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(plain, plain)
    return found is not None and "<" not in same and found != same


def create(wanted: Iterable[Contract], catalogs: Mapping[str, Catalog], spark: SparkSession | None) -> list[str]:
    """Make the tables; without a session, only look whether they could be made. Gives their names."""
    made = []
    for contract in wanted:
        id_ = DatasetId.parse(contract.table_id)
        catalog = catalogs.get(id_.catalog)
        if catalog is None:
            raise InputError(
                f"{contract.table_id}: there is no catalog {id_.catalog}", hint=f"one of {sorted(catalogs)}"
            )
        _check(contract, catalog)
        if spark is not None:
            try:
                load_contract_terms(catalog.format).create(contract, id_, catalog, spark)
            except EbbtideError:
                raise
            except Exception as error:  # whatever the engine says of types and names
                raise EbbtideError(f"{contract.table_id} was not created: {_first_line(error)}") from None
        made.append(contract.table_id)
    return made


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _check(contract: Contract, catalog: Catalog) -> None:
    if not contract.columns:
        raise InputError(
            f"{contract.table_id}: its contract has no columns", hint="write `contract: {columns: {id: bigint, …}}`"
        )
    if contract.key and catalog.format not in _WITH_KEYS:
        raise InputError(f"{contract.table_id}: {catalog.format} tables have no key", hint="leave `key:` out")
    if catalog.format != "iceberg" and any("(" in by for by in contract.partitioned_by):
        raise InputError(
            f"{contract.table_id}: {catalog.format} partitions by columns only", hint="add a column with the date"
        )
    inner = [by.rpartition("(")[2].rpartition(" ")[2].strip(")") for by in contract.partitioned_by]
    unknown = [name.rpartition(",")[2] for name in inner if name.rpartition(",")[2] not in contract.columns]
    if unknown:
        raise InputError(f"{contract.table_id}: no column {unknown[0]!r} to partition by", hint="add it to `columns:`")


def repair(
    drifts: Iterable[ContractDrift],
    catalogs: Mapping[str, Catalog],
    spark: SparkSession | None,
    *,
    inventory: Inventory,
    holds: Sequence[Hold],
    floored: Collection[str],
) -> list[DriftRepair]:
    """Set what settings can repair, a commit per table; without a session, only say what would be done.

    `floored` are the tables that a floor selects: what it keeps may lie in old versions only.
    """
    found: list[DriftRepair] = []
    fixes: dict[str, dict[str, str]] = {}
    for one in drifts:
        because = _kept_from(one, holds, floored)
        if because is None:
            fixes.setdefault(one.table_id, {}).update(one.fix)
        found.append(DriftRepair(one, because is None, because))
    if spark is not None:
        for table_id, properties in fixes.items():
            table = inventory.found(table_id)
            assert table is not None, "what has a drift was scanned"
            catalog = catalogs[table.id.catalog]
            with same_table(table, catalog, spark):
                load_contract_terms(catalog.format).set_properties(properties, table.id, catalog, spark)
    return found


def _kept_from(one: ContractDrift, holds: Sequence[Hold], floored: Collection[str]) -> str | None:
    """Why a drift is not repaired; None where it can be."""
    if not one.fix:
        return "no setting repairs it: a person must"
    if not one.shortens:
        return None
    for hold in holds:
        # Which tables have rows of a held subject is not known here, so every table may.
        if hold.active and (hold.scope is HoldScope.SUBJECT or hold.dataset == one.table_id):
            return f"hold {hold.id} may need the versions"
    return "a floor may need the versions: set the window by hand" if one.table_id in floored else None


def refuse_existing(wanted: Iterable[str], inventory: Inventory) -> None:
    """A table that is there is never created over."""
    for table_id in wanted:
        if table_id in inventory.current.entries:
            raise RefusedError(f"{table_id} is already there", hint="`ebbtide contract check` says how it differs")
