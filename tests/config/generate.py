"""Writes docs/configuration.md from the models that read `ebbtide.yml`: `make docs`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ebbtide.config.project import _ProjectFile

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "configuration.md"
ENVIRONMENT = {
    "EBBTIDE_ACTOR": "who runs this process, in place of the user's name; the ledger only ever has an opaque id",
    "EBBTIDE_CACHE": "where jars and Java are kept, in place of `$XDG_CACHE_HOME/ebbtide`",
    "EBBTIDE_DEBUG": "any text: an internal error shows where it came from; its words may quote what was read",
    "EBBTIDE_LISTEN_TOKEN": "the token that jobs send to `ebbtide lineage listen`",
    "JAVA_HOME": "the Java 17 that Spark runs on, before others are looked for",
    "SSL_CERT_FILE": "certificates to trust, where a proxy has its own",
    "XDG_CACHE_HOME": "the user's cache, `~/.cache` without it",
    "XDG_STATE_HOME": "where copies of signed checkpoints are kept, `~/.local/state` without it",
}
_HEAD = """\
# Every key of `ebbtide.yml`

<!-- Written by `make docs` from src/ebbtide/config/project.py: change that, not this. -->

A project is a folder with an `ebbtide.yml`; `ebbtide init` writes a commented one. Paths are relative to it. A key that
is not here is refused with the nearest one that is. What else a project has lies in files of their own: `policies/`
([policies](policies.md)), `tables/`, `classifiers/`, `checks/`, `reports/`, `lineage/` ([governance](governance.md)),
`subjects.yml`, `laws.yml` and `copies/` ([people](erasure.md)), and `hottier/` ([hot tier](hottier.md)).

`${NAME}` stands for a variable of the environment in `state`, in values of `catalogs`, in a hot tier's `server` and in
`webhook` and `command` of `notify`, and nowhere else; `$${` is `${` itself. What came from the environment is never shown.
"""
_MANY = {str(dict): ("one for each name", ".NAME"), str(list): ("a list", "[]")}
_TYPES = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}


class Key(NamedTuple):
    """A key by its whole path, as in `catalogs.NAME.format`."""

    path: str
    type: str
    default: str
    meaning: str


def keys(model: type[BaseModel] = _ProjectFile, prefix: str = "") -> Iterator[Key]:
    """The keys of a model and of those inside of it, a section's own first."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        inner = _inner(field.annotation)
        if inner is None:
            yield Key(path, _type(field.annotation), _default(field), field.description or "")
            continue
        kind, step = _MANY.get(str(get_origin(field.annotation)), ("a section", ""))
        default = "required" if field.is_required() else ""
        yield Key(path, kind, default, " ".join((inner.__doc__ or "").split()))
        yield from keys(inner, f"{path}{step}.")


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model of a section, of each item of a list, or of each value by name."""
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None


def _type(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(annotation))
    if get_origin(annotation) is dict:
        return "texts by name"
    if isinstance(annotation, UnionType):
        (annotation,) = [each for each in get_args(annotation) if each is not NoneType]
    if get_origin(annotation) is list:
        return "a list of texts"
    return _TYPES[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    return "" if value in (None, {}, []) else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def page() -> str:
    rows = [f"| `{key.path}` | {key.type} | {key.default} | {key.meaning} |\n" for key in keys()]
    variables = [f"| `{name}` | {meaning} |\n" for name, meaning in sorted(ENVIRONMENT.items())]
    return (
        f"{_HEAD}\n| key | value | default | |\n|---|---|---|---|\n{''.join(rows)}"
        f"\n## The environment\n\n| variable | |\n|---|---|\n{''.join(variables)}"
    )


if __name__ == "__main__":
    PAGE.write_text(page())
