"""An archive of the classes that a session loads (Java's class data sharing): they are mapped, not loaded one by one.

Loading and checking some twenty thousand classes is half of what a session's start and first queries cost.
`ebbtide setup` makes the archive, beside the environment whose jars it is for, and writes down there what it is for.
Java itself sees whether an archive fits its version and the jars, and goes without one that does not. An archive knows
only classes of Java's class path, so sessions of this machine have their jars there (`session.py`).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ebbtide.spark.jars import locked
from ebbtide.spark.java import find_java
from ebbtide.spark.profiles import PACKAGE, installed_version, profile_of

_QUIET = "-Xlog:cds*=off"


def archive_file() -> Path:
    return Path(sys.prefix) / "share" / "ebbtide" / "classes.jsa"


def using_archive() -> str:
    """Java's options for a session; none where there is no archive."""
    return f" -XX:SharedArchiveFile={archive_file()} {_QUIET}" if archive_file().exists() else ""


def is_current() -> bool:
    """Whether there is an archive of the Java, the PySpark and the jars that sessions start with now."""
    try:
        return archive_file().exists() and _note().read_text() == _made_for()
    except OSError:
        return False


def make_archive() -> str | None:
    """Let a process use every format once, and keep what it loaded. Where none was made, why."""
    target = archive_file()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return _make(target)
    except OSError as error:
        return f"{target.parent} cannot be written: {error.strerror or type(error).__name__}"


def _note() -> Path:
    return archive_file().with_suffix(".for")


def _made_for() -> str:
    java, found = find_java(), installed_version()
    return "".join(
        f"{part}\n"
        for part in (
            f"java {java.version} at {java.home}", f"{PACKAGE} {found}",
            *(f"{jar.sha256} {jar.path}" for jar in locked(profile_of(found).name)),
        )
    )  # fmt: skip


def _make(target: Path) -> str | None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / "classes.jsa"
        command = [sys.executable, "-m", "ebbtide.spark.class_archive", str(made)]
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if not made.exists():
            return f"Java made none: {(answer.stdout + answer.stderr)[-1500:]}"
        _note().unlink(missing_ok=True)
        made.replace(target)  # whoever has the old one mapped keeps it
        _note().write_text(_made_for())
        return None


def _train(archive: Path) -> None:
    """Write and read a table of each format, in a session whose Java writes the archive when it ends."""
    from ebbtide.model.dataset import Catalog
    from ebbtide.spark.frames import small_frame
    from ebbtide.spark.session import JAVA_OPTIONS, formats_of_session, session

    root = Path.cwd()
    catalogs = [
        Catalog("lake", "iceberg", f"{root}/lake", "jdbc", {"uri": f"jdbc:sqlite:{root}/catalog.db"}),
        Catalog("events", "delta", f"{root}/delta"),
        Catalog("cdc", "hudi", f"{root}/hudi"),
        Catalog("stream", "paimon", f"{root}/paimon"),
    ]
    java = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={archive} {_QUIET}"
    formats = formats_of_session()
    spark = session(
        [one for one in catalogs if one.format in formats], master="local[2]",
        conf={"spark.driver.extraJavaOptions": java},
    )  # fmt: skip
    places = {
        "iceberg": ("lake.db.t", ""),
        "delta": (f"delta.`{root}/delta/t`", ""),
        "paimon": ("stream.db.t", ""),
        "hudi": ("default.t", f"LOCATION '{root}/hudi/t' TBLPROPERTIES (primaryKey='id', preCombineField='n')"),
    }
    for namespace in ("lake", "stream"):
        if namespace == "lake" or "paimon" in formats:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}.db")
    for format_ in formats:
        name, more = places[format_]
        using = "" if format_ == "paimon" else f"USING {format_}"
        spark.sql(f"CREATE TABLE {name} (id BIGINT, n BIGINT, day DATE) {using} PARTITIONED BY (day) {more}")
        spark.sql(f"INSERT INTO {name} SELECT id, id % 3, DATE '2026-01-01' FROM range(10)")
        spark.sql(f"DELETE FROM {name} WHERE id = 3")
        spark.sql(f"SELECT n, count(*), max(id) FROM {name} GROUP BY n ORDER BY n").collect()
    small = small_frame(spark, [(1, "a"), (2, "b")], "id bigint, name string")
    small.write.parquet(f"{root}/plain")
    read = spark.read.parquet(f"{root}/plain")
    read.join(small, "id").groupBy("id").count().collect()
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # what its Java waits for
    gateway.proc.wait()


if __name__ == "__main__":
    _train(Path(sys.argv[1]))
