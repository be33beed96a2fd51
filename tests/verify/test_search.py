"""A search of storage, on real tables and files: everything is read, and what cannot be read is said."""

from __future__ import annotations

import errno
import io
import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from ebbtide.errors import Cancelled, InputError
from ebbtide.formats.registry import load_format
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.run import RunContext
from ebbtide.verify import look
from ebbtide.verify.needles import Needle
from ebbtide.verify.search import Grade, SearchPlace, SearchReport, search
from tests.verify.people import LONG, NUMBER, needle

KEY = b"k" * 32
NEIGHBOUR = LONG[:-2] + "yy"
PERSON = needle(LONG)


class Lake:
    """An Iceberg and a Delta table in which one person stands, in clear text and as a number, beside neighbours."""

    def __init__(self, root: Path) -> None:
        self.root = root
        uri = f"sqlite:///{root}/catalog.db"
        self.iceberg = SqlCatalog("lake", uri=uri, warehouse=f"file://{root}/lake")
        self.iceberg.create_namespace("db")
        self.catalogs = [
            Catalog("lake", "iceberg", f"{root}/lake", "jdbc", {"uri": f"jdbc:{uri.replace('///', '')}"}),
            Catalog("events", "delta", str(root / "delta")),
        ]

    def append(self, *people: tuple[str, int]) -> None:
        rows = pa.table({"name": [name for name, _ in people], "id": pa.array([n for _, n in people], pa.int64())})
        if not self.iceberg.table_exists("db.t"):
            self.iceberg.create_table("db.t", rows.schema)
        self.iceberg.load_table("db.t").append(rows)
        write_deltalake(str(self.root / "delta" / "db" / "d"), rows, mode="append")

    @property
    def places(self) -> list[SearchPlace]:
        found = [
            (catalog, handle)
            for catalog in self.catalogs
            for handle in load_format(catalog.format).discover(catalog)
            if isinstance(handle, TableHandle)
        ]
        return [SearchPlace(str(h.id), h.location, c.options, (c, h)) for c, h in found]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def run_search(
    people: Sequence[Needle], places: Sequence[SearchPlace], context: RunContext | None = None
) -> SearchReport:
    return search(people, places, spark=None, run=context or RunContext("test"), path_key=KEY)


def folder(path: Path, name: str = "lake") -> SearchPlace:
    return SearchPlace(name, str(path))


def test_a_person_is_found_in_every_file_that_has_them_and_nobody_else_is(lake: Lake) -> None:
    lake.append((NEIGHBOUR, 8841301), ("zz", 1))
    lake.append((LONG, 8841302))
    lake.append((NEIGHBOUR, 8841303))
    number = needle("8841302", "bigint", person="p2")
    absent = [needle("8841309", "bigint", person="p3"), needle(LONG[:-2] + "zz", person="p4")]
    report = run_search([PERSON, number, *absent], lake.places)
    assert [report.grade(each) for each in ("p1", "p2", "p3", "p4")] == ["F", "F", "A", "A"]
    assert report.untold == ()
    files = [path for path in lake.root.rglob("*") if path.is_file() and path.name != "catalog.db"]
    assert (report.files, report.bytes) == (len(files), sum(path.stat().st_size for path in files))
    rows = [each for each in report.found if each.how == "row" and each.role == "data"]
    expected = [path for path in files if path.suffix == ".parquet" and LONG.encode() in path.read_bytes()]
    assert {each.path for each in rows} == {f"file://{path}" for path in expected}
    by = {each for row in rows for each in row.referenced_by}
    assert by >= {"lake.db.t branch:main", "events.db.d branch:main"}
    assert sum(each.startswith("lake.db.t version:") for each in by) == 1  # the second commit's, of three
    assert {each.where for each in rows if each.person == "p1"} == {"column name"}
    assert {each.where for each in rows if each.person == "p2"} == {"column id"}
    bounds = {each.where for each in report.found if each.how == "bound"}
    assert bounds >= {"bound of column name", "bound of column id"}
    assert LONG not in str(report)
    assert "8841302" not in str(report)


def test_the_inventory_names_every_object_by_a_key_and_is_the_same_again(lake: Lake) -> None:
    lake.append((LONG, 1))
    places = lake.places
    report = run_search([PERSON], places)
    assert len(report.inventory.lines) == report.files
    assert report.inventory.lines == tuple(sorted(report.inventory.lines))
    assert all(line.startswith("hmac-sha256:") and "\tsha256:" in line for line in report.inventory.lines)
    assert str(lake.root) not in report.inventory.text
    again = run_search([PERSON], [*places, folder(lake.root / "lake"), folder(lake.root / "lake" / "db")])
    assert again.inventory == report.inventory
    assert again.inventory.digest == report.inventory.digest
    assert again.inventory.digest.startswith("sha256:")
    (lake.root / "lake" / "db" / "t" / "stray").write_text("more")
    assert run_search([PERSON], places).inventory.digest != report.inventory.digest


def test_a_cut_bound_is_a_neighbours_where_the_file_that_it_describes_has_one(lake: Lake) -> None:
    lake.append((NEIGHBOUR, 1))
    assert run_search([PERSON], lake.places).grade("p1") == Grade.A
    for path in lake.root.rglob("*.parquet"):
        path.unlink()  # what described them is there still
    report = run_search([PERSON], lake.places)
    assert report.grade("p1") == Grade.F
    assert {(each.how, each.where) for each in report.found} == {("bound", "bound of column name")}
    assert {each.role for each in report.found} == {"manifest"}  # deltalake cuts no statistics: those are whole values


def test_a_bound_of_a_file_that_somebody_left_is_found(lake: Lake) -> None:
    lake.append((LONG, 1))
    for path in lake.root.rglob("*.parquet"):
        pq.write_table(pa.table({"name": ["someone else"], "id": [1]}), path)
    report = run_search([PERSON], lake.places)
    assert {each.how for each in report.found} == {"bound"}


def test_a_path_that_holds_a_value_is_keyed_and_so_is_its_empty_folder(tmp_path: Path) -> None:
    root = tmp_path / "t"
    for name in ("email=anna%40x.de", "email=zoe%40x.de"):
        (root / name).mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), root / "email=zoe%40x.de" / "f.parquet")
    report = run_search([needle("anna@x.de"), needle("zoe@x.de", person="p2")], [folder(root)])
    assert {(each.person, each.how, each.role) for each in report.found} == {
        ("p1", "path", "empty folder"), ("p2", "path", "unreferenced"),
    }  # fmt: skip
    assert all(each.path.startswith("hmac-sha256:") for each in report.found)
    assert report.files == 1
    (root / "email=zoe%40x.de" / "broken.parquet").write_bytes(b"PAR1 no more")
    report = run_search([needle("zoe@x.de")], [folder(root)])
    assert report.cannot_tell
    assert "x.de" not in str(report)


def test_what_cannot_be_read_is_said_and_never_called_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "t"
    root.mkdir()
    whole = io.BytesIO()
    pq.write_table(pa.table({"name": ["x"] * 1000}), whole)
    (root / "truncated.parquet").write_bytes(whole.getvalue()[:-9])
    _write_encrypted(root / "encrypted.parquet")
    (root / "unknown.bin").write_bytes(bytes(range(256)) * 9)
    (root / "vanished.json").write_text("{}")
    (root / "forbidden.json").write_text("{}")
    (root / "folder").symlink_to(tmp_path)
    real = Path.open

    def failing(path: Path, *args: object, **more: object) -> object:
        if path.name == "vanished.json":
            raise FileNotFoundError(errno.ENOENT, "gone", str(path))
        if path.name == "forbidden.json":
            raise PermissionError(errno.EACCES, "no", str(path))
        return real(path, *args, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", failing)
    report = run_search([PERSON, needle("42", "int", person="p2")], [folder(root)])
    because = {path.rpartition("/")[2]: text for path, text in report.cannot_tell_of("p1")}
    assert because.keys() == {
        "truncated.parquet", "encrypted.parquet", "unknown.bin", "vanished.json", "forbidden.json", "folder",
    }  # fmt: skip
    assert because["vanished.json"] == "it vanished between the listing and the reading"
    assert because["forbidden.json"] == "no permission to read it"
    assert because["folder"] == "a link to a folder, which is not followed"
    assert report.grade("p1") == report.grade("p2") == Grade.B
    assert not report.found


def _write_encrypted(path: Path) -> None:
    class Kms(pe.KmsClient):  # type: ignore[misc]
        def __init__(self, _: object) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, _: str) -> bytes:
            return key.hex().encode()

        def unwrap_key(self, wrapped: bytes, _: str) -> bytes:
            return bytes.fromhex(wrapped.decode())

    config = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["name"]}, encryption_algorithm="AES_GCM_V1")
    made = pe.CryptoFactory(Kms).file_encryption_properties(pe.KmsConnectionConfig(), config)
    with pq.ParquetWriter(path, pa.schema([("name", pa.string())]), encryption_properties=made) as writer:
        writer.write_table(pa.table({"name": [LONG]}))


def test_nothing_read_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an empty value"):
        run_search([needle(" ")], [folder(tmp_path)])
    assert run_search([PERSON], []).grade("p1") == Grade.B
    report = run_search([PERSON], [folder(tmp_path / "none")])
    assert report.grade("p1") == Grade.B
    assert report.cannot_tell == ((str(tmp_path / "none"), "nothing lies there: nothing was read"),)
    assert report.is_of_nothing
    assert [each.is_place for each in report.untold] == [True]


def test_our_own_stores_alone_are_nothing_where_a_dataset_was_to_be_read(lake: Lake, tmp_path: Path) -> None:
    lake.append(("somebody", 1))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.txt").write_text("nothing")
    dataset = next(place for place in lake.places if place.dataset is not None)
    gone = SearchPlace(dataset.name, str(tmp_path / "gone"), {}, dataset.dataset)
    own = folder(tmp_path / "own", "ebbtide:project")
    assert run_search([PERSON], [gone, own]).is_of_nothing
    assert not run_search([PERSON], [dataset, gone, own]).is_of_nothing
    assert not run_search([PERSON], [own]).is_of_nothing


def test_a_small_number_is_graded_in_stores_whose_structure_is_known(tmp_path: Path) -> None:
    root = tmp_path / "own"
    root.mkdir()
    with sqlite3.connect(root / "state.db") as state:
        state.execute("PRAGMA secure_delete = ON")
        state.execute("CREATE TABLE t (a INTEGER, b TEXT)")
        state.executemany("INSERT INTO t VALUES (?, ?)", [(n, f"text {n}") for n in range(5000)])
    pq.write_table(pa.table({"a": list(range(1000))}), root / "segment.parquet")
    (root / "key.json").write_text('{"a": "b", "n": 17}')
    (root / "empty").write_bytes(b"")
    place = [folder(root, "ebbtide:state")]
    report = run_search([NUMBER], place)
    assert report.cannot_tell == ()
    assert report.grade("p1") == Grade.A
    (root / "key.json").write_text('{"a": "user 8841302"}')
    found = run_search([NUMBER], place).found
    assert {each.role for each in found} == {"ebbtide:state"}


def test_an_object_that_is_larger_than_memory_should_be_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "t"
    root.mkdir()
    pq.write_table(pa.table({"name": ["x"] * 1000 + [LONG]}), root / "f.parquet")
    small = run_search([PERSON], [folder(root)])
    monkeypatch.setattr(look, "_AT_ONCE", 100)
    large = run_search([PERSON], [folder(root)])
    assert large == small
    assert large.grade("p1") == Grade.F


def test_a_search_that_is_asked_to_stop_stops_between_groups(lake: Lake) -> None:
    lake.append((LONG, 1))
    context = RunContext("test")
    steps: list[tuple[str, int | None, str]] = []
    advanced: list[int] = []

    class Watching:
        def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
            steps.append((step, total, unit))

        def advance(self, n: int = 1) -> None:
            advanced.append(n)

        def stop(self) -> None: ...

    watched = RunContext("test", progress=Watching(), cancellation=context.cancellation)
    report = run_search([PERSON], lake.places, watched)
    assert steps[1] == (f"reading {report.files} objects", report.bytes, "bytes")
    assert sum(advanced) >= report.bytes
    context.cancellation.request("asked")
    with pytest.raises(Cancelled):
        run_search([PERSON], lake.places, watched)


def test_an_old_version_of_a_delta_table_is_no_reason_to_overlook_it(lake: Lake) -> None:
    lake.append((LONG, 1))
    table = DeltaTable(str(lake.root / "delta" / "db" / "d"))
    table.delete()
    report = run_search([PERSON], [each for each in lake.places if each.name.startswith("events")])
    held = [each for each in report.found if each.how == "row" and each.path.endswith(".parquet")]
    assert held
    assert not any("branch" in by for each in held for by in each.referenced_by)
    assert any(by.startswith("events.db.d version:") for each in held for by in each.referenced_by)


def test_names_that_are_values_of_people_are_in_no_word_of_the_report(tmp_path: Path) -> None:
    who = "anna.b@x.de"
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("db")
    rows = pa.table({"name": [LONG], who: [LONG]})
    name = LONG.replace("-", "_")
    table = catalog.create_table(f"db.{name}", rows.schema)
    table.append(rows)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_tag(snapshot.snapshot_id, who).commit()
    its = Catalog("lake", "iceberg", f"{tmp_path}/lake", "jdbc", {"uri": f"jdbc:sqlite:{tmp_path}/catalog.db"})
    found = [each for each in load_format("iceberg").discover(its) if isinstance(each, TableHandle)]
    places = [SearchPlace(str(each.id), each.location, its.options, (its, each)) for each in found]
    wanted = [PERSON, needle(who, person="p2"), needle(name, person="p3")]
    for file in [None, *(tmp_path / "lake").rglob("*.parquet")]:
        if file is not None:  # then its bounds are found, and one of its columns cannot be read
            file.write_bytes(file.read_bytes()[:4] + b"\xff" * 60 + file.read_bytes()[64:])
        report = run_search(wanted, places)
        assert [report.grade(each) for each in ("p1", "p2", "p3")] == ["F", "F", "F"]
        assert not any(each.value in str(report) for each in wanted)


def test_what_is_no_file_or_has_no_readable_name_neither_stops_nor_ends_a_search(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "link").symlink_to(f"nowhere/{LONG}")
    Path(os.fsdecode(b"%s/\xff=%s" % (os.fsencode(tmp_path), b"alice@example.com"))).mkdir()
    report = run_search([PERSON, needle("alice@example.com", person="p2")], [folder(tmp_path)])
    assert [report.grade(each) for each in ("p1", "p2")] == ["F", "F"]
    assert {(each.how, each.where) for each in report.found_of("p1")} == {("path", "target of a link")}
    assert {because for _, because in report.cannot_tell} == {
        "it is a pipe, a socket or a device, or a link to one", "it vanished between the listing and the reading",
    }  # fmt: skip
    json.dumps([each.path for each in report.found], ensure_ascii=False).encode()
