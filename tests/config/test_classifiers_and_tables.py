"""`classifiers/*.yml` and `tables/*.yml`: what is right becomes values, what is wrong is named with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.config.classifiers import ClassifierKind, Classifiers, load_classifiers
from ebbtide.config.tables import PartitionDate, Reclassify, load_tables
from ebbtide.errors import InputError

CLASSIFIERS = """\
classifiers:
  - {name: PII, kind: column, propagate: true, labels: [tag, email]}
  - {name: TableContent, kind: table, propagate: true, labels: [machine_data, static_data, user_data]}
  - {name: LegalHold, kind: table, propagate: false, labels: [is_true]}
"""
TABLES = """\
tables:
  - name: lake.app.daily_user_events
    schedule: 1d
    time_grain: +7d
    partition_date: {column: _date, covers: trailing}
    labels: [TableContent.user_data]
    columns: {uid: [PII.tag]}
    reclassify:
      country: []
      mail_hash: {PII.email: PII.tag}
    is_pii: true
    enforce: true
  - name: lake.app.plain
"""


def classifiers(folder: Path, text: str = CLASSIFIERS) -> Classifiers:
    folder.mkdir(exist_ok=True)
    (folder / "pii.yml").write_text(text)
    return load_classifiers(folder)


def test_every_key_of_a_table_becomes_a_value(tmp_path: Path) -> None:
    known = classifiers(tmp_path / "classifiers")
    (tmp_path / "app.yml").write_text(TABLES)
    tables = load_tables(tmp_path, known)
    events = tables["lake.app.daily_user_events"]
    assert (events.schedule, events.time_grain) == ("+1d", "+7d")
    assert events.partition_date == PartitionDate("_date", "trailing")
    assert events.labels == ("TableContent.user_data",)
    assert events.columns == {"uid": ("PII.tag",)}
    assert events.reclassify["country"] == Reclassify(instead=())
    assert events.reclassify["mail_hash"] == Reclassify(changes={"PII.email": "PII.tag"})
    assert (events.is_pii, events.enforce) == (True, True)
    assert events.where.endswith("app.yml:2")
    plain = tables["lake.app.plain"]
    assert (plain.schedule, plain.time_grain, plain.is_pii, plain.enforce) == (None, None, None, False)
    assert known.propagates("PII.tag")
    assert not known.propagates("LegalHold.is_true")


def test_a_project_without_the_folders_has_none(tmp_path: Path) -> None:
    assert load_classifiers(tmp_path / "classifiers").by_name == {}
    assert load_tables(tmp_path / "tables", Classifiers({})) == {}


@pytest.mark.parametrize(
    ("change", "line", "message", "hint"),
    [
        (("[TableContent.user_data]", "[TableContent.user_date]"), 6, "unknown label", "'TableContent.user_data'?"),
        (
            ("[TableContent.user_data]", "[TabelContent.user_data]"),
            6,
            "unknown classifier",
            "'TableContent.user_data'?",
        ),
        (("[TableContent.user_data]", "[user_data]"), 6, "not a label", "Classifier.label"),
        (("[TableContent.user_data]", "[PII.tag]"), 6, "is for columns, not for tables", "`columns:`"),
        (("[TableContent.user_data]", "[TimeGrain.+7d]"), 6, "no label to put on", "time_grain"),
        (("uid: [PII.tag]", "uid: [PII.tga]"), 7, "unknown label 'PII.tga'", "did you mean 'PII.tag'?"),
        (("uid: [PII.tag]", "uid: [LegalHold.is_true]"), 7, "is for tables, not for columns", "`labels:`"),
        (
            ("{PII.email: PII.tag}", "{PII.emial: PII.tag}"),
            10,
            "unknown label 'PII.emial'",
            "did you mean 'PII.email'?",
        ),
        (("{PII.email: PII.tag}", "PII.tag"), 10, "not a reclassification", "[] stops"),
        (("schedule: 1d", "schedule: daily"), 3, "not a period: 'daily'", "+1d"),
        (("schedule: 1d", "schedule: -1d"), 3, "not a period: '-1d'", "+1d"),
        (("schedule: 1d", "schedule: 0d"), 3, "not a period", "+1d"),
        (("schedule: 1d", "schedule: 1٢d"), 3, "not a period", "+1d"),
        (("schedule: 1d", 'schedule: "1d\\n"'), 3, "not a period", "+1d"),
        (("time_grain: +7d", "time_grain: +7h"), 4, "not a period", "d, w, m or y"),
        (("covers: trailing", "covers: behind"), 5, "covers", None),
        (("    enforce: true", "    enforce: 'on'"), 12, "enforce", "true or false"),
        (("    enforce: true", "    enforced: true"), 12, "unknown key", "did you mean 'enforce'?"),
        (("lake.app.plain", "plain"), 13, "not a dataset: 'plain'", "catalog.namespace.table"),
        (("lake.app.plain", "lake.app.daily_user_events"), 13, "described twice", "app.yml:2"),
    ],
)
def test_what_is_wrong_in_a_table_is_named_with_file_line_and_hint(
    tmp_path: Path, change: tuple[str, str], line: int, message: str, hint: str | None
) -> None:
    known = classifiers(tmp_path / "classifiers")
    assert change[0] in TABLES
    (tmp_path / "app.yml").write_text(TABLES.replace(*change))
    with pytest.raises(InputError) as caught:
        load_tables(tmp_path, known)
    assert f"app.yml:{line}: " in str(caught.value)
    assert message in str(caught.value)
    assert hint is None or hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("change", "line", "message", "hint"),
    [
        (("kind: column", "kind: colum"), 2, "unknown kind 'colum'", "did you mean 'column'?"),
        (("name: PII", "name: P.II"), 2, "cannot name a classifier", "letters"),
        (("name: PII", 'name: "PII\\n"'), 2, "cannot name a classifier", "letters"),
        (("name: PII", "name: TimeGrain"), 2, "TimeGrain is built in", "time_grain"),
        (("[tag, email]", "[]"), 2, "says nothing", "at least one"),
        (("[tag, email]", "[tag, tag]"), 2, "stands twice", "remove"),
        (("propagate: false", "propagate: true"), 4, "LegalHold has a fixed meaning", "propagate: false"),
        (("LegalHold", "PII"), 4, "fixed meaning", "kind: column"),
        (("propagate: false", "propagate: 0"), 4, "propagate", "true or false"),
        (("propagate: false, ", ""), 4, "is missing", None),
    ],
)
def test_what_is_wrong_in_a_classifier_is_named_with_file_line_and_hint(
    tmp_path: Path, change: tuple[str, str], line: int, message: str, hint: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        classifiers(tmp_path, CLASSIFIERS.replace(*change))
    assert f"pii.yml:{line}: " in str(caught.value)
    assert message in str(caught.value)
    assert hint is None or hint in str(caught.value.hint)


def test_a_classifier_in_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "more.yml").write_text("classifiers:\n  - {name: PII, kind: column, propagate: true, labels: [x]}\n")
    with pytest.raises(InputError, match="defined twice") as caught:
        classifiers(tmp_path)
    assert "more.yml:2" in str(caught.value.hint)


def test_labels_that_come_from_elsewhere_are_checked_the_same_way(tmp_path: Path) -> None:
    known = classifiers(tmp_path)
    known.check("PII.tag", ClassifierKind.COLUMN)
    with pytest.raises(InputError, match=r"^property ebbtide.labels of lake.app.t: unknown label 'PII.tagg'"):
        known.check("PII.tagg", ClassifierKind.COLUMN, where="property ebbtide.labels of lake.app.t")
