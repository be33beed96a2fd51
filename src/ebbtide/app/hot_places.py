"""Hot tables as places where a person may lie: which there are, and which of them nobody can ask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ebbtide.config import Project
from ebbtide.config.hottier import HotTable, colds_of_hot_tables, load_hot_tables
from ebbtide.errors import EbbtideError
from ebbtide.state.hottier import HotReader

if TYPE_CHECKING:
    from ebbtide.config.subjects import Identities
    from ebbtide.erasure.hot import HotPlace, HotSearch
    from ebbtide.erasure.places import NotReachable, Places
    from ebbtide.inventory.information_schema import Inventory
    from ebbtide.ledger.commitment import Identifier
    from ebbtide.state.database import Database
    from ebbtide.verify.needles import Needle
    from ebbtide.verify.report import SearchReport

FORGOTTEN = "a hot table that was added, and that no file of hottier/ names any more: its rows are not looked at"


def hot_tables_of(project: Project, database: Database) -> tuple[list[HotTable], list[NotReachable]]:
    """The declared tables, and those that cannot be asked: where no server is known, and where rows stay though no file
    names their table any more.
    """
    from ebbtide.erasure.places import NotReachable

    declared = colds_of_hot_tables(project.root)
    missed: list[NotReachable] = []
    tables: list[HotTable] = []
    try:
        tables = list(load_hot_tables(project.root).values())
    except EbbtideError as error:
        missed += [NotReachable(name, error.message, failed=True) for name in declared]
    with database.reader() as state:
        left = [record.id for record in HotReader(state.connection).tables() if record.id not in declared]
    return tables, [*missed, *(NotReachable(name, FORGOTTEN, elsewhere=True) for name in left)]


def look_in_hot(
    project: Project,
    database: Database,
    people: Sequence[Sequence[Identifier]],
    names: Collection[str],
    identities: Identities,
    places: Places,
    inventory: Inventory,
    *,
    with_rows: bool = False,
) -> tuple[list[HotPlace], HotSearch]:
    """Whose rows are in hot tables, and what of them could not be asked."""
    from dataclasses import replace

    from ebbtide.erasure.hot import find_hot, hot_places

    tables, unknown = hot_tables_of(project, database)
    found, untold = hot_places(tables, names, identities, places, inventory)
    search = find_hot(found, people, identities, with_rows=with_rows)
    return found, replace(search, missed=tuple(sorted({*search.missed, *untold, *unknown})))


def search_hot(project: Project, database: Database, needles: Sequence[Needle], report: SearchReport) -> SearchReport:
    """The report with what hot tables hold, each read to its last row. What of them was not read is told."""
    from dataclasses import replace

    from ebbtide.hottier.server import connect
    from ebbtide.verify.matcher import Matcher
    from ebbtide.verify.report import FoundValue, Untold
    from ebbtide.verify.server import NOT_READ, search_table

    tables, unknown = hot_tables_of(project, database)
    untold = [Untold(each.place, each.because, is_place=True) for each in unknown]
    found: list[FoundValue] = []
    matcher = Matcher(needles)
    for table in tables:
        untold.append(Untold(table.id, NOT_READ, is_place=True))
        try:
            with connect(table.server) as connection:
                findings = search_table(connection, table.path, matcher)
        except EbbtideError as error:
            untold.append(Untold(table.id, error.message, is_place=True))
            continue
        found += [
            FoundValue(needles[n].person, table.id, "hot table", how, where, (), table.id)
            for n, how, where in sorted(findings.found)
        ]
        untold += [
            Untold(table.id, because, None if n is None else frozenset({needles[n].person}))
            for n, because in sorted(findings.untold, key=lambda each: (each[0] is not None, each))
        ]
    return replace(report, found=(*report.found, *found), untold=(*report.untold, *untold))
