"""YAML with positions: every complaint names file and line, and where there is one, the nearest right word."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from ebbtide.errors import InputError

Model = TypeVar("Model", bound=BaseModel)
Place = tuple[str | int, ...]
_MOST_REPEATED = 10_000
_ODD_NUMBER = re.compile(r"[+-]?(0[0-7_]*[0-7]$|[0-9_]+:)")


class _Document:
    """Plain values, and the line on which each of them stands."""

    def __init__(self, path: Path, node: yaml.Node | None) -> None:
        self.path = path
        self.lines: dict[Place, int] = {}
        self._inside: set[int] = set()
        self._seen: set[int] = set()
        self._repeated = 0
        self.values = {} if node is None else self._value(node, ())

    def _value(self, node: yaml.Node, place: Place) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(place, line)
        # A few lines of aliases of aliases stand for billions of values.
        self._repeated += id(node) in self._seen
        self._seen.add(id(node))
        if self._repeated > _MOST_REPEATED:
            hint = "write the values out, or let fewer aliases stand for others"
            raise InputError(
                f"aliases stand for more than {_MOST_REPEATED} values", where=f"{self.path}:{line}", hint=hint
            )
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, line)
        if id(node) in self._inside:
            hint = "let the alias stand for something else"
            raise InputError("a value that holds itself", where=f"{self.path}:{line}", hint=hint)
        self._inside.add(id(node))
        try:
            return self._collection(node, place)
        finally:
            self._inside.remove(id(node))

    def _collection(self, node: yaml.Node, place: Place) -> Any:
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
        return [self._value(item, (*place, n)) for n, item in enumerate(node.value)]

    def _scalar(self, node: yaml.ScalarNode, line: int) -> Any:
        try:
            value = yaml.SafeLoader("").construct_object(node)
        except (ValueError, KeyError, AttributeError):  # a day that does not exist, or a word under `!!int`
            kind = node.tag.rpartition(":")[2]
            raise InputError(
                f"cannot be read: {node.value!r} is no {kind}", where=f"{self.path}:{line}", hint=_MEANT_AS_TEXT
            ) from None
        # YAML 1.1 counts in eights and sixties where people see a number with a zero before it, or a time.
        if isinstance(value, int | float) and _ODD_NUMBER.match(node.value):
            raise InputError(
                f"{node.value!r} would be read as {value}",
                where=f"{self.path}:{line}",
                hint=f"write {value}, or {_MEANT_AS_TEXT}",
            )
        return value

    def where(self, place: Place) -> str:
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.path}:{self.lines.get(place, 1)}"


def load(path: Path, model: type[Model]) -> Model:
    """Read one file as `model`; anything wrong is an `InputError` with file, line and a hint."""
    return load_with_places(path, model)[0]


def load_with_places(path: Path, model: type[Model]) -> tuple[Model, Callable[[Place], str]]:
    """The same, and a function that says `file:line` of a place in the file, for what only several files show."""
    document = _read(path)
    try:
        return model.model_validate(document.values), document.where
    except ValidationError as error:
        raise _explain(error, document, model) from None


def plain_values(path: Path) -> Any:
    """What stands in a file, whatever it should be."""
    return _read(path).values


def _read(path: Path) -> _Document:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"no such file: {path}", hint="run `ebbtide init`, or name it with --project") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), hint="it must be a text file in UTF-8") from None
    try:
        return _Document(path, yaml.compose(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise InputError(f"not YAML: {error.problem or error.context}", where=where, hint=_QUOTE) from None
    except RecursionError:
        where = f"{path}:{_deepest_line(text)}"
        raise InputError("nested too deeply", where=where, hint="close brackets that were left open") from None
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {error}", where=str(path), hint=_QUOTE) from None


def _deepest_line(text: str) -> int:
    """Where the nesting first is as deep as anywhere."""
    depth = deepest = line = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > deepest:
            deepest, line = depth, event.start_mark.line + 1
    return line


def _explain(error: ValidationError, document: _Document, model: type[BaseModel]) -> InputError:
    found = error.errors()
    # A misspelt key is unknown, and the right one is missing: the word that stands there is what helps.
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    place: Place = first["loc"]
    where = document.where(place)
    name = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        return InputError(f"unknown key {name!r}", where=where, hint=_nearest(str(place[-1]), place[:-1], model))
    if first["type"] == "missing":
        return InputError(f"{name!r} is missing", where=where, hint=f"add the key {place[-1]!r}")
    facts = first.get("ctx", {})
    cause = facts.get("error")
    if isinstance(cause, InputError):
        inside: Place = getattr(cause, "place", ())
        return InputError(cause.message, where=document.where((*place, *inside)), hint=cause.hint)
    hint = _HINTS.get(first["type"], "docs/policies.md shows what may stand there").format(**facts)
    said = _SHAPES[first["type"]].format(**facts) if first["type"] in _SHAPES else _words(first["msg"])
    if not place:
        keys = " and ".join(f"`{key}:`" for key, field in model.model_fields.items() if field.is_required())
        hint = f"it begins with {keys or 'its keys'}"
    elif first["type"] == "tuple_type" and isinstance(first["input"], str):
        hint = f"write [{json.dumps(first['input'], ensure_ascii=False)}]"
    elif first["type"] == "less_than_equal" and facts["le"] == 1 and 1 < first["input"] <= 100:
        # A share of 1 is no limit at all: nobody who wrote a percentage means that.
        hint = f"a share is a part of 1: write {first['input'] / 100:g} for {first['input']:g} %"
    return InputError(f"{name or 'the file'}: {said}", where=where, hint=hint)


def _words(message: str) -> str:
    """What a validator of ours says; pydantic's own words stand in `_SHAPES`."""
    return message.removeprefix("Value error, ")


_MOST_KNOWN = 30
"""As many names as a person looks through; a lake has more tables than that."""
_QUOTE = "put a text with a colon, a star or a bracket in quotes, and indent by spaces"
_MEANT_AS_TEXT = "put it in quotes where a text is meant"
_SHAPES = {
    "tuple_type": "it must be a list",
    "list_type": "it must be a list",
    "model_type": "it must be keys and values",
    "model_attributes_type": "it must be keys and values",
    "dict_type": "it must be keys and values",
    "string_type": "it must be a text",
    "string_too_short": "it must not be empty",
    "string_pattern_mismatch": "it does not look like one",
    "int_type": "it must be a whole number",
    "int_parsing": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "int_parsing_size": "it is too large",
    "float_type": "it must be a number",
    "float_parsing": "it must be a number",
    "finite_number": "it must be a finite number",
    "bool_type": "it must be true or false",
    "bool_parsing": "it must be true or false",
    "literal_error": "it must be {expected}",
    "greater_than_equal": "it must be {ge} or more",
    "greater_than": "it must be more than {gt}",
    "less_than_equal": "it must be {le} or less",
    "less_than": "it must be less than {lt}",
    "date_type": "it must be a day",
    "date_from_datetime_parsing": "it must be a day",
    "date_from_datetime_inexact": "it must be a day",
    "too_short": "it has too few entries",
    "too_long": "it has too many entries",
}
"""What pydantic says in Python's words, in those of people who write YAML."""
_HINTS = {
    "greater_than_equal": "write {ge} or more",
    "less_than_equal": "write {le} or less",
    "literal_error": "write {expected}",
    "int_type": "write a whole number",
    "int_parsing": "write a whole number",
    "int_from_float": "write a whole number",
    "float_type": "write a number",
    "float_parsing": "write a number",
    "finite_number": "write a number",
    "int_parsing_size": "write a smaller number",
    "greater_than": "write more than {gt}",
    "less_than": "write less than {lt}",
    "date_type": "write a day, as in 2026-01-31",
    "date_from_datetime_parsing": "write a day, as in 2026-01-31",
    "date_from_datetime_inexact": "write a day, as in 2026-01-31",
    "too_short": "write {min_length} or more",
    "too_long": "write {max_length} or fewer",
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "string_pattern_mismatch": "write a text that is not blank",
    "string_type": "write a text",
    "string_too_short": "write a text that is not empty",
    "tuple_type": "write a list, as in [a, b]",
    "list_type": "write a list, as in [a, b]",
    "model_type": "write keys and values, as in {{key: value}}",
    "model_attributes_type": "write keys and values, as in {{key: value}}",
    "dict_type": "write keys and values, as in {{key: value}}",
}
"""What to write instead, by the kind of pydantic's complaint."""


def _nearest(word: str, place: Place, model: type[BaseModel]) -> str:
    for part in place:
        field = model.model_fields.get(str(part))
        model = _model_in(getattr(field, "annotation", None)) or model
    known = [*model.model_fields, *getattr(model, "in_place", ())]
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
    if close:
        return f"did you mean {close[0]!r}?"
    more = len(known) - _MOST_KNOWN
    return f"known: {', '.join(sorted(known)[:_MOST_KNOWN]) or 'none'}" + (f" and {more} more" if more > 0 else "")


def files_in(folder: Path) -> list[Path]:
    """The YAML files of a project's folder, by name; none where there is no such folder."""
    return sorted(path for path in folder.glob("*") if path.suffix in (".yml", ".yaml") and path.is_file())
