"""What the inventory still says of what is gone: rows of older scans, and listings of storage (spec §4, own stores).

A partition's id and a file's path may hold a value of a person. Segments are written once, so that rows which no longer
count stay in them beside others that do; after an erasure they go, as does the last listing, which is made anew when
somebody asks for orphans.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from ebbtide.inventory import current as currents
from ebbtide.inventory.compact import joined
from ebbtide.inventory.listing import forget_listings
from ebbtide.inventory.segments import remove_unused


def forget_what_is_gone(inventory: Path) -> None:
    """Leave only what the last scan counts. Who is still reading what was before is told to run again."""
    with currents.only_one(inventory):
        before = currents.load(inventory)
        if before is None or before.outdated:
            return
        after = joined(inventory, before, uuid4().hex[:8])
        currents.save(inventory, after)
        remove_unused(inventory, after.segments)
        forget_listings(inventory)
