from pathlib import Path

import pytest

from ebbtide.config import load_project
from ebbtide.errors import InputError

GOOD = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake, io-impl: x.Y}
  events: {format: delta, warehouse: ./delta}
  far: {format: paimon, warehouse: "s3://bucket/far"}
spark: {master: "local[2]", conf: {spark.x: true, spark.y: 3}}
limits: {min_bytes: 2MiB}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "ebbtide.yml"
    path.write_text(text)
    return path


def test_paths_are_relative_to_the_project_file_and_further_keys_go_to_the_engine(tmp_path: Path) -> None:
    project = load_project(write(tmp_path, GOOD))
    lake = project.catalogs["lake"]
    assert lake.warehouse == str(tmp_path / "lake")
    assert lake.options == {"uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "io-impl": "x.Y"}
    assert project.catalogs["far"].warehouse == "s3://bucket/far"
    assert project.state == f"sqlite:///{tmp_path}/.ebbtide/state.db"
    assert project.inventory == tmp_path / ".ebbtide" / "inventory"
    assert project.spark.conf == {"spark.x": "true", "spark.y": "3"}
    assert project.limits.min_bytes == 2 << 20


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert load_project(tmp_path).name == "acme"


def _ignoring(what: str) -> tuple[str, str]:
    return "limits:", f"ignore: [{{{what}, reason: it is gone}}]\nlimits:"


@pytest.mark.parametrize(
    ("change", "line", "message", "hint"),
    [
        (("format: delta", "format: detla"), 4, "unknown format 'detla'", "did you mean 'delta'?"),
        (("spark: {", "sparc: {"), 6, "unknown key 'sparc'", "did you mean 'spark'?"),
        (("master:", "mastr:"), 6, "unknown key 'spark.mastr'", "did you mean 'master'?"),
        (("format: delta, ", ""), 4, "'catalogs.events.format' is missing", None),
        (("min_bytes: 2MiB", "min_bytes: 2 apples"), 7, "not a size: '2 apples'", "write a number and"),
        (("min_bytes: 2MiB", "min_bytes: ٢MiB"), 7, "not a size: '٢MiB'", "write a number and"),
        (("limits:", "tick: 1٢h\nlimits:"), 7, "tick", None),
        (("  events:", '  "events\\n":'), 4, "cannot be used", "letters"),
        (("limits: {", "limits: {max_objects: true, "), 7, "limits.max_objects", "whole number"),
        (("min_bytes: 2MiB", "min_bytes: true"), 7, "limits.min_bytes", "whole number"),
        (("limits: {", "limits: {lake_max_share: true, "), 7, "limits.lake_max_share", "number"),
        (("limits:", "warehouses: [{prefix: ., exclusive: 1}]\nlimits:"), 7, "exclusive", "true or false"),
        (("limits: {", "limits: {max_share: 3, "), 7, "limits.max_share: it must be 1.0 or less", None),
        (("project: acme", "project: [acme"), 2, "not YAML", "quotes"),
        (("limits:", "spark:"), 7, "'spark' stands twice", "remove one"),
        (("  far:", "  spark_catalog:"), 5, "catalog name 'spark_catalog' cannot be used", None),
        (_ignoring("dataset: old.db.t"), 7, "ignore: no catalog 'old' of old.db.t", "`catalog:`"),
        (_ignoring("catalog: lake"), 7, "ignore: catalog 'lake' is there", "shares_files: false"),
        (_ignoring("catalog: old, until: 2026-12-01"), 7, "is ignored for good", "until"),
        (_ignoring("catalog: old, dataset: lake.db.t"), 7, "name a dataset, or a catalog", None),
        (_ignoring("until: 2026-12-01"), 7, "name a dataset, or a catalog", None),
        (_ignoring("catalog: old.db.t"), 7, "not a catalog's name: 'old.db.t'", None),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_hint(
    tmp_path: Path, change: tuple[str, str], line: int, message: str, hint: str | None
) -> None:
    path = write(tmp_path, GOOD.replace(*change))
    with pytest.raises(InputError) as caught:
        load_project(path)
    assert f"ebbtide.yml:{line}: " in str(caught.value)
    assert message in str(caught.value)
    assert hint is None or hint in str(caught.value.hint)
    assert caught.value.exit_code == 2


def test_a_missing_or_undecodable_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file") as caught:
        load_project(tmp_path / "ebbtide.yml")
    assert "ebbtide init" in str(caught.value.hint)
    (tmp_path / "ebbtide.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        load_project(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "just words", "project: a\ncatalogs: 3"])
def test_other_shapes_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        load_project(write(tmp_path, text))
