"""The cold table's small files, joined on a schedule by Iceberg's own rewrite, under the lease of the run.

1. Only behind a mirror that streams, and after everything that proves and drops: nothing waits for it.
2. The session is started where a partition has something to join, and at no other time: mirrors need no Java.
"""

from __future__ import annotations

from datetime import datetime

from ebbtide.app.scan import start_session
from ebbtide.app.tier_opened import HotRun
from ebbtide.app.tier_table import TierOutcome
from ebbtide.errors import SetupError
from ebbtide.formats.iceberg.small_files import compacted_at, has_small_files, join_small_files
from ebbtide.model.durations import is_older
from ebbtide.model.ids import DatasetId
from ebbtide.state.hottier import MirrorState


def compact_if_due(hot: HotRun, told: TierOutcome, now: datetime) -> None:
    """Nothing where it is young, or where nothing is to be joined."""
    table, record, mirror = told.table, hot.book(told.table).record(), hot.mirror(told.table)
    if table.cold is None or table.compact is None or mirror is None or record.state is not MirrorState.STREAMING:
        return
    mirror.cold.refresh()
    last = compacted_at(mirror.cold) or record.added_at
    if not is_older(last, table.compact, now) or not has_small_files(mirror.cold):
        return
    hot.context.step(f"joining small files of {table.cold}")
    try:
        spark = start_session(hot.project)
    except SetupError as error:
        told.notices.append(f"small files of {table.cold} were not joined: {error.message}")
        return
    hot.lease.check()
    went, came = join_small_files(mirror.cold, DatasetId.parse(table.cold), spark, now=now)
    told.notices.append(f"{went} small files of {table.cold} were joined into {came}")
