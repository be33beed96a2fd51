"""The wheel has everything that the package reads while it runs, and asks for everything that it imports."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ebbtide.spark.profiles import WANTED
from tests.install.built import ROOT, asked_by, build_wheel, metadata_of

SOURCE = ROOT / "src" / "ebbtide"
OF_OTHERS = {"py4j", "botocore"}
"""What PySpark and boto3 bring, whose versions are their own affair."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_every_file_of_the_package_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    mine = {
        f"ebbtide/{path.relative_to(SOURCE)}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == mine
    kinds = {Path(name).suffix for name in packed}
    assert kinds >= {".py", ".sql", ".java", ".yml", ".lock", ".properties", ".typed"}


def test_the_wheel_has_its_command_and_its_licence(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        own = {
            name.partition(".dist-info/")[2]: archive.read(name) for name in archive.namelist() if "dist-info" in name
        }
    assert b"ebbtide = ebbtide.cli.main:main" in own["entry_points.txt"]
    assert "licenses/LICENSE" in own


def test_a_plain_installation_gets_the_spark_of_all_four_formats(wheel: Path) -> None:
    (pyspark,) = (each for each in map(Requirement, asked_by(wheel)) if each.name == "pyspark")
    assert pyspark == Requirement(WANTED)
    assert ("3.5.9" in pyspark.specifier, "4.1.4" in pyspark.specifier) == (True, False)
    assert metadata_of(wheel).get_all("Provides-Extra") == ["s3", "suggest"]


def test_whatever_the_package_imports_is_asked_for(wheel: Path) -> None:
    asked, owners = {canonicalize_name(Requirement(each).name) for each in asked_by(wheel)}, packages_distributions()
    lacking = {
        name
        for path in SOURCE.rglob("*.py")
        for name in _imported(path)
        if not {canonicalize_name(owner) for owner in owners.get(name, [name])} & asked
    }
    assert lacking == OF_OTHERS


def _imported(path: Path) -> set[str]:
    """The packages of others that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"ebbtide"}
