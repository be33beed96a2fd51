"""Every key of every file that people write is on its pages, as code; a model that no file has is nobody's."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError

from ebbtide import config
from ebbtide.config import classifiers, copies, hottier, laws, policies, project, subjects, tables, yaml
from tests.config.generate import ROOT

FILES: dict[str, tuple[type[BaseModel], tuple[str, ...]]] = {
    "ebbtide.yml": (project._ProjectFile, ("configuration.md",)),
    "policies": (policies._PolicyFile, ("policies.md",)),
    "tables": (tables._TableFile, ("governance.md", "erasure.md")),
    "classifiers": (classifiers._ClassifierFile, ("governance.md",)),
    "subjects.yml": (subjects._SubjectFile, ("erasure.md", "governance.md")),
    "laws.yml": (laws._LawFile, ("erasure.md",)),
    "copies": (copies._CopyFile, ("erasure.md",)),
    "hottier": (hottier._HotTierFile, ("hottier.md",)),
}
"""The model of each file, and the pages that say what its keys are."""
_SHAPES = {"instead", "changes"}
"""What `reclassify` is turned into: nobody writes these."""
_CODE = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and those that its keys hold, however deep."""
    yield model
    waiting = [field.annotation for field in model.model_fields.values()]
    while waiting:
        each = waiting.pop()
        if isinstance(each, type) and issubclass(each, BaseModel):
            yield from _models(each)
        waiting += get_args(each)


def _keys(model: type[BaseModel]) -> set[tuple[str, str]]:
    """A key may be read by another name than the field's."""
    return {
        (each.__name__, field.alias or name) for each in _models(model) for name, field in each.model_fields.items()
    }


@pytest.mark.parametrize("file", FILES)
def test_every_key_of_a_file_is_on_its_pages(file: str) -> None:
    model, pages = FILES[file]
    code = " ".join(found for page in pages for found in _CODE.findall((ROOT / "docs" / page).read_text("utf-8")))
    found = {(of, key) for of, key in _keys(model) if key not in _SHAPES}
    assert found
    assert sorted((of, key) for of, key in found if not re.search(rf"(?<!\w){re.escape(key)}(?!\w)", code)) == []


def test_every_model_is_of_a_file() -> None:
    for module in pkgutil.iter_modules(config.__path__, "ebbtide.config."):
        importlib.import_module(module.name)
    waiting, known = [BaseModel], set()
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        known |= {each for each in below if each.__module__.startswith("ebbtide.config.")}
    shared = {project._Settings, policies._Strict, policies._Selection}
    assert known - shared == {each for model, _ in FILES.values() for each in _models(model)} - shared


_WRONG: tuple[object, ...] = (
    None,
    "",
    "x",
    " ",
    -1,
    0,
    2,
    1.5,
    1e300,
    float("nan"),
    10**30,
    True,
    [],
    [[]],
    ["x", 1],
    {},
    {"x": {}},
    {"x": 1},
)
_OURS = {"value_error", "missing", "extra_forbidden"}


def test_whatever_is_wrong_is_told_in_our_words_and_not_in_those_of_python() -> None:
    said = set()
    for root, _ in FILES.values():
        for model in _models(root):
            for name, field in model.model_fields.items():
                for wrong in _WRONG:
                    try:
                        model.model_validate({field.alias or name: wrong})
                    except ValidationError as error:
                        said |= {one["type"] for one in error.errors()}
    assert {"float_type", "int_type", "bool_type", "literal_error", "less_than_equal"} <= said
    assert said - _OURS - yaml._SHAPES.keys() == set()
    assert said - _OURS - yaml._HINTS.keys() == set()
