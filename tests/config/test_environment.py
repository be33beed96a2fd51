"""Connection values from the environment: there and nowhere else, and never in what people are told."""

from pathlib import Path

import pytest

from ebbtide.config import load_project
from ebbtide.config.environment import from_environment, takes_environment
from ebbtide.errors import InputError

PROJECT = """\
project: ${NAME}
catalogs:
  lake:
    format: iceberg
    type: jdbc
    uri: jdbc:postgresql://db/${DB}
    jdbc.password: ${PASSWORD}
    warehouse: s3://${BUCKET}/lake
    note: $${DB}
state: postgresql://me:${PASSWORD}@db/state
inventory: ${DB}
"""


def test_connection_values_and_nothing_else_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"DB": "acme", "PASSWORD": "p${DB}w", "BUCKET": "b", "NAME": "no"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    project = load_project(tmp_path)
    lake = project.catalogs["lake"]
    assert project.state == "postgresql://me:p${DB}w@db/state"
    assert lake.options == {"uri": "jdbc:postgresql://db/acme", "jdbc.password": "p${DB}w", "note": "${DB}"}
    assert lake.warehouse == "s3://b/lake"
    assert (project.name, project.inventory) == ("${NAME}", tmp_path / "${DB}")
    assert "p${DB}w" not in repr(project)


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (("${BUCKET}", "${BUKET}"), 8, "the environment variable BUKET is not set"),
        (("${BUCKET}", "${EMPTY}"), 8, "the environment variable EMPTY is empty"),
        (("${BUCKET}", "${hunter 2}"), 8, "not the name of a variable"),
        (("me:${PASSWORD}", "me:${PASSWORD"), 10, "not the name of a variable"),
    ],
)
def test_a_variable_that_is_not_there_is_named_with_its_line_and_no_value_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], line: int, message: str
) -> None:
    for name in ("DB", "PASSWORD", "BUCKET"):
        monkeypatch.setenv(name, "hunter 2")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("BUKET", raising=False)
    (tmp_path / "ebbtide.yml").write_text(PROJECT.replace(*change))
    with pytest.raises(InputError, match=message) as caught:
        load_project(tmp_path)
    assert f"ebbtide.yml:{line}: " in caught.value.message
    assert "hunter" not in f"{caught.value.message} {caught.value.hint}"


def test_two_dollars_stand_for_the_signs_themselves() -> None:
    known = {"A": "1", "B": "$${A}"}
    assert from_environment("$${A} ${A}${B} $A $", where="x", environment=known) == "${A} 1$${A} $A $"
    assert takes_environment("x${A}")
    assert not takes_environment("$${A} $A")
