"""`scan`: catalogs become the information schema (spec §3), and only what changed is read again."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from ebbtide.config.label_properties import label_properties
from ebbtide.errors import UnreadableError
from ebbtide.formats.base import Depth
from ebbtide.formats.registry import load_format
from ebbtide.inventory import current as currents
from ebbtide.inventory.compact import compact
from ebbtide.inventory.current import CatalogError, Current, DatasetEntry, Former
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.lost import CatalogAnswer, Lost
from ebbtide.inventory.read import ReadOrder, ReadOutcome, Sessions, Work, read_all
from ebbtide.inventory.renames import with_identities
from ebbtide.inventory.segments import remove_unused
from ebbtide.inventory.unnamed import of_unnamed_catalogs
from ebbtide.model.dataset import Catalog, NotFound, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.run import RunContext, quiet

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What a scan found. `read` names the datasets that were read, not those that could not be; `gone` those that no
    catalog lists now, and `in_place` those whose metadata was changed in place, where a scan looked for that.
    """

    current: Current
    read: tuple[str, ...]
    gone: tuple[str, ...]
    in_place: tuple[str, ...] = ()


def scan(
    catalogs: Sequence[Catalog],
    inventory: Path,
    sessions: Sessions,
    *,
    now: datetime,
    depth: Depth = Depth.FILES,
    full: bool = False,
    given_up: Collection[str] = (),
    verify: bool = False,
    context: RunContext | None = None,
) -> ScanReport:
    """Bring the inventory up to date. A session is started only where something must be read that needs one.

    A dataset whose catalog gives the same token as last time is not opened at all, unless `full`; `verify` reads all of
    them, too, and compares them with what was read before. `given_up` are catalogs that are no longer there, and whose
    datasets nobody waits for.
    """
    context = quiet(context)
    with currents.only_one(inventory):
        context.step("asking the catalogs")
        before = currents.load(inventory) or Current()
        order = ReadOrder(inventory, f"{now:%Y%m%dT%H%M%S}-{uuid4().hex[:8]}", depth, now)
        with ThreadPoolExecutor(max(1, len(catalogs))) as pool:
            answers = list(pool.map(_ask, catalogs))
        lost = Lost(Inventory(inventory, before))
        answers = [lost.looked_for(answer) for answer in answers]
        work = [
            (answer.catalog, handle)
            for answer in answers
            for handle in answer.found
            if full or verify or _is_stale(before.entries.get(str(handle.id)), handle, depth)
        ]
        known = sum(len(answer.found) for answer in answers)
        context.step("reading" if len(work) == known else "reading what changed", len(work), unit="datasets")
        outcomes = {o.table_id: o for o in read_all(work, order, sessions, context)}
        context.cancellation.check()
        entries = list(_entries(answers, before, outcomes, work, order))
        unnamed = of_unnamed_catalogs(before, catalogs, entries, given_up)
        locked = currents.without_disputed(currents.lock_shared_locations((*entries, *unnamed.entries)))
        errors = (*_silent(answers), *unnamed.errors, *_sharing(catalogs, locked))
        named = with_identities(Inventory(inventory, before), locked)
        former = _former(answers, named, locked, unnamed.formats)
        after = Current(order.scan_id, now, locked, errors, former)
        after = compact(inventory, after)
        currents.save(inventory, after)
        in_place: tuple[str, ...] = ()
        if verify:
            from ebbtide.inventory.in_place import changed_in_place

            in_place = changed_in_place(Inventory(inventory, before), Inventory(inventory, after))
        # Whoever loaded the state before this scan may still be reading its segments.
        remove_unused(inventory, after.segments | before.segments)
    for table_id, outcome in sorted(outcomes.items()):
        _logger.debug("%s: %s", table_id, "read" if outcome.error is None else "could not be read")
    _logger.info("scan %s: %d of %d datasets read", after.scan_id, len(outcomes), len(after.entries))
    read = sorted(table_id for table_id, outcome in outcomes.items() if outcome.error is None)
    return ScanReport(after, tuple(read), tuple(sorted(before.entries.keys() - after.entries.keys())), in_place)


def _silent(answers: Iterable[CatalogAnswer]) -> Iterator[CatalogError]:
    for answer in answers:
        if answer.error is not None:
            yield CatalogError(answer.catalog.name, answer.error.message, answer.error.hint)


def _sharing(catalogs: Iterable[Catalog], entries: Mapping[str, DatasetEntry]) -> Iterator[CatalogError]:
    """Catalogs that are declared not to share files, and whose tables do: the declaration protects nobody."""
    declared = {catalog.name for catalog in catalogs if not catalog.shares_files}
    found: dict[str, DatasetEntry] = {}
    for entry in sorted(entries.values(), key=lambda entry: entry.table_id):
        if entry.catalog in declared and entry.borrowed:
            found.setdefault(entry.catalog, entry)
    for name, entry in found.items():
        reason = (
            f"it is declared `shares_files: false`, and {entry.table_id} references {entry.borrowed} files elsewhere"
        )
        yield CatalogError(name, reason, "remove the declaration: its tables may need files of others", shares=True)


def _ask(catalog: Catalog) -> CatalogAnswer:
    try:
        answers = list(load_format(catalog.format).discover(catalog))
    except Exception as error:
        return CatalogAnswer(catalog, error=UnreadableError.of(catalog.name, error))
    found = tuple(answer for answer in answers if isinstance(answer, TableHandle))
    return CatalogAnswer(catalog, found, tuple(answer for answer in answers if isinstance(answer, NotFound)))


def _is_stale(entry: DatasetEntry | None, found: TableHandle, depth: Depth) -> bool:
    return (
        entry is None
        or entry.error is not None
        or entry.token != found.token
        or (depth is Depth.FILES and entry.depth != Depth.FILES)
    )


def _entries(
    answers: list[CatalogAnswer], before: Current, outcomes: dict[str, ReadOutcome], work: list[Work], order: ReadOrder
) -> Iterator[DatasetEntry]:
    """The new entries: read now, unchanged, broken, or of a catalog that did not answer."""
    read_now = {str(handle.id) for _, handle in work}
    for answer in answers:
        name = answer.catalog.name
        for handle in answer.found:
            table_id = str(handle.id)
            if table_id in read_now:
                yield _entry(name, handle, outcomes[table_id], before.entries.get(table_id), order)
            else:
                yield before.entries[table_id]
        for missing in answer.not_found:
            known = before.entries.get(missing.name)
            outcome = ReadOutcome(missing.name, known.location if known else "", "", missing.reason, missing.hint)
            yield _failed(name, "", outcome, known, order)
        yield from _below(answer, before)
        if answer.error is not None:  # its datasets may all be there: keep what was known, and say that it is old
            for entry in before.entries.values():
                if entry.catalog == name:
                    reason = f"catalog {name} did not answer: {answer.error.message}"
                    yield replace(entry, error=reason, hint=answer.error.hint)


def _below(answer: CatalogAnswer, before: Current) -> Iterator[DatasetEntry]:
    """Known datasets below a place that could not be opened, such as a namespace: they may all still be there."""
    missing = {each.name: each for each in answer.not_found}
    told = {str(found.id) for found in answer.found} | missing.keys()
    for entry in before.entries.values() if missing else ():
        if entry.catalog != answer.catalog.name or entry.table_id in told:
            continue
        parts = entry.table_id.split(".")
        above = next((name for n in range(1, len(parts)) if (name := ".".join(parts[:n])) in missing), None)
        if above is not None:
            yield replace(entry, error=f"{above}: {missing[above].reason}", hint=missing[above].hint)


def _former(
    answers: list[CatalogAnswer], before: Inventory, entries: Mapping[str, DatasetEntry], taken_over: Mapping[str, str]
) -> tuple[Former, ...]:
    """Datasets that catalogs no longer list, list elsewhere, or whose name is another table's now, and those that
    another catalog took over, with their formats.

    A catalog that did not answer has lost none, nor one that was given up: it may be somebody else's now.
    """
    answered = {answer.catalog.name: answer.catalog.format for answer in answers if answer.error is None}
    formats = {
        entry.table_id: format_
        for entry in before.current.entries.values()
        if (format_ := taken_over.get(entry.table_id) or answered.get(entry.catalog))
    }
    here = {(entry.table_id, entry.location) for entry in entries.values()}
    gone = [
        entry
        for entry in before.current.entries.values()
        if entry.table_id in formats
        and entry.location
        and ((entry.table_id, entry.location) not in here or _is_another(entries[entry.table_id], entry))
    ]
    said = {
        row["table_id"]: tuple(sorted(label_properties(row["properties"] or {}).items()))
        for row in (before.rows("tables") if gone else ())
    }
    formers = {(each.table_id, each.location, each.identity): each for each in before.current.former}
    for entry in gone:
        key = (entry.table_id, entry.location, entry.identity)
        formers.pop(key, None)  # the last one of a name and place is the one that left what lies there
        labels = said.get(entry.table_id, ())
        formers[key] = Former(entry.table_id, formats[entry.table_id], entry.location, labels, entry.identity)
    last = {(each.table_id, each.location): each for each in formers.values()}
    others = _Others.of(entries)
    kept = [
        each
        for (table_id, location, _), each in formers.items()
        if ((table_id, location) not in here and last[table_id, location] is each) or others.may_be(each)
    ]
    return tuple(sorted(kept, key=lambda each: (each.location, each.table_id)))


def _is_another(now: DatasetEntry, before: DatasetEntry) -> bool:
    """Whether the name stands for another table than before, as far as both are known."""
    return bool(now.identity and before.identity) and now.identity != before.identity


@dataclass(frozen=True, slots=True)
class _Others:
    """Where a table may be whose name another one took: what is held of it is looked for there.

    `names` are the datasets of each identity, `unread` the catalogs with one of which it is not known.
    """

    names: Mapping[str, set[str]]
    unread: frozenset[str]

    @classmethod
    def of(cls, entries: Mapping[str, DatasetEntry]) -> _Others:
        names: dict[str, set[str]] = {}
        for entry in entries.values():
            names.setdefault(entry.identity, set()).add(entry.table_id)
        unread = {entry.catalog for entry in entries.values() if entry.error is not None and not entry.identity}
        return cls(names, frozenset(unread))

    def may_be(self, former: Former) -> bool:
        if not former.identity:
            return False
        called_otherwise = self.names.get(former.identity, set()) - {former.table_id}
        return bool(called_otherwise) or DatasetId.parse(former.table_id).catalog in self.unread


def _entry(
    catalog: str, found: TableHandle, outcome: ReadOutcome, known: DatasetEntry | None, order: ReadOrder
) -> DatasetEntry:
    if outcome.error is not None:
        return _failed(catalog, found.token, outcome, known, order)
    return DatasetEntry(
        outcome.table_id, catalog, outcome.location, found.token, order.depth, order.scan_id, outcome.segment,
        order.now, handle=found.handle, doubt=outcome.doubt, borrowed=outcome.borrowed, identity=outcome.identity,
        was_at=outcome.was_at,
    )  # fmt: skip


def _failed(
    catalog: str, token: str, outcome: ReadOutcome, known: DatasetEntry | None, order: ReadOrder
) -> DatasetEntry:
    if known is not None:
        return replace(known, error=outcome.error, hint=outcome.hint)
    return DatasetEntry(
        outcome.table_id, catalog, outcome.location, token, order.depth, order.scan_id, "", order.now,
        outcome.error, outcome.hint,
    )  # fmt: skip
