"""Catalogs and stores that are services: S3 and Glue (moto on loopback), REST. No session is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyiceberg.catalog import load_catalog

from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.dataset import Catalog
from tests.inventory.rest_catalog import served
from tests.inventory.test_scan import run

BUCKET = "warehouse"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def options(endpoint: str) -> dict[str, str]:
    boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    ).create_bucket(Bucket=BUCKET)
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": "t",
        "s3.secret-access-key": "t",
        "client.region": "us-east-1",
        "s3.region": "us-east-1",
    }


ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})


def test_a_lake_on_s3_is_scanned_and_its_paths_have_one_spelling(options: dict[str, str], tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    writer = load_catalog("lake", type="sql", uri=uri, warehouse=f"s3a://{BUCKET}/lake", **options)
    writer.create_namespace("db")
    table = writer.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    catalog = Catalog(
        "lake", "iceberg", f"s3a://{BUCKET}/lake", "jdbc", {"uri": f"jdbc:sqlite:{tmp_path}/catalog.db", **options}
    )
    report = run(tmp_path / "inventory", catalog)
    assert report.current.error_count == 0, list(Inventory.open(tmp_path / "inventory").errors())
    paths = {row["path"] for row in Inventory.open(tmp_path / "inventory").rows("files")}
    client = boto3.client(
        "s3", endpoint_url=options["s3.endpoint"], aws_access_key_id="t", aws_secret_access_key="t",
        region_name="us-east-1",
    )  # fmt: skip
    keys = {f"s3://{BUCKET}/{entry['Key']}" for entry in client.list_objects_v2(Bucket=BUCKET)["Contents"]}
    assert paths == keys
    assert run(tmp_path / "inventory", catalog).read == ()


def test_a_hadoop_warehouse_on_s3_that_is_not_there_is_an_error(options: dict[str, str], tmp_path: Path) -> None:
    catalog = Catalog("far", "iceberg", f"s3://{BUCKET}/nothing", "hadoop", options)
    run(tmp_path / "inventory", catalog)
    (error,) = Inventory.open(tmp_path / "inventory").errors()
    assert "no warehouse" in error["error"]


def test_a_glue_catalog_is_asked_table_by_table(options: dict[str, str], tmp_path: Path) -> None:
    glue = {
        "glue.endpoint": options["s3.endpoint"],
        "glue.region": "us-east-1",
        "glue.access-key-id": "t",
        "glue.secret-access-key": "t",
        **options,
    }
    writer = load_catalog("far", type="glue", warehouse=f"s3://{BUCKET}/glue", **glue)
    writer.create_namespace("db")
    writer.create_table("db.one", ROWS.schema).append(ROWS)
    writer.create_table("db.two", ROWS.schema)
    catalog = Catalog("far", "iceberg", f"s3://{BUCKET}/glue", "glue", glue)
    assert run(tmp_path / "inventory", catalog).read == ("far.db.one", "far.db.two")
    assert run(tmp_path / "inventory", catalog).read == ()
    writer.load_table("db.two").append(ROWS)
    assert run(tmp_path / "inventory", catalog).read == ("far.db.two",)
    broken = replace(catalog, options={**glue, "glue.endpoint": "http://127.0.0.1:9", "glue.max-retries": "1"})
    run(tmp_path / "inventory", broken)
    errors = list(Inventory.open(tmp_path / "inventory").errors())
    assert errors[0]["table_id"] is None
    assert {e["table_id"] for e in errors[1:]} == {"far.db.one", "far.db.two"}


NESTED = ("db.one", "db.raw.web.deep", "db.raw.two", "dbx.three")


@pytest.mark.parametrize(
    ("below", "read"),
    [("listed", NESTED), ("ignored", ("db.one", "dbx.three")), ("refused", ("db.one", "dbx.three"))],
)
def test_tables_in_nested_namespaces_of_a_rest_catalog_are_found(
    tmp_path: Path, below: str, read: tuple[str, ...]
) -> None:
    writer = load_catalog("sql", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/far")
    for name in ("db", "db.raw", "db.raw.web", "db.empty", "dbx"):
        writer.create_namespace(name)
    for name in NESTED:
        writer.create_table(name, ROWS.schema)
    with served(writer, below=below) as (uri, asked):
        catalog = Catalog("far", "iceberg", f"file://{tmp_path}/far", "rest", {"uri": uri})
        report = run(tmp_path / "inventory", catalog)
    assert report.current.error_count == 0, list(Inventory.open(tmp_path / "inventory").errors())
    assert set(report.read) == {f"far.{name}" for name in read}
    # A catalog's settings, two questions per namespace, one for the top, one per table.
    namespaces = 5 if below == "listed" else 2
    assert len(asked) <= 2 * namespaces + 2 + len(read)


def test_a_table_whose_metadata_a_rest_catalog_does_not_find_is_not_dropped(tmp_path: Path) -> None:
    """The answer to both is "not found"; only the list of tables tells them apart."""
    writer = load_catalog("sql", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/far")
    writer.create_namespace("db")
    for name in ("db.one", "db.two"):
        writer.create_table(name, ROWS.schema).append(ROWS)
    moved = Path(writer.load_table("db.one").metadata_location.removeprefix("file://"))
    with served(writer) as (uri, _):
        catalog = Catalog("far", "iceberg", f"file://{tmp_path}/far", "rest", {"uri": uri})
        known = run(tmp_path / "inventory", catalog).current.entries
        moved.rename(tmp_path / "moved")
        hidden = run(tmp_path / "inventory", catalog)
        assert (hidden.gone, hidden.current.error_count) == ((), 1)
        assert hidden.current.entries["far.db.one"].segment == known["far.db.one"].segment
        assert "lists it and does not find it" in (hidden.current.entries["far.db.one"].error or "")
        (tmp_path / "moved").rename(moved)
        assert run(tmp_path / "inventory", catalog).current.error_count == 0
        writer.drop_table("db.one")
        assert run(tmp_path / "inventory", catalog).gone == ("far.db.one",)
