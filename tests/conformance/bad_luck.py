"""Bad luck for a sweep, each kind as it comes from outside: another zone, a file that stays, an answer that is lost."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ebbtide.acts.act import ActResult
from ebbtide.acts.engine import Engine


@contextmanager
def elsewhere(spark: SparkSession, hour: int) -> Iterator[None]:
    """Be where it is already tomorrow, or still yesterday."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone = "Pacific/Kiritimati" if hour >= 12 else "Etc/GMT+12"
    time.tzset()
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        del os.environ["TZ"]
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A file that cannot be removed: its folder stops everybody but root, and the immutable flag stops root."""
    subprocess.run(["chattr", "+i", str(path)], check=False, capture_output=True)
    path.parent.chmod(0o555)
    try:
        yield
    finally:
        path.parent.chmod(0o755)
        subprocess.run(["chattr", "-i", str(path)], check=False, capture_output=True)


@contextmanager
def lost_answer(dataset: str) -> Iterator[None]:
    """The commit of one dataset is done, and the sweep is told of a time-out."""
    commit: Any = Engine.commit

    def lost(self: Engine, result: ActResult) -> ActResult:
        ended: ActResult = commit(self, result)
        if result.act.dataset == dataset:
            raise TimeoutError("no answer")
        return ended

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "commit", lost)
        yield
