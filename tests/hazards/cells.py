"""What a cell of the table of hazards can be: tests, or a reason with the command that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.formats.registry import load_format
from ebbtide.model.capabilities import Capability

FORMATS = ("iceberg", "delta", "hudi", "paimon")


@dataclass(frozen=True, slots=True)
class Tested:
    """Tests by their ids, without parameters. All of them together show that it cannot go wrong on this format.

    Each has the cell's format among its parameters, lies in the format's own file, or is named in `places.STANDS_FOR`.
    """

    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cannot:
    """Why it cannot happen, and a command, run from the root of the work tree, whose output has the line `shows`."""

    reason: str
    command: str
    shows: str


Cell = Tested | Cannot


@dataclass(frozen=True, slots=True)
class Hazard:
    number: int
    what: str
    cells: dict[str, Cell]


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    hazards: tuple[Hazard, ...]


def tested(*tests: str) -> Tested:
    return Tested(tests)


def not_declared(format_: str, capability: Capability) -> Cannot:
    """What the adapter declares that its format cannot do; the conformance suite leaves nothing else out."""
    command = (
        '.venv/bin/python -c "from ebbtide.formats.registry import load_format; '
        f"print(load_format('{format_}').capabilities['{capability}'].reason)\""
    )
    reason = load_format(format_).capabilities[capability].reason
    return Cannot(reason, command, reason)


def each(iceberg: Cell, delta: Cell, hudi: Cell, paimon: Cell) -> dict[str, Cell]:
    return dict(zip(FORMATS, (iceberg, delta, hudi, paimon), strict=True))


def everywhere(*tests: str) -> dict[str, Cell]:
    """The same tests on every format: they have a parameter per format, or show what does not depend on one."""
    return dict.fromkeys(FORMATS, tested(*tests))
