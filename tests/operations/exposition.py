"""Prometheus' text format, read strictly: what its own parser would refuse fails here."""

from __future__ import annotations

import re

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_COMMENT = re.compile(rf"# (HELP|TYPE) ({_NAME}) (.+)")
_SAMPLE = re.compile(rf"({_NAME})\{{(.*)\}} (-?[0-9.]+(?:e[+-]?[0-9]+)?|NaN|[+-]Inf)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)')
Labels = tuple[tuple[str, str], ...]


def parse(text: str) -> dict[str, dict[Labels, float]]:
    """Values by name and labels. Every name has its help and its type first, and once."""
    assert text.endswith("\n")
    found: dict[str, dict[Labels, float]] = {}
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        if comment := _COMMENT.fullmatch(line):
            what, name, _ = comment.groups()
            assert what not in said.setdefault(name, []), line
            said[name].append(what)
            found.setdefault(name, {})
            assert what != "TYPE" or comment[3] in ("gauge", "counter"), line
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, line
        name, labels, value = sample.groups()
        assert said[name] == ["HELP", "TYPE"], line
        key = _labels(labels)
        assert key not in found[name], line
        found[name][key] = float(value)
    return found


def _labels(text: str) -> Labels:
    found, at = [], 0
    while at < len(text):
        match = _LABEL.match(text, at)
        assert match, text
        found.append((match[1], re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], match[2])))
        at = match.end()
    assert len({name for name, _ in found}) == len(found), text
    return tuple(sorted(found))
