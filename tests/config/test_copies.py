"""Copies that no catalog lists: what is said of them is checked where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.config.copies import Copy, load_copies
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration


def written(root: Path, text: str) -> Path:
    (root / "copies").mkdir(exist_ok=True)
    (root / "copies" / "all.yml").write_text(text)
    return root


def test_a_project_without_copies_has_none(tmp_path: Path) -> None:
    assert load_copies(tmp_path) == ()


def test_clones_name_their_table_and_others_how_long_they_keep(tmp_path: Path) -> None:
    root = written(
        tmp_path,
        "copies:\n"
        "  - {name: dev, kind: clone, of: [lake.app.*], dataset: lake.dev.users}\n"
        "  - {name: tapes, kind: backup, of: ['lake.**'], keeps: 35d}\n"
        "  - {name: agency, kind: recipient, of: [lake.app.users]}\n",
    )
    found = load_copies(root)
    assert [(each.name, each.kind, each.keeps, each.dataset) for each in found] == [
        ("dev", "clone", None, "lake.dev.users"),
        ("tapes", "backup", Duration(35, "d"), None),
        ("agency", "recipient", None, None),
    ]
    assert all(isinstance(each, Copy) and "all.yml" in each.where for each in found)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{name: a, kind: clone, of: [x.y.z]}", "clone"),
        ("{name: a, kind: backup, of: [x.y.z], dataset: x.y.w}", "do not fit"),
        ("{name: a, kind: clone, of: [x.y.z], dataset: x.y.w, keeps: 3d}", "keeps"),
        ("{name: a, kind: backup, of: [x.y.z], keeps: 0d}", "keeps nothing"),
        ("{name: a, kind: backup, of: [x.y.z], keeps: soon}", "soon"),
        ("{name: a, kind: tape, of: [x.y.z]}", "recipient"),
        ("{name: a, kind: backup, of: []}", "of"),
        ("{name: a, kind: backup, of: [x.y.z], where: attic}", "where"),
    ],
)
def test_what_does_not_fit_is_told_where_it_stands(tmp_path: Path, said: str, why: str) -> None:
    with pytest.raises(InputError) as told:
        load_copies(written(tmp_path, f"copies:\n  - {said}\n"))
    assert "all.yml:2" in str(told.value.where), told.value
    assert why in f"{told.value} {told.value.hint}"


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    one = "  - {name: a, kind: backup, of: [x.y.z], keeps: 3d}\n"
    with pytest.raises(InputError, match="stands twice"):
        load_copies(written(tmp_path, f"copies:\n{one}{one}"))
