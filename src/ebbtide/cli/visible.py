"""Text of strangers for a terminal: names of tables, columns, files and people's words may hold anything.

It loads nothing, for `ledger check`, which starts in a blink.
"""

from __future__ import annotations

import re

_BEYOND = re.compile("[^\x00-\x7e]")  # a range up to the last letter would take 8 ms to compile


def visible(text: str) -> str:
    """The text on one line, with escapes for all that a terminal obeys or does not show: controls, line breaks, and
    what changes the direction or the width of what stands beside it.
    """
    return text if text.isprintable() else "".join(map(_letter, text))


def json_visible(text: str) -> str:
    """The same for JSON, where only strings hold such letters, and JSON's own escapes mean them too."""
    return _BEYOND.sub(lambda found: _in_json(found[0]), text)


def _letter(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def _in_json(letter: str) -> str:
    if letter.isprintable():
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))
