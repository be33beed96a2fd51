"""YAML with positions: every complaint names file and line, and where there is one, the nearest right word."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from ebbtide.errors import InputError

Model = TypeVar("Model", bound=BaseModel)
Place = tuple[str | int, ...]


class _Document:
    """Plain values, and the line on which each of them stands."""

    def __init__(self, path: Path, node: yaml.Node | None) -> None:
        self.path = path
        self.lines: dict[Place, int] = {}
        self.values = {} if node is None else self._value(node, ())

    def _value(self, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            values: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                line = key_node.start_mark.line + 1
                if key in values:
                    raise InputError(f"{key!r} stands twice", where=f"{self.path}:{line}", hint="remove one of them")
                self.lines[(*place, key)] = line
                values[key] = self._value(value_node, (*place, key))
            return values
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*place, n)) for n, item in enumerate(node.value)]
        return yaml.SafeLoader("").construct_object(node)

    def where(self, place: Place) -> str:
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.path}:{self.lines.get(place, 1)}"


def load(path: Path, model: type[Model]) -> Model:
    """Read one file as `model`; anything wrong is an `InputError` with file, line and a hint."""
    return load_with_places(path, model)[0]


def load_with_places(path: Path, model: type[Model]) -> tuple[Model, Callable[[Place], str]]:
    """The same, and a function that says `file:line` of a place in the file, for what only several files show."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"no such file: {path}", hint="run `ebbtide init`, or name it with --project") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    try:
        document = _Document(path, yaml.compose(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise InputError(f"not YAML: {error.problem or error.context}", where=where) from None
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {error}", where=str(path)) from None
    try:
        return model.model_validate(document.values), document.where
    except ValidationError as error:
        raise _explain(error, document, model) from None


def _explain(error: ValidationError, document: _Document, model: type[BaseModel]) -> InputError:
    first = error.errors()[0]
    place: Place = first["loc"]
    where = document.where(place)
    name = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        return InputError(f"unknown key {name!r}", where=where, hint=_nearest(str(place[-1]), place[:-1], model))
    if first["type"] == "missing":
        return InputError(f"{name!r} is missing", where=where)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return InputError(cause.message, where=where, hint=cause.hint)
    return InputError(f"{name}: {first['msg'].removeprefix('Value error, ')}", where=where)


def _nearest(word: str, place: Place, model: type[BaseModel]) -> str:
    known: list[str] = list(model.model_fields)
    for part in place:
        field = model.model_fields.get(str(part))
        inner = _model_in(getattr(field, "annotation", None))
        if inner is not None:
            model, known = inner, list(inner.model_fields)
    close = difflib.get_close_matches(word, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(sorted(known))}"


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation holds: itself, the items of its list, or the other half of an optional."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def nearest(word: str, known: list[str]) -> str:
    """A hint for a name that nothing matches."""
    close = difflib.get_close_matches(word, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known)) or 'none'}"
