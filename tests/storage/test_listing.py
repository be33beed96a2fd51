"""Listing: every object, by its own name, and never through a link."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import boto3
import pytest

from ebbtide.errors import UnreadableError
from ebbtide.inventory.listing import list_storage, outermost
from ebbtide.storage.listing import clock_of, list_below, list_folder
from tests.storage.conftest import options_of


def everything(folder: str, options: dict[str, str]) -> dict[str, bool]:
    return {each.path: each.exact for some in list_below(folder, options) for each in some}


def test_a_local_folder_is_listed_whole_and_links_are_not_followed(tmp_path: Path) -> None:
    for name in ("a", "d=1/b", "d=1/.c", "d e%20ü/f"):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_text("x")
    (tmp_path / "t" / "link").symlink_to(tmp_path)
    (tmp_path / "alias").symlink_to(tmp_path / "t")
    os.close(os.open(os.fsencode(tmp_path / "t") + b"/\xff", os.O_CREAT))
    root = f"file://{tmp_path}/t"
    assert everything(root, {}) == {
        f"{root}/a": True, f"{root}/d=1/b": True, f"{root}/d=1/.c": True, f"{root}/d e%20ü/f": True,
        f"{root}/link": False, f"{root}/?": False,
    }  # fmt: skip
    assert set(everything(f"file://{tmp_path}/alias", {}).values()) == {False}
    assert everything(f"file://{tmp_path}/none", {}) == {}


def test_a_folder_on_s3_is_listed_by_its_own_keys(s3_endpoint: str) -> None:
    options, bucket = options_of(s3_endpoint), f"l-{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    )
    client.create_bucket(Bucket=bucket)
    for key in ("t/a", "t//b", "t/c//d", "t/./e", "t/folder/", "t/d=1/f%20g", "t_2/a"):
        client.put_object(Bucket=bucket, Key=key, Body=b"x")
    root = f"s3://{bucket}/t"
    expected = {f"{root}/a": True, f"{root}/b": False, f"{root}/c/d": False, f"{root}/e": False,
                f"{root}/d=1/f%20g": True}  # fmt: skip
    assert everything(root, options) == expected
    found = list_folder(root, options)
    assert {each.path for each in found.objects} == {f"{root}/a", f"{root}/b", f"{root}/e"}
    assert sorted(found.folders) == [f"{root}/c", f"{root}/d=1", f"{root}/folder"]
    assert abs(clock_of(root, options) - datetime.now(UTC)) < timedelta(minutes=1)
    with pytest.raises(UnreadableError, match="cannot be listed"):
        everything("s3://no-such-bucket/t", options)


def test_each_place_is_listed_once_and_one_that_fails_leaves_the_others(tmp_path: Path, s3_endpoint: str) -> None:
    (tmp_path / "lake" / "t").mkdir(parents=True)
    (tmp_path / "lake" / "t" / "a").write_text("x")
    lake = f"file://{tmp_path}/lake"
    assert list(outermost({f"{lake}/t": {}, lake: {}, f"{lake}_2": {}})) == [lake, f"{lake}_2"]
    options = options_of(s3_endpoint)
    listing = list_storage({lake: {}, f"{lake}/t": {}, "s3://no-such-bucket/t": options}, tmp_path / "inventory")
    assert set(listing.failed) == {"s3://no-such-bucket/t"}
    import pyarrow.parquet as pq

    assert pq.read_table(listing.file).column("path").to_pylist() == [f"{lake}/t/a"]
