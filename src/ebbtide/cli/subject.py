"""A person as somebody writes one: `identity=value`, `@FILE` or standard input with one on each line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ebbtide.cli import render
from ebbtide.errors import InputError


def subject_of(said: Sequence[str]) -> dict[str, list[str]]:
    """What is known of one person. What stands on the command line stays in the shell's history, and is warned of."""
    found: dict[str, list[str]] = {}
    for text in said:
        if text == "-" or text.startswith("@"):
            pairs = list(pairs_of(_lines(text)))
        else:
            render.warn(["a value on the command line stays in the shell's history: use --subject @FILE, or -"])
            name, equals, value = text.partition("=")
            if not equals:
                raise InputError("--subject is not identity=value", hint="write --subject user_id=…, or @FILE")
            pairs = [(name.strip(), value)]
        for name, value in pairs:
            found.setdefault(name, []).append(value)
    return found


def _lines(text: str) -> list[str]:
    name = "standard input" if text == "-" else text[1:]
    if not name:
        raise InputError("--subject @ names no file", hint="write --subject @FILE")
    try:
        # Bytes, because a text of Python's is read by the locale, and would take a mark of the encoding for a letter.
        said = sys.stdin.buffer.read() if text == "-" else Path(name).read_bytes()
        return said.decode("utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}", hint="write --subject @FILE") from None
    except UnicodeDecodeError:
        raise InputError(f"{name} is not text in UTF-8", hint="one identity=value on each line") from None


def pairs_of(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """`identity=value` of one person, a line each; empty lines say nothing."""
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if not text.strip():
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"line {number} is not identity=value", hint="write user_id=… on a line of its own")
        yield name.strip(), value
