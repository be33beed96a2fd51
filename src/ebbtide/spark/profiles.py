"""The versions of PySpark that Ebbtide runs on, each with a name and its formats. Loads no PySpark."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from ebbtide.errors import SetupError

PACKAGE = "pyspark"
WANTED = "pyspark>=3.5.9,<3.6"
"""What a plain installation gets, as pyproject.toml says it: the one profile that has all four formats."""


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    formats: tuple[str, ...]


PROFILES = {
    "3.5": Profile("spark35", ("paimon", "hudi", "delta", "iceberg")),
    "4.1": Profile("spark41", ("delta", "iceberg")),
}


def profile_of(found: str) -> Profile:
    """The profile of a version of PySpark; an error where it has none."""
    profile = PROFILES.get(".".join(found.split(".")[:2]))
    if profile is None:
        raise SetupError(f"PySpark {found} has no profile", hint=f"install one of {', '.join(PROFILES)}")
    return profile


def installed_version() -> str:
    """The version of PySpark in this environment."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        raise SetupError("PySpark is not installed", hint=f"run `pip install '{WANTED}'`") from None
