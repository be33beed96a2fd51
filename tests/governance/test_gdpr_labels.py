"""What the gdpr pack brings beside queries: the usual PII labels, and policies without warnings of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ebbtide.config.classifiers import load_classifiers
from ebbtide.config.policies import load_policies
from ebbtide.governance.packs import install
from ebbtide.governance.patterns import load_tests
from ebbtide.governance.suggest import label_for
from tests.plan.worlds import Table, plan, world


def test_every_kind_that_can_be_told_by_its_values_has_its_label(tmp_path: Path) -> None:
    install("gdpr", tmp_path)
    classifiers = load_classifiers(tmp_path / "classifiers")
    assert {kind: label_for(kind, classifiers) for kind in load_tests()} == {
        kind: f"PII.{kind}" for kind in ("aadhaar", "pan", "iban", "card", "email", "phone")
    }
    assert label_for("something new", classifiers) == "PII.tag"


USER, STATIC, LEGAL = "TableContent.user_data", "TableContent.static_data", "LegalHold.is_true"


@pytest.mark.parametrize(
    "tables",
    [[], [[]], [[USER]], [[STATIC]], [[USER], [STATIC], [LEGAL], ["PII.email"]]],
    ids=["none", "without labels", "user data", "static data", "several"],
)
def test_the_pack_has_no_warning_of_its_own(tmp_path: Path, tables: Sequence[Sequence[str]]) -> None:
    install("gdpr", tmp_path)
    made = [
        Table(f"lake.app.t{n}", extra={"labels": list(labels)}).commit("T1", 100) for n, labels in enumerate(tables)
    ]
    assert plan(load_policies(tmp_path, unsafe=True), world(*made)).warnings == ()
