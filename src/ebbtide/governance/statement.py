"""One `.sql` file of a check or a report: its header, its one query, and `@date` in it.

A statement is read-only: what is no query is refused before Spark sees it, and `run` asks Spark's own parser again.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError
from ebbtide.governance.intervals import interval_calls

SHIPPED = Path(__file__).parent / "shipped"
"""The checks and reports that every project has; a file of the same name in the project stands in place of one."""

_HEADER = re.compile(
    r"^--\s*(?:severity\s*:\s*(?P<severity>\S*)\s*|do\s*:\s*(?P<do>.*?)\s*|(?P<text>.*?)\s*)$", re.IGNORECASE
)
_DATE = "date"
# These call any code of the Java or Python side, so nobody could say that they only read.
_FOREIGN = ("reflect", "try_reflect", "java_method")


class Severity(StrEnum):
    """What a row of a check means. `off` is not run unless it is named."""

    ERROR = "error"
    WARN = "warn"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Statement:
    """A query with its name (the file's), its description (the words of its header), and what to `do` about its rows.

    `dates` are the places of `@date` in the text, `intervals` those of calls that stand for another function there.
    """

    name: str
    path: Path
    text: str
    description: str = ""
    severity: Severity = Severity.ERROR
    dates: tuple[int, ...] = ()
    intervals: tuple[tuple[int, str], ...] = ()
    do: str = ""

    def at(self, day: date) -> str:
        """The text for one day."""
        return self._filled(f"DATE'{day.isoformat()}'")

    def where(self, line: int, column: int) -> str:
        """`file:line:column` of a place that Spark found in the text of `at`, where each date is longer by a bit."""
        begin = len("\n".join(self.text.split("\n")[: line - 1])) + (1 if line > 1 else 0)
        longer = len("DATE'2026-11-15'") - len("@date")
        for place in self.dates:
            if begin <= place < begin + column - 1:
                column = max(place - begin + 1, column - longer)
        return f"{self.path}:{line}:{column}"

    def _filled(self, value: str) -> str:
        text = self.text
        for place, name in self.intervals:  # as long as what stands there
            text = text[:place] + name + text[place + len(name) :]
        parts, last = [], 0
        for place in self.dates:
            parts += [text[last:place], value]
            last = place + len("@date")
        return "".join([*parts, text[last:]])


def read_statements(folder: Path) -> dict[str, Statement]:
    """The `.sql` files of a folder by name; none where there is no such folder. A wrong one is an `InputError`."""
    found: dict[str, Statement] = {}
    for path in sorted(folder.glob("*.sql")):
        found[path.stem] = read_statement(path)
    return found


def read_statement(path: Path) -> Statement:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), hint="save it as UTF-8 text") from None
    tokens = _tokens(text, path)
    dates = _dates(tokens, path)
    intervals = interval_calls(_query(text, path))
    description, severity, do = _header(text, path)
    return Statement(path.stem, path, text, description, severity, dates, intervals, do)


def _header(text: str, path: Path) -> tuple[str, Severity, str]:
    """The comment lines at the top: `-- severity: warn`, `-- do: …` with a command, and a description."""
    description, severity, do = "", Severity.ERROR, ""
    for number, line in enumerate(text.splitlines(), 1):
        match = _HEADER.match(line.strip())
        if match is None:
            break
        if match["severity"] is not None:
            if match["severity"].lower() not in list(Severity):
                hint = nearest(match["severity"], [severity.value for severity in Severity])
                raise InputError(f"unknown severity {match['severity']!r}", where=f"{path}:{number}", hint=hint)
            severity = Severity(match["severity"].lower())
        elif match["do"] is not None:
            do = f"{do} {match['do']}".strip()
        else:
            description = f"{description} {match['text']}".strip()
    return description, severity, do


def _tokens(text: str, path: Path) -> list[Token]:
    try:
        return sqlglot.tokenize(text, read="spark")
    except SqlglotError as error:
        line = next((int(found[1]) for found in [re.search(r"line (\d+)", str(error))] if found), 1)
        message = f"not SQL: {str(error).splitlines()[0]}"
        raise InputError(message, where=f"{path}:{line}:1", hint="close every quote and comment") from None


def _dates(tokens: list[Token], path: Path) -> tuple[int, ...]:
    """Where `@date` stands: in the text, not in strings, names in quotes or comments."""
    found = []
    for n, at in enumerate(tokens):
        if at.token_type is not TokenType.PARAMETER:
            continue
        name = tokens[n + 1].text if n + 1 < len(tokens) and tokens[n + 1].start == at.end + 1 else ""
        if name.lower() != _DATE:
            raise InputError(
                f"unknown parameter @{name}", where=f"{path}:{at.line}:{at.col}", hint="the one parameter is @date"
            )
        found.append(at.start)
    return tuple(found)


def _query(text: str, path: Path) -> exp.Expr:
    """The one query of a file; what could write is refused."""
    log = logging.getLogger("sqlglot")
    level = log.level
    log.setLevel(logging.ERROR)  # what it does not know becomes a command, which is refused below
    try:
        parsed = [one for one in sqlglot.parse(text, read="spark") if one is not None]
    except ParseError as error:
        raise _not_sql(error, path) from None
    finally:
        log.setLevel(level)
    if len(parsed) != 1:
        what = "there is no query" if not parsed else f"{len(parsed)} statements stand here"
        raise InputError(what, where=f"{path}:1:1", hint="one SELECT a file")
    (statement,) = parsed
    if not isinstance(statement, exp.Query | exp.Values):
        raise read_only(f"{type(statement).__name__.upper()} is no query", path)
    for node in statement.walk():
        if isinstance(node, exp.DML | exp.DDL | exp.Command) and not isinstance(node, exp.Query):
            raise read_only(f"{type(node).__name__.upper()} stands in it", path)
        if isinstance(node, exp.QueryTransform):
            raise read_only("TRANSFORM runs a script", path)
        if isinstance(node, exp.Anonymous) and node.name.lower() in _FOREIGN:
            raise read_only(f"{node.name} calls foreign code", path)
    return statement


def read_only(why: str, path: Path) -> InputError:
    """The error for a check or report that could do more than read."""
    return InputError(f"refused, {why}: checks and reports only read", where=str(path), hint="write one SELECT")


def _not_sql(error: ParseError, path: Path) -> InputError:
    first = error.errors[0] if error.errors else {}
    line, end = first.get("line") or 1, first.get("col") or 1
    word = first.get("highlight") or ""
    said = str(first.get("description") or error).split("<Token")[0].strip().rstrip(".")
    message = f"not SQL: {said}{f' {word!r}' if word else ''}"
    return InputError(message, where=f"{path}:{line}:{max(1, end - len(word) + 1)}", hint="it must be Spark SQL")
