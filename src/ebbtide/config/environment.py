"""`${NAME}` in connection values: what differs between places, and secrets, stay out of a project's files.

Only where a setting says how something is reached (the state, catalogs, a hot tier's server). Everywhere else the signs
stand for themselves. What came from the environment is never part of an error: those name the variable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ebbtide.errors import InputError

_SIGNS = re.compile(r"\$\$\{|\$\{(?P<name>[^}]*)(?P<end>\})?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def from_environment(text: str, *, where: str, environment: Mapping[str, str] | None = None) -> str:
    """The text with each `${NAME}` replaced by that variable, and each `$${` by `${`.

    Values are taken as they are: a `${` inside of one stands for itself. A variable that is not set, or empty, is an
    `InputError` at `where`, as is a name that is none.
    """
    known = os.environ if environment is None else environment

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "${"
        if match["end"] is None or not _NAME.fullmatch(name):
            # What stands there is not told: somebody may have put a secret between the brackets.
            hint = "write ${NAME} for a variable of the environment, and $${ for the signs themselves"
            raise InputError("not the name of a variable between ${ and }", where=where, hint=hint)
        if not known.get(name):
            state = "is empty" if name in known else "is not set"
            raise InputError(f"the environment variable {name} {state}", where=where, hint=f"export {name}=…")
        return known[name]

    return _SIGNS.sub(value, text)


def takes_environment(text: str) -> bool:
    """Whether a part of the text comes from the environment, so that nobody may be shown what it stands for."""
    return any(match["name"] is not None for match in _SIGNS.finditer(text))


def names_in(text: str) -> list[str]:
    """The variables that a text asks for."""
    return [
        name for match in _SIGNS.finditer(text) if (name := match["name"]) and match["end"] and _NAME.fullmatch(name)
    ]


def is_set(name: str) -> bool:
    """Whether a variable has a value."""
    return bool(os.environ.get(name))
