"""A first copy that does not come to an end leaves nothing behind (spec §6)."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide.app import tier_copy
from ebbtide.errors import ConflictError
from ebbtide.hottier import setup
from tests.hottier.tier import TABLE, Hot
from tests.tiers import deep_after_first

_LEFT = (
    "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()),"
    " (SELECT count(*) FROM pg_publication)"
)


@pytest.mark.parametrize("prepared", deep_after_first(False, True))
def test_an_older_transaction_is_named_and_not_waited_for_without_an_end(
    hot: Hot, monkeypatch: pytest.MonkeyPatch, prepared: bool
) -> None:
    hot.fill(1)
    writer = hot.another()
    writer.execute("INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'open', 1)")
    pid = writer.info.backend_pid
    if prepared:
        writer.execute("PREPARE TRANSACTION 'v of somebody'")
        writer.commit()
    with hot.tide as tide:
        tide.tier.init()
        with monkeypatch.context() as patch:
            patch.setattr(setup, "_WAIT", "1s")
            with pytest.raises(ConflictError) as refused:
                tide.tier.add(TABLE)
        said = refused.value.message
        assert ("the prepared transaction" if prepared else f"the session with pid {pid}") in said
        assert "somebody" not in said
        assert hot.sql.execute(_LEFT).fetchone() == (0, 0)
        if prepared:
            hot.another(autocommit=True).execute("ROLLBACK PREPARED 'v of somebody'")
        else:
            writer.rollback()
        assert tide.tier.add(TABLE).state == "added"
    assert hot.in_lake() == hot.here()


def test_a_copy_that_fails_is_no_table_that_was_added(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(*_: Any, **__: Any) -> Any:
        raise OSError("no disk")

    hot.fill(1)
    with hot.tide as tide:
        tide.tier.init()
        with monkeypatch.context() as patch:
            patch.setattr(tier_copy, "rows_of", failed)
            with pytest.raises(OSError, match="no disk"):
                tide.tier.add(TABLE)
        assert hot.sql.execute(_LEFT).fetchone() == (0, 0)
        assert hot.status().mirror == "OFF"
        tide.tier.add(TABLE)
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()
