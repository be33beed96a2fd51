"""`ebbtide setup`: the jars of a profile, verified, and an archive of the classes in them. Needs no project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ebbtide.errors import InputError
from ebbtide.run import RunContext, quiet
from ebbtide.spark.class_archive import is_current, make_archive
from ebbtide.spark.fetch import fetch, missing_of, refuse_source
from ebbtide.spark.jars import jar_folder, locked
from ebbtide.spark.java import find_java
from ebbtide.spark.profiles import installed_version, profile_of

_Archive = Literal["made", "already there", "none"]


@dataclass(frozen=True, slots=True)
class SetupResult:
    """What a set-up brought, or would bring. The archive is none of a profile that is not the installed one."""

    profile: str
    folder: Path
    fetched: tuple[str, ...]
    already_there: int
    bytes: int
    archive: _Archive
    because: str | None = None
    """Why there is no archive: sessions work without it, and start slowly."""


def run_setup(
    *,
    source: Path | None = None,
    profile: str | None = None,
    with_archive: bool = True,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> SetupResult:
    """Bring what is missing for sessions of the installed PySpark; for another profile only its jars."""
    if source is not None and not source.is_dir():
        raise InputError(f"no such folder: {source}", hint="name the folder that holds the jars")
    context = quiet(context)
    installed = profile_of(installed_version()).name
    name = profile or installed
    find_java()  # without one nothing can be fetched or run, and it says what to do
    wanted = locked(name)
    came = missing_of(wanted) if dry_run else fetch(wanted, source=source, context=context)
    if dry_run and source is not None:
        refuse_source(came, source)
    passed_over = None if name == installed else "another PySpark is installed"
    if not with_archive:
        passed_over = "left out"
    archive: _Archive
    archive, because = ("none", passed_over) if passed_over else _archive(context, dry_run)
    return SetupResult(
        profile=name,
        folder=jar_folder(),
        fetched=tuple(jar.file_name for jar in came),
        already_there=len(wanted) - len(came),
        bytes=sum(jar.size for jar in came),
        archive=archive,
        because=because,
    )


def _archive(context: RunContext, dry_run: bool) -> tuple[_Archive, str | None]:
    if is_current():
        return "already there", None
    if dry_run:
        return "made", None
    context.step("archiving classes (sessions then start in half the time)")
    because = make_archive()
    return ("made", None) if because is None else ("none", because)
