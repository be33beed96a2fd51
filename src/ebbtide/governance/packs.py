"""Packs: policies, classifiers, checks and reports that are copied into a project, to be edited there (spec §3)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ebbtide.config.classifiers import load_classifiers, names_in
from ebbtide.governance.statement import SHIPPED

_PACKS = Path(__file__).parent / "packs"
_COPIED = (".yml", ".sql")


@dataclass(frozen=True, slots=True)
class Installed:
    """The files that were written, and those that the project has already, in its own way."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def pack_names() -> list[str]:
    return sorted(path.name for path in _PACKS.iterdir() if path.is_dir())


def install(name: str, root: Path, *, dry_run: bool = False) -> Installed:
    """Copy a pack into a project's folder. What is there stays as it is: nothing is overwritten.

    A classifier that the project defines in any of its files is kept too, or it would be defined twice.
    """
    known = load_classifiers(root / "classifiers").by_name
    written, kept = [], []
    for source, base in [*_files(_PACKS / name), *_files(SHIPPED)]:
        target = root / source.relative_to(base)
        defined = target.parent.name == "classifiers" and names_in(source) <= set(known)
        if target.exists() or defined:
            kept.append(target)
            continue
        if not dry_run:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
        written.append(target)
    return Installed(tuple(written), tuple(kept))


def _files(base: Path) -> list[tuple[Path, Path]]:
    return [(path, base) for path in sorted(base.rglob("*")) if path.suffix in _COPIED]
