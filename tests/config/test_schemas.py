"""Schemas for editors: what Ebbtide reads they let through, and what they refuse it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ebbtide.config import schemas
from ebbtide.config.schemas import FOLDER, MODELS, schema_of
from ebbtide.config.yaml import _Document
from ebbtide.governance.packs import install
from tests.cli.command import ebbtide

ROOT = Path(__file__).parents[2]
DOCS = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_KEYS = {
    "project": "ebbtide", "policies": "policies", "promises": "policies", "floors": "policies",
    "classifiers": "classifiers", "subjects": "subjects", "laws": "laws", "copies": "copies", "server": "hottier",
}  # fmt: skip
"""Which file a document is of, by one of its keys."""


def faults(kind: str, document: Any) -> list[str]:
    """As an editor sees it: YAML's dates are texts."""
    plain = json.loads(json.dumps(document, default=lambda value: value.isoformat() if isinstance(value, date) else ""))
    found = Draft202012Validator(schema_of(kind)).iter_errors(plain)
    return [f"{kind}: {error.json_path}: {error.message}" for error in found]


def values(text: str) -> Any:
    """As Ebbtide reads them, and editors do: YAML's older version takes the key `on` for `true`."""
    return _Document(Path("block"), yaml.compose(text, Loader=yaml.SafeLoader)).values


def written(document: Any) -> Iterator[tuple[str, Any]]:
    """The files of a block of YAML: one document may show several of a project's files."""
    if not isinstance(document, dict):
        return
    for key, kind in _KEYS.items():
        if key in document:
            yield kind, document
            return
    if "tables" in document and all("name" in each for each in document["tables"]):
        yield "tables", document
    elif document and {*document} <= {*schema_of("ebbtide")["properties"]}:  # some keys of `ebbtide.yml`
        yield "ebbtide", {"project": "acme", "catalogs": {}} | document


def blocks() -> Iterator[Any]:
    for page in DOCS:
        for number, text in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8"))):
            yield from (
                pytest.param(kind, document, id=f"{page.name}-{number}") for kind, document in written(values(text))
            )


def test_every_schema_is_one() -> None:
    for kind in MODELS:
        Draft202012Validator.check_schema(schema_of(kind))


@pytest.mark.parametrize(("kind", "document"), list(blocks()))
def test_what_the_docs_show_is_let_through(kind: str, document: Any) -> None:
    assert faults(kind, document) == []


def test_every_block_of_the_docs_is_looked_at() -> None:
    """But the rules of another program, and a comment alone."""
    passed_over = [
        (page.name, [*(document or ())])
        for page in DOCS
        for document in map(values, _BLOCK.findall(page.read_text(encoding="utf-8")))
        if not [*written(document)]
    ]
    assert passed_over == [("operations.md", ["groups"]), ("project-files.md", [])]


def test_what_ships_is_let_through(tmp_path: Path) -> None:
    done = install("gdpr", tmp_path)
    files = [path for path in done.written if path.suffix == ".yml"]
    assert len(files) > 3
    for path in files:
        assert faults(path.parent.name, values(path.read_text())) == []
    laws = ROOT / "src" / "ebbtide" / "config" / "laws.yml"
    assert faults("laws", values(laws.read_text())) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ebbtide", "{project: a, catalogs: {l: {format: delta, warehouse: w}}, limits: {min_bytes: 1GiB}}"),
        ("ebbtide", "{project: a, catalogs: {l: {format: iceberg, warehouse: w, type: rest, token: x, n: 1}}}"),
        ("ebbtide", "{project: a, catalogs: {}, spark: {conf: {a: 1, b: true}}, notify: [{command: [a]}]}"),
        ("ebbtide", "{project: a, catalogs: {}, ignore: [{dataset: a.b.c, reason: r, until: 2030-01-01}]}"),
        ("policies", "{promises: [{any_labels: [A.b], gone_within: 110d}], floors: []}"),
        ("policies", "{floors: [{select: {tables: ['**']}, keep_at_least: 10y, basis: law}]}"),
        ("policies", "{policies: [{name: a, select: {properties: {a: 1}}, grace: 12h, versions: {older_than: auto}}]}"),
        ("tables", "{tables: [{name: a.b.c, reclassify: {x: [], y: {A.b: null}}, erasure: {until: 2030-01-01}}]}"),
    ],
)  # fmt: skip
def test_every_way_to_write_a_value_is_let_through(kind: str, text: str) -> None:
    assert faults(kind, values(text)) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ebbtide", "{project: a, catalogs: {}, limts: {}}"),
        ("ebbtide", "{project: a, catalogs: {l: {format: icebreg, warehouse: w}}}"),
        ("ebbtide", "{project: a, catalogs: {}, notify: [{webhook: a, on: [faild]}]}"),
        ("policies", "{policies: [{name: a, select: {tables: '**'}, versions: {older_than: 30d}}]}"),
        ("policies", "{policies: [{name: a, select: {tables: ['**']}, versions: {older_than: soon}}]}"),
        ("policies", "{promises: [{tabels: ['**'], gone_within: 3d}]}"),
        ("tables", "{tables: [{name: a.b.c, reclassify: {x: A.b}}]}"),
        ("copies", "{copies: [{name: a, kind: paper, of: ['**']}]}"),
        ("hottier", "{tables: [{name: a.b, time: t, chunk: 1d}]}"),
    ],
)
def test_a_slip_is_refused(kind: str, text: str) -> None:
    assert faults(kind, values(text))


def test_init_points_editors_to_schemas_that_are_there(tmp_path: Path) -> None:
    assert ebbtide("init", "--dry-run", cwd=tmp_path).returncode == 0
    assert [*tmp_path.iterdir()] == []
    assert ebbtide("init", "--name", "acme", cwd=tmp_path).returncode == 0
    assert ebbtide("init", "--pack", "gdpr", cwd=tmp_path).returncode == 0
    files = sorted(tmp_path.rglob("*.yml"))
    assert len(files) > 5
    for path in files:
        first = path.read_text().splitlines()[0]
        target = path.parent / first.removeprefix("# yaml-language-server: $schema=")
        assert target.resolve().parent == tmp_path / FOLDER, path
        kind = "ebbtide" if path.parent == tmp_path else path.parent.name
        assert json.loads(target.read_text()) == schema_of(kind)
        assert faults(kind, values(path.read_text())) == []


def test_schemas_of_an_older_version_are_written_anew_and_nothing_else_is(tmp_path: Path) -> None:
    assert ebbtide("init", "--schemas", cwd=tmp_path).returncode == 2
    (tmp_path / "ebbtide.yml").write_text("mine")
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "policies.json").write_text("old")
    assert ebbtide("init", "--schemas", cwd=tmp_path).returncode == 0
    assert (tmp_path / "ebbtide.yml").read_text() == "mine"
    assert {path.name for path in (tmp_path / FOLDER).iterdir()} == {f"{kind}.json" for kind in MODELS}
    for path, text in schemas.schema_files().items():
        assert (tmp_path / path).read_text() == text
