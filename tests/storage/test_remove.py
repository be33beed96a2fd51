"""Removing by exact path: what is named goes, all else stays, and every failure is told."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from ebbtide.errors import LeaseError, RefusedError, UnreadableError
from ebbtide.storage.handles import behind_links, led_elsewhere, places_around
from ebbtide.storage.remove import remove_empty_folders, remove_files
from tests.storage.conftest import between, options_of, without_answer_for


def nothing() -> None:
    """A lease that is never lost."""


def uri(path: Path) -> str:
    return f"file://{path}"


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def left(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_exactly_the_named_files_go(tmp_path: Path) -> None:
    touch(tmp_path / "t" / "a", tmp_path / "t" / "a b%20ü", tmp_path / "t" / "ab", tmp_path / "t_2" / "a")
    named = [uri(tmp_path / "t" / "a"), uri(tmp_path / "t" / "a b%20ü")]
    assert remove_files(named, {}, nothing) == {}
    assert left(tmp_path) == {"t", "t/ab", "t_2", "t_2/a"}
    assert remove_files(named, {}, nothing) == {}


def test_hadoops_checksum_follows_its_file_and_no_other(tmp_path: Path) -> None:
    touch(tmp_path / "a", tmp_path / ".a.crc", tmp_path / ".b.crc", tmp_path / "a.crc")
    assert remove_files([uri(tmp_path / "a")], {}, nothing) == {}
    assert left(tmp_path) == {".b.crc", "a.crc"}


def test_a_folder_among_the_paths_refuses_all_of_them(tmp_path: Path) -> None:
    touch(tmp_path / "a", tmp_path / "folder" / "b")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for folder in ("folder", "empty", "link"):
        with pytest.raises(RefusedError, match="is a folder"):
            remove_files([uri(tmp_path / "a"), uri(tmp_path / folder)], {}, nothing)
    assert left(tmp_path) == {"a", "folder", "folder/b", "empty", "link"}


@pytest.mark.parametrize("path", ["/tmp/a", "file:/tmp/a", "s3a://b/k", "s3://b/a//k", "s3://b/k/", "file:///t/../a"])
def test_a_path_of_another_spelling_is_refused(path: str) -> None:
    with pytest.raises(RefusedError, match="not a normalised path"):
        remove_files([path], {}, nothing)


def test_a_whole_bucket_or_an_unknown_store_is_refused() -> None:
    with pytest.raises(RefusedError, match="whole bucket"):
        remove_files(["s3://bucket/"], {}, nothing)
    with pytest.raises(UnreadableError, match="scheme"):
        remove_files(["hdfs://host/a"], {}, nothing)


def test_a_file_that_cannot_be_removed_is_told_and_the_others_go(tmp_path: Path) -> None:
    touch(tmp_path / "a", tmp_path / "b")
    # The kernel's own files: nobody may remove them, root neither. (`/proc/self` is a link.)
    locked = f"file:///proc/{os.getpid()}/limits"
    failed = remove_files([uri(tmp_path / "a"), locked, uri(tmp_path / "b")], {}, nothing)
    assert failed == {locked: "Operation not permitted (EPERM)"}
    assert left(tmp_path) == set()


def test_what_is_not_there_any_more_is_no_error(tmp_path: Path) -> None:
    touch(tmp_path / "file")
    assert remove_files([uri(tmp_path / "none"), uri(tmp_path / "file" / "below")], {}, nothing) == {}


def test_a_lost_lease_ends_the_removal_before_the_next_batch(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n:05}" for n in range(2500)]
    touch(*paths)
    caller, calls = threading.get_ident(), 0

    def lease() -> None:
        nonlocal calls
        calls += 1
        assert threading.get_ident() == caller
        if calls == 3:
            raise LeaseError("lost", fence=1)

    with pytest.raises(LeaseError):
        remove_files([uri(path) for path in paths], {}, lease)
    assert left(tmp_path) == {path.name for path in paths[2000:]}


def test_empty_folders_go_up_to_the_root_and_no_other(tmp_path: Path) -> None:
    touch(tmp_path / "t" / "data" / "d=2" / "file")
    (tmp_path / "t" / "data" / "d=1" / "h=1").mkdir(parents=True)
    (tmp_path / "t" / "other" / "deep").mkdir(parents=True)
    (tmp_path / "t" / "data" / "d=2" / "empty").mkdir()
    root = uri(tmp_path / "t")
    folders = [uri(tmp_path / "t" / "data" / name) for name in ("d=1/h=1", "d=2", "gone/deeper")]
    assert remove_empty_folders(folders, root) == {}
    assert left(tmp_path / "t") == {"data", "data/d=2", "data/d=2/file", "data/d=2/empty", "other", "other/deep"}
    assert remove_empty_folders([uri(tmp_path / "t" / "other" / "deep"), root], root) == {}
    assert left(tmp_path / "t") == {"data", "data/d=2", "data/d=2/file", "data/d=2/empty"}
    with pytest.raises(RefusedError, match="does not lie in"):
        remove_empty_folders([uri(tmp_path / "t_2")], root)
    (tmp_path / "linked").mkdir()
    (tmp_path / "t" / "link").symlink_to(tmp_path / "linked")
    assert remove_empty_folders([uri(tmp_path / "t" / "link")], root) == {}
    assert (tmp_path / "linked").is_dir()
    long = uri(tmp_path / "t" / ("x" * 300))
    assert remove_empty_folders([long], root) == {long: "File name too long (ENAMETOOLONG)"}


LINK = "a link lies on the way to it, which is not followed"
MOVED = "its folder is reached through other links than when the sweep began"
IS_LINK = "it is a link itself, and what it leads to would stay"


def swap(folder: Path, target: Path) -> None:
    """What a removal may meet at any moment: the folder goes, and a link to another one stands in its place."""
    folder.rename(folder.with_name(f"{folder.name}.was"))
    folder.symlink_to(target)


def test_a_folder_that_became_a_link_after_it_was_listed_is_not_followed(tmp_path: Path) -> None:
    table, others = tmp_path / "t", tmp_path / "others"
    touch(table / "d=1" / "h=1" / "a", table / "d=2" / "a", others / "h=1" / "a", others / "h=1" / ".a.crc")
    (others / "h=2").mkdir()
    named = [uri(table / "d=1" / "h=1" / "a"), uri(table / "d=2" / "a")]
    failed = remove_files(named, {}, lambda: swap(table / "d=1", others))
    assert failed == {named[0]: LINK}
    assert left(others) == {"h=1", "h=1/a", "h=1/.a.crc", "h=2"}
    assert not (table / "d=2" / "a").exists(), "the others go"
    assert behind_links(named, ()) == failed
    assert remove_empty_folders([uri(table / "d=1" / "h=2")], uri(table)) == {}
    assert (others / "h=2").is_dir()


def test_a_file_that_became_a_link_stays_and_is_told(tmp_path: Path) -> None:
    touch(tmp_path / "a", tmp_path / "other")
    named = uri(tmp_path / "a")
    assert remove_files([named], {}, lambda: swap(tmp_path / "a", tmp_path / "other")) == {named: IS_LINK}
    assert left(tmp_path) == {"a", "a.was", "other"}
    assert behind_links([named, uri(tmp_path / "other"), uri(tmp_path / "none" / "b")], ()) == {named: IS_LINK}


def test_links_above_a_dataset_are_those_from_when_the_sweep_began(tmp_path: Path) -> None:
    touch(tmp_path / "disk" / "t" / "d" / "a", tmp_path / "disk" / "t" / "d" / "b", tmp_path / "new" / "t" / "d" / "b")
    (tmp_path / "lake").symlink_to(tmp_path / "disk")
    home = uri(tmp_path / "lake" / "t")
    places = places_around([home, "s3://bucket/t"])
    assert remove_files([f"{home}/d/a"], {}, nothing, places) == {}
    assert left(tmp_path / "disk") == {"t", "t/d", "t/d/b"}
    assert remove_files([f"{home}/d/b"], {}, nothing) == {f"{home}/d/b": LINK}, "who knows no place follows no link"
    assert led_elsewhere(places) is None
    (tmp_path / "lake").unlink()
    (tmp_path / "lake").symlink_to(tmp_path / "new")
    assert led_elsewhere(places) == home
    assert remove_files([f"{home}/d/b"], {}, nothing, places) == {f"{home}/d/b": MOVED}
    assert remove_empty_folders([f"{home}/d"], home, places) == {}
    assert left(tmp_path / "new") == {"t", "t/d", "t/d/b"}
    now = places_around([home])
    assert remove_files([f"{home}/d/b"], {}, nothing, now) == {}
    assert remove_empty_folders([f"{home}/d"], home.rpartition("/")[0], now) == {}
    assert left(tmp_path / "new") == set()
    assert left(tmp_path / "disk") == {"t", "t/d", "t/d/b"}


@pytest.fixture
def bucket(s3_endpoint: str) -> tuple[Any, str]:
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    )
    name = f"b-{uuid4().hex}"
    client.create_bucket(Bucket=name)
    return client, name


def keys(client: Any, name: str) -> set[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=name)
    return {entry["Key"] for page in pages for entry in page.get("Contents", ())}


def put(client: Any, name: str, *names: str) -> list[str]:
    for key in names:
        client.put_object(Bucket=name, Key=key, Body=b"x")
    return [f"s3://{name}/{key}" for key in names]


def test_on_s3_exactly_the_named_keys_go(bucket: tuple[Any, str], s3_endpoint: str) -> None:
    client, name = bucket
    named = put(client, name, "t/a", "t/d=a b&c/<ü>%2F", "t/.hidden")
    put(client, name, "t/ab", "t/a/below", "t//a", ".t/a", "t/d=a b&c/<ü>/")
    assert remove_files([*named, f"s3://{name}/t/none"], options_of(s3_endpoint), nothing) == {}
    assert keys(client, name) == {"t/ab", "t/a/below", "t//a", ".t/a", "t/d=a b&c/<ü>/"}


def test_on_s3_a_thousand_keys_go_per_call(bucket: tuple[Any, str], s3_endpoint: str) -> None:
    client, name = bucket
    # S3 says of a key that is not there that it is gone: those at the ends of both calls are enough.
    put(client, name, "u/keep", "t/00000", "t/00999", "t/01000")
    named = [f"s3://{name}/t/{n:05}" for n in range(1001)]
    calls: list[int] = []
    assert remove_files(named, options_of(s3_endpoint), lambda: calls.append(1)) == {}
    assert len(calls) == 2
    assert keys(client, name) == {"u/keep"}


def test_on_s3_errors_of_single_keys_are_read(bucket: tuple[Any, str], s3_endpoint: str) -> None:
    client, name = bucket
    named = put(client, name, "a", "locked/b", "c")
    statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject",
                 "Resource": f"arn:aws:s3:::{name}/locked/*"}  # fmt: skip
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client.put_bucket_policy(Bucket=name, Policy=policy)
    # By its code alone: what S3 says beside it names the key and who asked.
    assert remove_files(named, options_of(s3_endpoint), nothing) == {f"s3://{name}/locked/b": "AccessDenied"}
    assert keys(client, name) == {"locked/b"}


def test_on_s3_a_key_that_the_answer_leaves_out_is_not_gone(bucket: tuple[Any, str], s3_endpoint: str) -> None:
    client, name = bucket
    named = put(client, name, "a", "b", "c")
    with between(s3_endpoint, without_answer_for("b")) as endpoint:
        failed = remove_files(named, options_of(endpoint), nothing)
    assert failed == {f"s3://{name}/b": "the store did not answer for it"}


def test_on_s3_a_call_that_fails_fails_each_of_its_keys(bucket: tuple[Any, str], s3_endpoint: str) -> None:
    client, name = bucket
    named = put(client, name, "a", "b")
    failed = remove_files([*named, "s3://no-such-bucket/k"], options_of(s3_endpoint), nothing)
    assert set(failed) == {"s3://no-such-bucket/k"}
    assert "NoSuchBucket" in failed["s3://no-such-bucket/k"]
    unreachable = remove_files(named, options_of("http://127.0.0.1:9"), nothing)
    assert set(unreachable) == set(named)


def test_on_s3_a_delete_marker_is_no_removal(bucket: tuple[Any, str], s3_endpoint: str) -> None:
    client, name = bucket
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    (path,) = put(client, name, "a")
    failed = remove_files([path], options_of(s3_endpoint), nothing)
    assert "delete marker" in failed[path]
    assert client.list_object_versions(Bucket=name)["Versions"][0]["Key"] == "a"
