"""Help in the order in which people work, with whole sentences."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

SECTIONS = {
    "Begin": ("setup", "doctor", "demo", "init", "scan"),
    "Look": ("tables", "history", "lineage", "labels", "classify", "orphans", "check", "report", "contract"),
    "Retention": ("plan", "show", "explain", "mark", "marks", "sweep", "run", "unmark", "unmarks", "hold"),
    "People": ("departed", "erase", "shred"),
    "Hot tier": ("tier", "rollup"),
    "Proofs and operation": ("ledger", "runs", "state", "serve"),
}
"""What the command line has, and what it will have; what stands nowhere here comes last."""


class Whole(TyperGroup):
    """A group of verbs, whose first sentences are never cut."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        names = self.list_commands(ctx)
        width = max(map(len, names), default=0)
        for title, members in self.sections(names):
            if rows := [(name.ljust(width), self._sentence(ctx, name)) for name in members if name in names]:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def sections(self, names: list[str]) -> list[tuple[str, tuple[str, ...]]]:
        """The verbs under their headings."""
        return [("Commands", tuple(names))]

    def _sentence(self, ctx: Any, name: str) -> str:
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(10_000)


class InOrder(Whole):
    """All verbs, in sections."""

    def list_commands(self, ctx: Any) -> list[str]:
        known = super().list_commands(ctx)
        ordered = [name for names in SECTIONS.values() for name in names if name in known]
        return [*ordered, *(name for name in known if name not in ordered)]

    def sections(self, names: list[str]) -> list[tuple[str, tuple[str, ...]]]:
        placed = {name for members in SECTIONS.values() for name in members}
        return [*SECTIONS.items(), ("More", tuple(name for name in names if name not in placed))]
