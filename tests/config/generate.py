"""Writes docs/configuration.md and docs/project-files.md from the models that read these files: `make docs`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ebbtide.config.project import _ProjectFile
from ebbtide.config.schemas import FOLDER, MODELS, schema_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "configuration.md"
FILES_PAGE = ROOT / "docs" / "project-files.md"
ENVIRONMENT = {
    "EBBTIDE_ACTOR": "who runs this process, in place of the user's name; the ledger only ever has an opaque id",
    "EBBTIDE_CACHE": "where jars are kept, in place of `$XDG_CACHE_HOME/ebbtide`",
    "EBBTIDE_DEBUG": "any text: an internal error shows where it came from; its words may quote what was read",
    "EBBTIDE_LISTEN_TOKEN": "the token that jobs send to `ebbtide lineage listen`",
    "JAVA_HOME": "the Java 17 that Spark runs on, before others are looked for",
    "JAVA_TOOL_OPTIONS": "options of Java, which `ebbtide setup` hands on: a proxy of yours, for one",
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
`subjects.yml`, `laws.yml` and `copies/` ([people](erasure.md)), and `hottier/` ([hot tier](hottier.md)); every key of
those is in [project files](project-files.md).

`${NAME}` stands for a variable of the environment in `state`, in values of `catalogs`, in a hot tier's `server` and in
`webhook` and `command` of `notify`, and nowhere else; `$${` is `${` itself. What came from it is never shown.
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


_FILES_HEAD = """\
# Every key of a project's other files

<!-- Written by `make docs` from src/ebbtide/config: change that, not this. -->

[`ebbtide.yml`](configuration.md) has a page of its own. A key that is not here is refused with the nearest one that is.

`ebbtide init` writes JSON schemas of all of them to `FOLDER`, and points to them in the first line of the files that it
writes, so that editors which know YAML (VS Code, JetBrains, Neovim and others) complete keys, show what they mean and
underline slips, without a network. For a file of your own that line is, with the name of its kind:

```yaml
# yaml-language-server: $schema=../FOLDER/policies.json
```

`ebbtide init --schemas` writes them anew after an upgrade, or in a clone that lacks them; it changes nothing else.
"""
_WHERE = {"subjects": "subjects.yml", "laws": "laws.yml"}


def file_keys(kind: str) -> Iterator[Key]:
    """The keys of one kind of file, by its schema."""
    found = schema_of(kind)
    yield from _properties(found, found.get("$defs", {}), "")


def _properties(schema: dict[str, Any], parts: dict[str, Any], prefix: str) -> Iterator[Key]:
    required = schema.get("required", [])
    for name, said in schema.get("properties", {}).items():
        inner, step, kind = _section(said, parts)
        default = "required" if name in required else _shown(said.get("default"))
        meaning = " ".join((said.get("description") or (inner or {}).get("description") or "").split())
        yield Key(f"{prefix}{name}", kind or _kind(said), default, meaning)
        if inner is not None:
            yield from _properties(inner, parts, f"{prefix}{name}{step}.")


def _section(said: dict[str, Any], parts: dict[str, Any]) -> tuple[dict[str, Any] | None, str, str]:
    """The section that stands there, each item's or each name's, and how it is written."""
    for each, step, kind in (
        *((one, "", "a section") for one in (said, *said.get("anyOf", []))),
        (said.get("items", {}), "[]", "a list"),
        (said.get("additionalProperties") or {}, ".NAME", "one for each name"),
    ):
        if isinstance(each, dict) and "$ref" in each:
            inner = parts[each["$ref"].rpartition("/")[2]]
            if "properties" in inner:
                return inner, step, kind
            if "anyOf" in inner:
                return None, step, "a list of labels, or labels by label"
    return None, "", ""


def _kind(said: dict[str, Any]) -> str:
    if "$ref" in said:
        said = {"enum": ["table", "column"]} if said["$ref"].endswith("/ClassifierKind") else {}
    if ways := [each for each in said.get("anyOf", []) if each.get("type") != "null"]:
        return " or ".join(dict.fromkeys(_kind(each) for each in ways))
    if values := said.get("enum", [said["const"]] if "const" in said else []):
        return " or ".join(f"`{value}`" for value in values)
    if "[hdwy]" in said.get("pattern", "") or "[dwmy]" in said.get("pattern", ""):
        return f"a time: `90d`, in {'h, d, w or y' if '[hdwy]' in said['pattern'] else 'd, w, m or y'}"
    if said.get("type") == "array":
        return "a list of texts"
    if said.get("type") == "object":
        return "values by name"
    return {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`"}[
        said["type"]
    ]


def _shown(value: Any) -> str:
    return "" if value in (None, {}, []) else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def files_page() -> str:
    made = [_FILES_HEAD.replace("FOLDER", FOLDER.as_posix())]
    for kind in MODELS:
        if kind != "ebbtide":
            rows = [f"| `{key.path}` | {key.type} | {key.default} | {key.meaning} |\n" for key in file_keys(kind)]
            name = _WHERE.get(kind, f"{kind}/*.yml")
            made.append(f"\n## `{name}`\n\n| key | value | default | |\n|---|---|---|---|\n{''.join(rows)}")
    return "".join(made)


if __name__ == "__main__":
    PAGE.write_text(page())
    FILES_PAGE.write_text(files_page())
