"""Everything that a store keeps: every version of every object, delete markers, and names with nothing behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from ebbtide.errors import UnreadableError
from ebbtide.run import RunContext
from ebbtide.storage.versions import VersionKind, list_versions, open_version
from ebbtide.verify.needles import Needle
from ebbtide.verify.search import Grade, SearchPlace, search
from tests.storage.conftest import options_of

LONG = "person-7f3a-of-forty-characters-in-all-xx"


def test_a_local_folder_is_listed_with_its_empty_folders_and_links_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "t"
    (root / "a=1" / "b=2").mkdir(parents=True)
    (root / "c").mkdir()
    (root / "c" / ".hidden").write_text("x")
    (root / "link").symlink_to(tmp_path)
    found = {each.path: each.kind for each in list_versions(f"file://{root}", {})}
    at = f"file://{root}"
    assert found == {
        f"{at}/a=1/b=2": VersionKind.FOLDER,
        f"{at}/c/.hidden": VersionKind.OBJECT,
        f"{at}/link": VersionKind.OBJECT,
    }
    assert [each.bytes for each in list_versions(f"{at}/c/.hidden", {})] == [1]
    assert list(list_versions(f"{at}/none", {})) == []


def test_every_version_of_an_object_and_every_delete_marker_is_listed_and_read(s3_endpoint: str) -> None:
    options, bucket = options_of(s3_endpoint), f"v-{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    )
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="t/before.txt", Body=b"older than versions")
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    client.put_object(Bucket=bucket, Key="t/f.txt", Body=f"user {LONG}".encode())
    client.put_object(Bucket=bucket, Key="t/f.txt", Body=b"nobody")
    client.put_object(Bucket=bucket, Key="t/gone.txt", Body=f"also {LONG}".encode())
    client.delete_object(Bucket=bucket, Key="t/gone.txt")
    client.put_object(Bucket=bucket, Key="t//odd/", Body=b"a folder's own object")
    client.put_object(Bucket=bucket, Key="t_2/other.txt", Body=LONG.encode())
    root = f"s3://{bucket}/t"
    found = list(list_versions(root, options))
    assert sorted((each.path.removeprefix(root), each.kind, each.latest) for each in found) == [
        ("//odd/", VersionKind.OBJECT, True),
        ("/before.txt", VersionKind.OBJECT, True),
        ("/f.txt", VersionKind.OBJECT, False),
        ("/f.txt", VersionKind.OBJECT, True),
        ("/gone.txt", VersionKind.DELETE_MARKER, True),
        ("/gone.txt", VersionKind.OBJECT, False),
    ]
    contents = sorted(open_version(each, options).read() for each in found if each.kind is VersionKind.OBJECT)
    assert contents[-1] == f"user {LONG}".encode()
    report = search(
        [Needle("p1", "name", LONG, frozenset({"string"}))], [SearchPlace("t", root, options)],
        spark=None, run=RunContext("test"), path_key=b"k",
    )  # fmt: skip
    assert {(each.path.removeprefix(root), each.role) for each in report.found} == {
        ("/f.txt", "old version of an object"), ("/gone.txt", "old version of an object"),
    }  # fmt: skip
    assert (report.files, len(report.inventory.lines)) == (5, 6)
    assert report.grade("p1") == Grade.F
    nobody = [Needle("p1", "name", LONG + LONG, frozenset({"string"}))]
    for prefix, grade in ((f"{root}/", Grade.A), (f"s3a://{bucket}/t", Grade.A), (f"{root}//odd", Grade.B)):
        found_at = search(nobody, [SearchPlace("t", prefix, options)], spark=None, run=RunContext("t"), path_key=b"k")
        assert found_at.grade("p1") == grade


def test_an_upload_that_nobody_finished_and_an_object_called_like_the_place_are_seen(s3_endpoint: str) -> None:
    options, bucket = options_of(s3_endpoint), f"v-{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    )
    client.create_bucket(Bucket=bucket)
    for key in ("t/f.txt", "t_2/f.txt", "t-1"):
        client.put_object(Bucket=bucket, Key=key, Body=b"nobody")
    person = [Needle("p1", "name", LONG, frozenset({"string"}))]

    def grade() -> Grade:
        places = [SearchPlace("t", f"s3://{bucket}/t", options)]
        return search(person, places, spark=None, run=RunContext("test"), path_key=b"k").grade("p1")

    assert grade() == Grade.A
    client.create_multipart_upload(Bucket=bucket, Key="t_2/upload")
    assert grade() == Grade.A, "it is of another place"
    client.create_multipart_upload(Bucket=bucket, Key="t/upload")
    assert grade() == Grade.B, "its parts lie there, and cannot be read"
    client.put_object(Bucket=bucket, Key="t", Body=f"user {LONG}".encode())
    assert grade() == Grade.F


@pytest.mark.parametrize("body", [b"nobody", b""])
@pytest.mark.parametrize("kept", [{"Metadata": {"who": LONG}}, {"Tagging": f"who={LONG}"}])
def test_what_a_store_keeps_beside_an_object_is_searched(s3_endpoint: str, body: bytes, kept: dict[str, Any]) -> None:
    options, bucket = options_of(s3_endpoint), f"v-{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    )
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="t/f.txt", Body=body, **kept)
    needles = [
        Needle("p1", "name", LONG, frozenset({"string"})),
        Needle("p2", "name", LONG[::-1], frozenset({"string"})),
    ]
    report = search(
        needles, [SearchPlace("t", f"s3://{bucket}/t", options)], spark=None, run=RunContext("test"), path_key=b"k"
    )
    assert (report.grade("p1"), report.grade("p2")) == (Grade.F, Grade.A)


def test_a_version_that_is_gone_when_it_is_read_is_said_and_quotes_no_key(s3_endpoint: str) -> None:
    options, bucket = options_of(s3_endpoint), f"v-{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    )
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="t/anna@x.de", Body=b"x")
    (stored,) = list_versions(f"s3://{bucket}/t", options)
    client.delete_object(Bucket=bucket, Key="t/anna@x.de")
    with pytest.raises(FileNotFoundError) as gone:
        open_version(stored, options).read()
    assert "anna" not in str(gone.value)
    with pytest.raises(UnreadableError, match="cannot be listed"):
        list(list_versions("s3://no-such-bucket/t", options))
