"""`--select`: which objects of a plan are looked at, or worked on.

    lake.raw.*            tables by pattern: `*` stops at dots, `**` does not
    policy:NAME           by the policy that owns them, `target:versions` by target, `decision:mark` by decision

What is said of one thing several times is either; different things are both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ebbtide.config.policies import EVERY_TARGET
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError
from ebbtide.plan.plan import DECISIONS
from ebbtide.plan.select import pattern, some_table, table_pattern

_COLUMNS = {"table": "dataset", "policy": "policy", "target": "target", "decision": "decision"}
_KNOWN = {"target": EVERY_TARGET, "decision": DECISIONS}


@dataclass(frozen=True, slots=True)
class Choice:
    """What was asked for, by kind; without any, everything."""

    asked: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(
        cls, texts: Sequence[str], *, policies: Iterable[str] = (), tables: Collection[str] | None = None
    ) -> Choice:
        """From what people write. Names of targets, decisions and policies must be some that there are; a pattern must
        match one of the `tables`, where those are known.
        """
        known = {**_KNOWN, "policy": tuple(policies)}
        asked: dict[str, tuple[str, ...]] = {}
        for text in texts:
            kind, colon, name = text.partition(":")
            if not colon:
                kind, name = "table", text
            if kind not in _COLUMNS or not name:
                hint = "write a pattern of tables, policy:NAME, target:NAME or decision:NAME"
                raise InputError(f"cannot select by {text!r}", hint=hint)
            if kind in known and name not in known[kind]:
                raise InputError(f"no {kind} {name!r}", hint=nearest(name, list(known[kind])))
            if kind == "table" and tables is not None:
                some_table(name, tables)
            asked[kind] = (*asked.get(kind, ()), name)
        return cls(asked)

    def __bool__(self) -> bool:
        return bool(self.asked)

    def condition(self) -> tuple[str, list[Any]]:
        """The same in the engine's SQL, on a plan's objects, and the values that it binds."""
        parts: list[str] = ["true"]
        bound: list[Any] = []
        for kind, names in self.asked.items():
            if kind == "table":
                parts.append("regexp_matches(dataset, ?)")
                bound.append(pattern(names))
            else:
                parts.append(f"coalesce(list_contains(?::VARCHAR[], {_COLUMNS[kind]}), false)")
                bound.append(list(names))
        return " AND ".join(parts), bound

    def takes(self) -> Callable[[Mapping[str, Any]], bool]:
        """The same asked of an object as a plan file has it."""
        tables = table_pattern(self.asked["table"]) if "table" in self.asked else None

        def take(row: Mapping[str, Any]) -> bool:
            if tables is not None and not tables.match(row["dataset"]):
                return False
            return all(row[_COLUMNS[kind]] in names for kind, names in self.asked.items() if kind != "table")

        return take

    def only_tables(self, verb: str) -> Choice:
        """The same, or an error where it asks for parts of tables."""
        if other := [kind for kind in self.asked if kind != "table"]:
            hint = "select tables; `plan` and `mark` take the rest"
            raise InputError(
                f"a {verb} takes tables whole: what goes of one goes together, not by {other[0]}", hint=hint
            )
        return self


EVERYTHING = Choice({})
