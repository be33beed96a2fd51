"""Everybody who is planted is erased at once: nobody is left in a byte, and everybody else reads as before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql.functions import col, lit

from ebbtide.state.erasure import EXCEPTIONS, OPEN
from tests.erasure.cells import Variant
from tests.erasure.conftest import Know
from tests.erasure.erased import Erased
from tests.erasure.people import TYPES
from tests.erasure.test_plants import by_variant
from tests.erasure.variants import QUICK, VARIANTS

Erase = Callable[[Variant], Erased]

_KEEPS_VERSIONS = {"iceberg"}
"""Formats in which time travel survives: every version reads as before, but for who was erased."""
_BY_A_PERSON = {
    "orphan": "a file that no version names: the orphans' policy removes it, and a search says it is there",
    "metadata property": "a property that somebody wrote: nobody else knows what it is for",
}
"""What no erasure takes, in any format: told as found, never as removed."""
_IN_NAMES = re.compile(r"^\.hoodie/(timeline|metadata/files)/")
_NAMED = "a partition is named after them: the timeline keeps that, and folders stay"
_STAYS = {
    "hudi": {
        **dict.fromkeys(("log", "archive", "partition path", "partition summary"), _NAMED),
        "tag": "a savepoint keeps its files",
    }
}
"""What a format has no way to take: told as retained, and no row is among it but in what a tag keeps."""


def _stays(variant: Variant, place: str, there: frozenset[tuple[str, str]]) -> bool:
    why = _STAYS.get(variant.format, {}).get(place)
    names = all(layer == "name" or _IN_NAMES.search(path) for path, layer in there)
    return why is not None and (names or why is not _NAMED)


@pytest.mark.parametrize("variant", by_variant())
def test_nobody_is_left_in_a_byte_but_where_it_is_said(variant: Variant, erased: Erase) -> None:
    table = erased(variant)
    left = {place: there for place, there in table.left.items() if there and place not in _BY_A_PERSON}
    left = {place: there for place, there in left.items() if not _stays(variant, place, there)}
    assert left == {}, {place: (sorted(there)[:5], table.states.get(place)) for place, there in left.items()}
    told_of = {place: (table.grades[place], table.states.get(place)) for place in table.left if table.left[place]}
    for place, (grade, state) in told_of.items():
        assert state is not None, place
        assert state[0] in OPEN | EXCEPTIONS, (place, state)
        # What a dataset keeps for a reason is told apart (B); the name of a partition stands in our inventory, too (F).
        assert grade == "F" or (grade == "B" and state[0] in EXCEPTIONS), (place, grade, state)


@pytest.mark.parametrize("variant", by_variant())
def test_everybody_else_reads_as_before(variant: Variant, erased: Erase) -> None:
    table = erased(variant)
    assert any(table.before[name] != table.others[name] for name in table.before), "nobody was there"
    for name, rows in table.after.items():
        if rows is None and variant.format not in _KEEPS_VERSIONS:
            assert name.startswith("version"), name
        else:
            assert rows == table.others[name], name


@pytest.mark.parametrize("variant", by_variant())
def test_files_without_a_person_are_the_very_same(variant: Variant, erased: Erase) -> None:
    table = erased(variant)
    there = {path: table.files.get(path) for path in table.untouched}
    if variant.format not in _KEEPS_VERSIONS:
        there = {path: stat for path, stat in there.items() if stat is not None}
    assert there == {path: table.untouched[path] for path in there}


@pytest.mark.parametrize("variant", by_variant())
def test_filters_find_what_a_full_scan_finds(variant: Variant, erased: Erase, known: Know) -> None:
    """A wrong bound or partition summary loses rows without a word: of main, of other branches and of tags."""
    table, refs = erased(variant), known(variant).made.refs
    for ref, read in refs.items():
        if ref.startswith("version") or table.after[ref] is None:
            continue
        frame = read()
        rows = frame.collect()
        for name in (f"{kind}_{type_}" for kind in "cp" for type_ in TYPES):
            there = Counter(str(row[name]) for row in rows if row[name] is not None)
            some = {str(row[name]): row[name] for row in rows if row[name] is not None}
            for text in sorted(some)[:: max(1, len(some) // 4)]:
                assert frame.where(col(name) == lit(some[text])).count() == there[text], (ref, name)
            assert frame.where(col(name).isin([*some.values()])).count() == sum(there.values()), (ref, name)


@pytest.mark.parametrize("variant", [each for each in VARIANTS if each.id in QUICK], ids=lambda each: each.id)
def test_another_engine_reads_and_writes_on(variant: Variant, erased: Erase, known: Know) -> None:
    """Of the other variants neither pyiceberg nor delta-rs writes all."""
    table, made = erased(variant), known(variant).made
    main = table.after["main"]
    assert main is not None
    if variant.format == "delta":
        rows = DeltaTable(str(made.location)).to_pyarrow_table()
        write_deltalake(str(made.location), rows.slice(0, 1), mode="append")
        again = DeltaTable(str(made.location)).to_pyarrow_table()
    else:
        uri = str(made.catalog.options["uri"]).replace("jdbc:sqlite:", "sqlite:///")
        catalog = SqlCatalog(made.catalog.name, uri=uri)
        rows = catalog.load_table(f"db.planted_{variant.name}").scan().to_arrow()
        catalog.load_table(f"db.planted_{variant.name}").append(rows.slice(0, 1))
        again = catalog.load_table(f"db.planted_{variant.name}").scan().to_arrow()
    assert (rows.num_rows, again.num_rows) == (len(main), len(main) + 1)
