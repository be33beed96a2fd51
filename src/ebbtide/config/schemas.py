"""JSON schemas of a project's files, made from the models that read them: editors complete and check with these.

They say what a file may look like; what only several files together show, and what depends on a value, is said when the
project is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ebbtide.config import classifiers, copies, hottier, laws, policies, project, subjects, tables

MODELS: Mapping[str, type[BaseModel]] = {
    "ebbtide": project._ProjectFile,
    "policies": policies._PolicyFile,
    "classifiers": classifiers._ClassifierFile,
    "tables": tables._TableFile,
    "subjects": subjects._SubjectFile,
    "laws": laws._LawFile,
    "copies": copies._CopyFile,
    "hottier": hottier._HotTierFile,
}
"""By what a file is called, or the folder that it lies in."""
FOLDER = Path(".ebbtide") / "schemas"
_IN_PLACE = (policies.Promise, policies.Floor)
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(kind: str) -> dict[str, Any]:
    """The schema of one kind of file, with everything that it refers to inside of it."""
    found = MODELS[kind].model_json_schema()
    parts = found.get("$defs", {})
    for model in _IN_PLACE:
        if (part := parts.get(model.__name__)) is not None:
            # Their selection may stand beside their own keys (`policies._select_in_place`).
            part["properties"] |= parts["Select"]["properties"]
            part["required"].remove("select")
    titled = f"{kind}.yml" if kind in ("ebbtide", "subjects", "laws") else f"{kind}/*.yml"
    return {"$schema": _DIALECT, **_untitled(found), "title": f"Ebbtide: {titled}"}


def _untitled(value: Any, *, named: bool = False) -> Any:
    """Without the titles that pydantic makes of names, and with durations as people write them. `named`: the keys are
    somebody's names, and not a schema's.
    """
    if isinstance(value, list):
        return [_untitled(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"count", "unit"}:  # the default of a duration
        return f"{value['count']}{value['unit']}"
    names = ("properties", "$defs")
    return {
        key: _untitled(each, named=key in names and not named)
        for key, each in value.items()
        if named or not (key == "title" and isinstance(each, str))
    }


def modeline(kind: str, *, depth: int) -> str:
    """The line at the top of a file that tells an editor where its schema is; `depth` folders below the project's."""
    up = "../" * depth
    return f"# yaml-language-server: $schema={up}{FOLDER.as_posix()}/{kind}.json\n"


def schema_files() -> dict[Path, str]:
    """Each schema's text by where it lies in a project."""
    return {
        FOLDER / f"{kind}.json": json.dumps(schema_of(kind), indent=1, ensure_ascii=False) + "\n" for kind in MODELS
    }
