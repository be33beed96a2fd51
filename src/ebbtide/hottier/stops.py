"""What a mirror does not replay: it cannot be followed at all, or a person has to say first that it is meant.

It is judged transaction by transaction, chunk by chunk, whatever batches the log is read in: one large DELETE is in one
transaction, and many small ones do not add up. A confirmation is of one transaction, by its end in the log, and a
reason names all that this transaction would take away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ebbtide.hottier.pgoutput import ChangeBatch

ERASED = "ebbtide.erase"
"""The message in the log of a transaction in which people left who had asked for it."""


_LOST = re.compile(r"chunk .* has [\d,]+ rows here and [\d,]+ in the lake")


def rows_lost(chunk: str, here: int, there: int) -> str:
    """What is said of a chunk that has lost rows which the lake still has. The state keeps a stop's words alone."""
    return f"chunk {chunk} has {here:,} rows here and {there:,} in the lake"


def is_of_lost_rows(because: str) -> bool:
    """Whether a stop says what `rows_lost` does: to copy again takes these rows from the lake, too."""
    return _LOST.fullmatch(because) is not None


@dataclass(frozen=True, slots=True)
class Stop:
    """The transaction that ends at `at` is not replayed. `degraded`: no person's word changes that."""

    at: int
    because: str
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """What one transaction may take away unasked. Leaves that are in no chunk any more have no name here."""

    share: float
    confirmed: int | None
    """The end of the transaction that a person confirmed."""
    names: Mapping[int, str]
    rows: Callable[[int], int]
    """How many rows of a chunk are in the lake before the batch."""


def first_stop(
    batch: ChangeBatch, limit: Limit, *, rewritten: Collection[int], publication: Collection[int]
) -> Stop | None:
    """The first transaction that is not replayed, with everything that speaks against it."""
    stops = [*_broken(batch, rewritten, publication), *_truncated(batch, limit), *_large_deletes(batch, limit)]
    if not stops:
        return None
    at = min(stop.at for stop in stops)
    there = [stop for stop in stops if stop.at == at]
    # What cannot be followed is not to be confirmed, whatever else the transaction does.
    shown = [stop for stop in there if stop.degraded] or there
    return Stop(at, "; ".join(stop.because for stop in shown), shown[0].degraded)


def _broken(batch: ChangeBatch, rewritten: Collection[int], publication: Collection[int]) -> Iterator[Stop]:
    own = {each.at for each in batch.told("ebbtide.own")}
    for each in batch.told("ebbtide.rewrite"):
        if int(each.content) in rewritten and each.at not in own:
            yield Stop(each.at, "a rewrite changed rows without a trace in the log", degraded=True)
    for each in batch.told("ebbtide.ddl"):
        tag, _, oid = each.content.partition(":")
        if tag == "ALTER PUBLICATION" and int(oid) in publication and each.at not in own:
            yield Stop(each.at, "its publication was altered", degraded=True)


def _truncated(batch: ChangeBatch, limit: Limit) -> Iterator[Stop]:
    for each in batch.truncated():
        if each.at != limit.confirmed:
            yield Stop(each.at, f"a TRUNCATE of {_named(each.oids, limit)}: its rows are still in the lake")


def _named(oids: Iterable[int], limit: Limit) -> str:
    names = [limit.names[oid] for oid in oids if oid in limit.names]
    if not names:
        return "a partition that is gone"
    return f"chunk {names[0]}" if len(names) == 1 else f"chunks {', '.join(names)}"


def _large_deletes(batch: ChangeBatch, limit: Limit) -> Iterator[Stop]:
    """Of each chunk the first transaction that takes more than the share of what the chunk had right before it; not one
    in which people who asked for it left: their requests were limited when they were planned.
    """
    erased = [each.at for each in batch.told(ERASED)]
    for loss in batch.losses():
        waits = (loss.deleted > 0) & (loss.ends != limit.confirmed) & ~np.isin(loss.ends, erased)
        if not waits.any():
            continue
        if (name := limit.names.get(loss.oid)) is None:
            # Nobody knows its range, and so what share of the lake's rows this is.
            n = int(np.argmax(waits))
            yield Stop(int(loss.ends[n]), f"a DELETE of {loss.deleted[n]:,} rows of a partition that is gone")
            continue
        grown = loss.inserted - loss.deleted
        before = limit.rows(loss.oid) + np.cumsum(grown) - grown
        waits &= (before > 0) & (loss.deleted > before * limit.share)
        if waits.any():
            n = int(np.argmax(waits))
            because = f"a DELETE of {loss.deleted[n]:,} of the {before[n]:,} rows of chunk {name}"
            yield Stop(int(loss.ends[n]), because)
