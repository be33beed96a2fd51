"""docs/configuration.md has every key of `ebbtide.yml` and every variable of the environment, and is current."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ebbtide
from ebbtide.config.schemas import MODELS
from tests.config.generate import ENVIRONMENT, FILES_PAGE, PAGE, file_keys, files_page, keys, page

_ASKED = ("os.environ.get", "os.getenv", "environ.get")
SOURCE = Path(ebbtide.__file__).parent


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_key_has_a_meaning() -> None:
    found = list(keys())
    assert len(found) > 35
    assert [key.path for key in found if not key.meaning] == []
    assert {"catalogs.NAME.format", "limits.max_share", "ignore[].until", "spark.conf"} <= {key.path for key in found}


def test_the_page_of_the_other_files_is_current() -> None:
    assert FILES_PAGE.read_text(encoding="utf-8") == files_page(), "run `make docs`"


def test_every_key_of_the_other_files_has_a_meaning() -> None:
    found = [(kind, key) for kind in MODELS if kind != "ebbtide" for key in file_keys(kind)]
    assert len(found) > 100
    assert [(kind, key.path) for kind, key in found if not key.meaning] == []
    assert {"policies[].versions.keep_min", "promises[].any_labels"} <= {key.path for _, key in found}


def _read_variables(path: Path) -> Iterator[str]:
    """What a module reads of its environment by name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=asked, args=[ast.Constant(str(name)), *_]) if ast.unparse(asked) in _ASKED:
                yield name
            case ast.Subscript(value=asked, slice=ast.Constant(str(name)), ctx=ast.Load()):
                if ast.unparse(asked) == "os.environ":
                    yield name


def test_every_variable_that_is_read_is_documented() -> None:
    read = {name for path in SOURCE.rglob("*.py") for name in _read_variables(path)}
    assert "EBBTIDE_ACTOR" in read
    assert read - {"PATH"} == set(ENVIRONMENT)
