"""An Iceberg table that a mirror writes, through pyiceberg and without a JVM: one commit a batch, exactly once.

The position of the log that a commit brings the table to is a property of its snapshot (`position`): rows and position
are there together, or neither is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ebbtide.errors import ConflictError, InputError, RefusedError, UnreadableError, kind_of
from ebbtide.formats.iceberg.discover import sqlalchemy_url
from ebbtide.formats.iceberg.position import PREFIX, Position, needed_for_position, position_of
from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog as Service
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table, Transaction

_DAY = 86_400_000_000
_CANNOT = "a cold table lies in a catalog of type jdbc, rest, hive or glue"


@dataclass(frozen=True, slots=True)
class ColdRange:
    """A time range of the cold table, `[first, last)`; a missing end is open."""

    column: str
    first: datetime | None
    last: datetime | None
    kind: str


class ColdTable:
    """One cold table. Reads are of the version that was asked for, or of its head."""

    def __init__(self, service: Service, name: tuple[str, ...]) -> None:
        self._service, self._name = service, name
        self.table: Table = service.load_table(name)

    @classmethod
    def open(cls, catalog: Catalog, dataset: DatasetId) -> ColdTable | None:
        """The table; None where the catalog has none of that name."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        service = _service(catalog)
        try:
            return cls(service, (*dataset.namespace, dataset.table))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:
            raise UnreadableError(str(dataset), kind_of(error), hint="look at its catalog and its storage") from error

    @classmethod
    def create(cls, catalog: Catalog, dataset: DatasetId, schema: pa.Schema, time: str) -> ColdTable:
        """A new table with these columns, partitioned by the day of its time."""
        from pyiceberg.transforms import DayTransform

        service = _service(catalog)
        service.create_namespace_if_not_exists(dataset.namespace)
        name = (*dataset.namespace, dataset.table)
        properties = {"format-version": "2"}
        day = f"{time}_day"
        while day in schema.names:
            day += "_"
        with service.create_table_transaction(name, schema, properties=properties) as made, made.update_spec() as spec:
            spec.add_field(time, DayTransform(), day)
        return cls(service, name)

    @property
    def version(self) -> str | None:
        """The head's snapshot."""
        head = self.table.current_snapshot()
        return None if head is None else str(head.snapshot_id)

    @property
    def columns(self) -> pa.Schema:
        return self.table.schema().as_arrow()

    def position(self) -> Position | None:
        """How far the table is; None where nothing says so any more."""
        return position_of(self.table.metadata)

    def remembered(self) -> Mapping[int, str] | None:
        """The columns of the source by their numbers, as `follow` was told them last."""
        said = self.table.properties.get(f"{PREFIX}columns")
        return None if said is None else {int(number): name for number, name in json.loads(said).items()}

    def differing(self, fields: Iterable[pa.Field]) -> tuple[list[pa.Field], list[str]]:
        """Of these columns those that are new here or whose type grew, and in words those that cannot be followed."""
        schema, grown, unfit = self.table.schema(), [], []
        days = {field.name for field in self.table.spec().fields}
        for field in fields:
            wanted = _iceberg_type(field)
            if field.name not in schema.column_names:
                if field.name in days:
                    unfit.append(f"column {field.name} is called like the partition of the cold table")
                grown.append(field)
            elif _is_same(here := schema.find_type(field.name), wanted) or _holds(here, wanted):
                continue
            elif _holds(wanted, here):
                grown.append(field)
            else:
                unfit.append(f"column {field.name} is {wanted} here and {here} in the lake")
        return grown, unfit

    @property
    def source(self) -> str | None:
        """Whose rows these are, also where no snapshot says how far they are."""
        position = self.position()
        return self.table.properties.get(f"{PREFIX}source") if position is None else position.source

    def follow(self, grown: Iterable[pa.Field], columns: Mapping[int, str], source: str) -> None:
        """Take new and wider columns over, and remember the source's. No snapshot: rows come with the next commit."""
        transaction = self.table.transaction()
        names = self.table.schema().column_names
        with transaction.update_schema() as update:
            for field in grown:
                if field.name in names:
                    update.update_column(field.name, _iceberg_type(field))
                else:
                    update.add_column(field.name, _iceberg_type(field))
        told = json.dumps({str(number): name for number, name in sorted(columns.items())}, ensure_ascii=False)
        transaction.set_properties({f"{PREFIX}columns": told, f"{PREFIX}source": source})
        self._commit(transaction)

    def refresh(self) -> None:
        self.table.refresh()

    def begin(self, tables: Iterable[pa.Table], position: Position) -> None:
        """The first rows, all in one commit: who dies before it has written nothing."""
        transaction = self.table.transaction()
        files = [file for rows in tables for file in self._written(transaction, rows)]
        with transaction.update_snapshot(snapshot_properties=position.properties()).fast_append() as commit:
            for file in files:
                commit.append_data_file(file)
        self._commit(transaction)

    def commit(
        self,
        rows: pa.Table,
        position: Position,
        replace: Callable[[Iterator[pa.Table]], tuple[list[int], Iterable[pa.Table]]] | None = None,
        spans: Iterable[ColdRange] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Append rows, and let `replace` look at the files of these spans: it says which of them go, and what comes.

        One commit with the position, on exactly the head that was read.
        """
        transaction = self.table.transaction()
        if properties:
            transaction.set_properties(dict(properties))
        going: list[Any] = []
        parts: Iterable[pa.Table] = [rows]
        if replace is not None:
            tasks = self._tasks(spans)
            which, parts = replace(self._read(task) for task in tasks)
            going = [tasks[n].file for n in which]
        update_snapshot = transaction.update_snapshot(snapshot_properties=position.properties())
        files = [file for part in parts if part.num_rows for file in self._written(transaction, part)]
        with update_snapshot.overwrite() if going else update_snapshot.fast_append() as commit:
            for file in going:
                commit.delete_data_file(file)
            for file in files:
                commit.append_data_file(file)
        self._commit(transaction)

    def _commit(self, transaction: Transaction) -> None:
        """Once, on the head that was read. A transaction of pyiceberg's own would try again on another head, where
        another mirror may have brought the same rows.
        """
        from pyiceberg.exceptions import CommitFailedException, ValidationException
        from pyiceberg.table.update import AssertTableUUID

        same = AssertTableUUID(uuid=self.table.metadata.table_uuid)
        try:
            self._service.commit_table(self.table, (*transaction._requirements, same), transaction._updates)
        except (CommitFailedException, ValidationException):
            raise ConflictError(
                "somebody else committed to the cold table meanwhile: nothing was written", hint="run again"
            ) from None
        finally:
            self.refresh()

    def restate(self, properties: Mapping[str, str] | None = None) -> None:
        """Let the head say how far it is where somebody compacted, or removed rows, since: what said so may expire.
        With properties of the table, which go into the same commit.
        """
        position = self.position()
        if position is not None and (properties or needed_for_position(self.table.metadata)):
            self.commit(self.columns.empty_table(), position, properties=properties)

    def counted(self) -> int:
        """How many rows the head has, by its own summary."""
        head = self.table.current_snapshot()
        said = head.summary.additional_properties.get("total-records") if head and head.summary else None
        return int(said or 0)

    def delete(self, spans: Iterable[ColdRange], position: Position) -> None:
        """Remove the rows of these spans, and none beside them in the same files: what a person confirmed."""
        spans = list(spans)
        self.commit(self.columns.empty_table(), position, lambda files: outside(files, spans), spans)

    def batches(self, span: ColdRange, *, version: str | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a span, of a version; the head's with every column, also one that came after it."""
        past = None if version in (None, self.version) else int(version or 0)
        scan = self.table.scan(row_filter=_filter(span), snapshot_id=past)
        yield from scan.to_arrow_batch_reader()

    def rows(self, span: ColdRange) -> int:
        """How many rows of a span the head has."""
        return int(self.table.scan(row_filter=_filter(span)).count())

    def _tasks(self, spans: Iterable[ColdRange]) -> list[Any]:
        from pyiceberg.expressions import AlwaysFalse, Or

        wanted: BooleanExpression = AlwaysFalse()
        for span in spans:
            wanted = Or(wanted, _filter(span))
        tasks = list(self.table.scan(row_filter=wanted).plan_files())
        if any(task.delete_files for task in tasks):
            raise RefusedError(
                "somebody else wrote delete files into the cold table",
                hint="compact it by Iceberg's own rewrite_data_files, then go on",
            )
        return tasks

    def _read(self, task: Any) -> pa.Table:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan
        from pyiceberg.table import FileScanTask

        table = self.table
        whole = FileScanTask(task.file)
        return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table([whole])

    def _written(self, transaction: Transaction, rows: pa.Table) -> Iterable[Any]:
        """Data files, a partition each: pyiceberg's own way to days wants a library more."""
        from pyiceberg.io.pyarrow import write_file
        from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
        from pyiceberg.table import WriteTask

        metadata = transaction.table_metadata
        spec, schema = metadata.spec(), metadata.schema()
        rows = _conformed(rows, schema.as_arrow())
        tasks: list[Any] = []
        write = uuid4()
        for day, part in _by_day(rows, _day_column(spec, schema)):
            key = PartitionKey([PartitionFieldValue(spec.fields[0], day)], spec, schema)
            batches = part.combine_chunks().to_batches()
            tasks.append(WriteTask(write, len(tasks), schema, batches, partition_key=key))
        return list(write_file(self.table.io, metadata, iter(tasks)))


def _conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the table's columns in its order; one that they lack is NULL."""
    import pyarrow as pa

    columns = [
        rows[field.name].cast(field.type) if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _day_column(spec: Any, schema: Any) -> str:
    from pyiceberg.transforms import DayTransform

    if len(spec.fields) != 1 or not isinstance(spec.fields[0].transform, DayTransform):
        raise RefusedError("somebody changed how the cold table is partitioned", hint="bring back the day of its time")
    return str(schema.find_column_name(spec.fields[0].source_id))


def _by_day(rows: pa.Table, time: str) -> Iterator[tuple[int, pa.Table]]:
    """Rows by the day of their time, in days since 1970: the partition that each belongs to."""
    import numpy as np
    import pyarrow as pa

    times = rows[time]
    if pa.types.is_date(times.type):
        days = times.cast(pa.int32()).to_numpy()
    else:
        days = np.floor_divide(times.cast(pa.int64()).to_numpy(), _DAY)
    for day in np.unique(days):
        yield int(day), rows.filter(pa.array(days == day))


def outside(files: Iterator[pa.Table], spans: Sequence[ColdRange]) -> tuple[list[int], list[pa.Table]]:
    """Which files hold rows of these spans, and their other rows."""
    import pyarrow as pa

    going: list[int] = []
    kept: list[pa.Table] = []
    for n, file in enumerate(files):
        inside = _inside(file[spans[0].column], spans)
        if inside.any():
            going.append(n)
            kept.append(file.filter(pa.array(~inside)))
    return going, kept


def _inside(times: pa.ChunkedArray, spans: Iterable[ColdRange]) -> Any:
    import numpy as np
    import pyarrow as pa

    at = times.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    found = np.zeros(len(at), np.bool_)
    for span in spans:
        low = np.iinfo(np.int64).min if span.first is None else _micros(span.first)
        high = np.iinfo(np.int64).max if span.last is None else _micros(span.last) - 1
        found |= (at >= low) & (at <= high)
    return found


def _micros(at: datetime) -> int:
    import pyarrow as pa

    return int(pa.scalar(at, pa.timestamp("us", "UTC")).value)


def _service(catalog: Catalog) -> Service:
    from pyiceberg.catalog import load_catalog

    if catalog.format != "iceberg" or catalog.type not in ("jdbc", "rest", "hive", "glue"):
        raise InputError(f"catalog {catalog.name} takes no cold table", hint=_CANNOT)
    options: Mapping[str, Any] = catalog.options
    if catalog.type != "jdbc":
        return load_catalog(catalog.name, type=catalog.type, warehouse=catalog.warehouse, **options)
    from pyiceberg.catalog.sql import SqlCatalog

    url = sqlalchemy_url(catalog, catalog.options.get("uri", ""), writable=True)
    more = {key: value for key, value in options.items() if key != "uri" and not key.startswith("jdbc.")}
    return SqlCatalog(catalog.name, uri=url, warehouse=catalog.warehouse, **more)


def _filter(span: ColdRange) -> BooleanExpression:
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, LessThan

    # How pyiceberg is called does not show in its types.
    at_least: Any = GreaterThanOrEqual
    below: Any = LessThan
    wanted: BooleanExpression = AlwaysTrue()
    if span.first is not None:
        wanted = And(wanted, at_least(span.column, _literal(span.first, span.kind)))
    if span.last is not None:
        wanted = And(wanted, below(span.column, _literal(span.last, span.kind)))
    return wanted


def _literal(at: datetime, kind: str) -> str:
    if kind == "date":
        return f"{at:%Y-%m-%d}"
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}" + ("+00:00" if kind == "timestamptz" else "")


def _is_same(one: Any, other: Any) -> bool:
    """Whether two types are one, whatever ids their elements have."""
    from pyiceberg.types import ListType

    if isinstance(one, ListType) and isinstance(other, ListType):
        return bool(one.element_type == other.element_type)
    return bool(one == other)


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether every value of the one is one of the other, by a change of type that Iceberg knows."""
    from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType

    if isinstance(wide, DecimalType) and isinstance(narrow, DecimalType):
        return wide.scale == narrow.scale and wide.precision >= narrow.precision
    return (type(narrow), type(wide)) in ((IntegerType, LongType), (FloatType, DoubleType))


def _iceberg_type(field: pa.Field) -> Any:
    import pyarrow as pa
    from pyiceberg.io.pyarrow import pyarrow_to_schema

    if pa.types.is_list(field.type):
        field = field.with_type(pa.list_(field.type.value_field.with_metadata({"PARQUET:field_id": "2"})))
    schema = pyarrow_to_schema(pa.schema([field.with_metadata({"PARQUET:field_id": "1"})]))
    return schema.fields[0].field_type
