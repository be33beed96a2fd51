"""Several datasets at once, and never all of them: eight small tables in one sweep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbtide.acts import engine
from ebbtide.sweep import owner
from tests.faults import folder
from tests.faults.place import Place, Say

TABLES = tuple("abcdefgh")
AT_ONCE = engine._AT_ONCE
"""As it is in production: the child of a story goes one by one, so that its boundaries have an order."""


class Counted:
    """How many are inside at the same time. Who is alone waits a moment for a second one."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work, self.inside, self.most = work, 0, 0
        self.changed = threading.Condition()

    def __call__(self, *args: Any) -> Any:
        with self.changed:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most > 1, timeout=1)
        time.sleep(0.1)  # long enough for everybody who may come in
        try:
            return self.work(*args)
        finally:
            with self.changed:
                self.inside -= 1


@pytest.mark.parametrize("step", ["commit", "delete_files"])
def test_several_datasets_are_swept_at_once_and_at_most_four(tmp_path: Path, step: str) -> None:
    place = Place.new(tmp_path / "p", tables=TABLES)

    def prepare(say: Say) -> None:
        engine._AT_ONCE = AT_ONCE
        counted = Counted(getattr(folder.FORMAT, step))
        format_: Any = folder.FORMAT
        setattr(format_, step, counted)
        patched: Any = owner
        finish = patched.results_of

        def telling(*args: Any) -> Any:
            if counted.most:
                say(str(counted.most))
                counted.most = 0
            return finish(*args)

        patched.results_of = telling

    ended = place.run(prepare)
    assert ended.error is None, ended.error
    most, _ = ended.said
    assert 1 < int(most) <= 4
    assert not [table for table in TABLES if place.files(table) & {"d1", "d3"}]
