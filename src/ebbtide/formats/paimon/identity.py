"""What tells a Paimon table from another one of its name: its first schema, and when that was written."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from ebbtide.errors import UnreadableError
from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId
from ebbtide.model.paths import normalise
from ebbtide.spark.session import parts_of, quote
from ebbtide.storage.files import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = re.compile(r"schema-(\d+)")


def identity_at(location: str, store: Store) -> str | None:
    """The identity of the table that lies there; None where there is none."""
    numbers = [int(found[1]) for e in store.list(f"{location}/schema") if (found := _SCHEMA.fullmatch(e.name))]
    if not numbers:
        return None
    path = f"{location}/schema/schema-{min(numbers)}"
    try:
        content = store.read(path)
        # The time alone is Paimon's own uuid; tables that a script makes in one millisecond differ in the rest.
        return f"{json.loads(content)['timeMillis']}@{hashlib.sha256(content).hexdigest()[:16]}"
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(
            location, f"{path} is corrupt ({type(error).__name__})", hint="restore the file"
        ) from error


def identity_by_name(id_: DatasetId, catalog: Catalog, spark: SparkSession) -> str | None:
    """The identity of the table that the session finds by the name which statements use; None where it finds none."""
    table = table_by_name(id_, spark)
    if table is None:
        return None
    location = normalise(str(table.location().toString()))
    return identity_at(location, open_store(location, catalog.options))


def table_by_name(id_: DatasetId, spark: SparkSession) -> Any:
    """Paimon's own table behind the name which statements use; None where the session finds none."""
    any_: Any = spark
    named, *namespace, table = parts_of(spark, quote(id_.catalog, *id_.namespace, id_.table))
    parts = any_.sparkContext._gateway.new_array(any_._jvm.java.lang.String, len(namespace))
    for n, part in enumerate(namespace):
        parts[n] = part
    found = any_._jsparkSession.sessionState().catalogManager().catalog(named)
    name = any_._jvm.org.apache.spark.sql.connector.catalog.Identifier.of(parts, table)
    return found.loadTable(name).getTable() if found.tableExists(name) else None
