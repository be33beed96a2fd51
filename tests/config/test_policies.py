from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.config.policies import AUTO, TARGETS, load_policies
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration

GOOD = """\
policies:
  - name: user-data
    select: {tables: ["**"], any_labels: [TableContent.user_data], exclude: {any_labels: [LegalHold.is_true]}}
    partitions: {older_than: 90d, age_of: oldest}
    versions: {older_than: 36h, keep_min: 2, keep_max: 9, limit: 50}
    grace: 12h
  - name: everything
    select: {tables: ["lake.raw.*"], formats: [iceberg], branches: [main], properties: {owner: risk, x: true}}
    transactions: {older_than: 1m, keep_views: 2, allow_latest_view: true, staged: true}
    branches: {unused_for: 6m}
    rows: {column: at, older_than: 2y}
floors:
  - {any_labels: [LegalHold.is_true], keep_at_least: 7y, basis: tax code}
promises:
  - {any_labels: [TableContent.user_data], gone_within: 110d}
"""


CLASSIFIERS = """\
classifiers:
  - {name: TableContent, kind: table, propagate: true, labels: [user_data]}
  - {name: LegalHold, kind: table, propagate: false, labels: [is_true]}
"""


def write(root: Path, text: str, name: str = "a.yml", classifiers: str | None = CLASSIFIERS) -> Path:
    (root / "policies").mkdir(exist_ok=True)
    if classifiers is not None:
        (root / "classifiers").mkdir(exist_ok=True)
        (root / "classifiers" / "c.yml").write_text(classifiers)
    (root / "policies" / name).write_text(text)
    return root


def test_every_target_and_key_is_read(tmp_path: Path) -> None:
    found = load_policies(write(tmp_path, GOOD))
    user, rest = found.policies
    assert user.partitions is not None
    assert user.versions is not None
    assert rest.transactions is not None
    assert rest.branches is not None
    assert rest.rows is not None
    assert user.targets == ("versions", "partitions")
    assert (user.partitions.older_than, user.partitions.age_of) == (Duration(90, "d"), "oldest")
    assert (user.versions.older_than, user.versions.keep_min, user.versions.keep_max) == (Duration(36, "h"), 2, 9)
    assert (user.grace, rest.grace) == (Duration(12, "h"), Duration(7, "d"))
    assert rest.select.properties == {"owner": "risk", "x": "true"}
    assert rest.transactions.keep_views == 2
    assert rest.transactions.allow_latest_view
    assert found.floors[0].keep_at_least == Duration(7, "y")
    assert found.promises[0].gone_within == Duration(110, "d")


def test_policies_are_ordered_by_file_name_then_position(tmp_path: Path) -> None:
    one = "policies:\n  - {{name: {0}1, select: {{tables: [a.b.c]}}, tables: {{older_than: 1d}}}}\n" \
          "  - {{name: {0}2, select: {{tables: [a.b.c]}}, orphans: {{}}}}\n"  # fmt: skip
    write(tmp_path, one.format("b"), "20-b.yml")
    write(tmp_path, one.format("a"), "10-a.yml")
    write(tmp_path, one.format("c"), "30-c.yaml")
    found = load_policies(tmp_path)
    assert [policy.name for policy in found.policies] == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert found.policies[1].orphans is not None
    assert found.policies[1].orphans.older_than == Duration(3, "d")


def test_no_policies_is_an_empty_set(tmp_path: Path) -> None:
    assert load_policies(tmp_path).policies == ()


def _laughs(levels: int) -> str:
    """A list whose few aliases stand for ten to the power of so many values."""
    lists = ["&a0 [x]", *(f"&a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels))]
    return f"[{', '.join(lists)}]"


@pytest.mark.parametrize(
    ("change", "line", "message", "hint"),
    [
        (("older_than: 90d", "older_than: -3d"), 4, "lies in the future", "write 3d"),
        (("older_than: 90d", "older_than: 90"), 4, "not a duration: 90", "as in 90d"),
        (("older_than: 90d", "older_than: 1x"), 4, "not a duration: '1x'", "d, w, m or y"),
        (("older_than: 90d", "older_than: 5h"), 4, "hours make no sense", None),
        (("older_than: 90d", "older_than: 2030-01-01"), 4, "not a duration: 2030-01-01", None),
        (("older_than: 90d", "older_than: 2026-02-30"), 4, "cannot be read: '2026-02-30'", "quotes"),
        (("keep_min: 2", "keep_min: !!int abc"), 5, "cannot be read: 'abc'", "quotes"),
        (("staged: true", "staged: !!bool abc"), 9, "cannot be read: 'abc'", "quotes"),
        (("staged: true", "staged: !!timestamp abc"), 9, "cannot be read: 'abc'", "quotes"),
        (("branches: [main]", "branches: &b [*b]"), 8, "holds itself", "alias"),
        (("branches: [main]", f"branches: {_laughs(9)}"), 8, "aliases stand for more than 10000 values", "write"),
        (("branches: [main]", f"branches: {'[' * 2000}{']' * 2000}"), 8, "nested too deeply", "brackets"),
        (('tables: ["lake.raw.*"]', "tables: "), 8, "'tables' is empty", "leave the key"),
        (("exclude: {any_labels: [LegalHold.is_true]}", "exclude: {tables: }"), 3, "'tables' is empty", "leave"),
        (("exclude: {any_labels: [LegalHold.is_true]}", "exclude: "), 3, "'exclude' is empty", "leave the key"),
        (("exclude: {any_labels: [LegalHold.is_true]}", "exclude: {}"), 3, "the exclusion is empty", "leave the key"),
        (("owner: risk", "owner: "), 8, "property 'owner' has no value", "quotes"),
        (("any_labels: [LegalHold.is_true], keep", "any_labels: , keep"), 13, "'any_labels' is empty", "leave"),
        (("older_than: 36h", "older_than: 1m"), 5, "m could be minutes", None),
        (("grace: 12h", "grace: 2m"), 6, "m could be minutes", None),
        (("grace: 12h", "grace: -1d"), 6, "lies in the future", None),
        (("keep_max: 9", "keep_max: 1"), 5, "keep_max 1 is less than keep_min 2", "raise keep_max"),
        (("keep_min: 2", "keep_min: 0"), 5, "policies.0.versions.keep_min", "write 1 or more"),
        (("keep_min: 2", "keep_min: 2147483648"), 5, "policies.0.versions.keep_min", "write 1000000 or less"),
        (("keep_max: 9", "keep_max: 1000001"), 5, "policies.0.versions.keep_max", "write 1000000 or less"),
        (("limit: 50", "limit: 99999999999999999999"), 5, "policies.0.versions.limit", "write 1000000 or less"),
        (("keep_views: 2", "keep_views: 3000000000"), 9, "transactions.keep_views", "write 1000000 or less"),
        (("keep_min: 2", "keep_min: true"), 5, "policies.0.versions.keep_min", "whole number"),
        (("keep_min: 2", "keep_min: yes"), 5, "policies.0.versions.keep_min", "whole number"),
        (("keep_min: 2", "keep_min: '2'"), 5, "policies.0.versions.keep_min", "whole number"),
        (("keep_min: 2", "keep_min: 010"), 5, "'010' would be read as 8", "write 8"),
        (("keep_min: 2", "keep_min: 1:30"), 5, "'1:30' would be read as 90", "write 90"),
        (("owner: risk", "owner: 1:30.5"), 8, "'1:30.5' would be read as 90.5", "quotes"),
        (("allow_latest_view: true", "allow_latest_view: 'yes'"), 9, "allow_latest_view", "true or false"),
        (("allow_latest_view: true", "allow_latest_view: 1"), 9, "allow_latest_view", "true or false"),
        (("basis: tax code", "basis: ' '"), 13, "floors.0.basis", "not blank"),
        (("limit: 50", "limit: -1"), 5, "policies.0.versions.limit", "write 1 or more"),
        (("limit: 50", "limit: 1.5"), 5, "policies.0.versions.limit", "whole number"),
        (("name: everything", "name: ' '"), 7, "policies.1.name", "not blank"),
        (("limit: 50", "limit: many"), 5, "policies.0.versions.limit", "whole number"),
        (("keep_views: 2", "keep_views: 0"), 9, "policies.1.transactions.keep_views", "write 1 or more"),
        (("staged: true", "staged: perhaps"), 9, "policies.1.transactions.staged", "true or false"),
        (("unused_for: 6m", "unused_for: -6m"), 10, "lies in the future", None),
        (("age_of: oldest", "age_of: eldest"), 4, "age_of", "'newest' or 'oldest'"),
        (
            ("partitions: {older_than", "partitions: {oldr_than"),
            4,
            "unknown key 'policies.0.partitions.oldr_than'",
            "'older_than'",
        ),
        (
            ("transactions: {older_than", "transactions: {older_then"),
            9,
            "unknown key 'policies.1.transactions.older_then'",
            "did you mean 'older_than'?",
        ),
        (
            ("    partitions: {older_than: 90d, age_of: oldest}", "    partitions: {age_of: oldest}"),
            4,
            "'policies.0.partitions.older_than' is missing",
            "add the key 'older_than'",
        ),
        (("age_of: oldest", "age_off: oldest"), 4, "unknown key 'policies.0.partitions.age_off'", "'age_of'"),
        (("grace:", "grase:"), 6, "unknown key 'policies.0.grase'", "'grace'"),
        (("formats: [iceberg]", "formats: [iceburg]"), 8, "unknown format 'iceburg'", "'iceberg'"),
        (("branches: [main]", "branches: []"), 8, "empty list", "leave the key out"),
        (
            ('select: {tables: ["lake.raw.*"]', 'selekt: {tables: ["lake.raw.*"]'),
            8,
            "unknown key 'policies.1.selekt'",
            "did you mean 'select'?",
        ),
        (("name: everything", "name: user-data"), 7, "two policies are named 'user-data'", "a.yml:2"),
        (("rows: {column: at, older_than: 2y}", "rows: {column: at}"), 11, "by age or by predicate", None),
        (("rows: {column: at, older_than: 2y}", "rows: {where: x, column: at}"), 11, "by age or by predicate", None),
        (
            ("rows: {column: at, older_than: 2y}", "rows: {where: 'a ='}"),
            11,
            "not a condition: 'a ='",
            "country = 'DE'",
        ),
        (("rows: {column: at, older_than: 2y}", "rows: {where: 'a) OR (b'}"), 11, "not a condition", "country = 'DE'"),
        (("rows: {column: at, older_than: 2y}", "rows: {where: 'a; DROP TABLE t'}"), 11, "not a condition", "country"),
        (("rows: {column: at, older_than: 2y}", "rows: {where: SELECT 1}"), 11, "not a condition", "country"),
        (("rows: {column: at, older_than: 2y}", "rows: {where: a -- b}"), 11, "no comments", "country"),
        (("rows: {column: at, older_than: 2y}", "rows: {where: at < now()}"), 11, "at every run", "older_than"),
        (("rows: {column: at, older_than: 2y}", "tables: {older_than: 1d}"), 7, "all branches", "two policies"),
        (("keep_at_least: 7y", "keep_at_least: seven"), 13, "not a duration: 'seven'", None),
        (("basis: tax code", "bases: tax code"), 13, "unknown key 'floors.0.bases'", "did you mean 'basis'?"),
        (
            ("any_labels: [LegalHold.is_true], keep", "any_lables: [LegalHold.is_true], keep"),
            13,
            "unknown key 'floors.0.any_lables'",
            "did you mean 'any_labels'?",
        ),
        (("branches: {unused_for: 6m}", "branches: 6m"), 10, "policies.1.branches", "keys and values"),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_hint(
    tmp_path: Path, change: tuple[str, str], line: int, message: str, hint: str | None
) -> None:
    assert change[0] in GOOD
    with pytest.raises(InputError) as caught:
        load_policies(write(tmp_path, GOOD.replace(*change, 1)))
    assert f"a.yml:{line}: " in str(caught.value)
    assert message in str(caught.value)
    assert caught.value.hint
    assert hint is None or hint in caught.value.hint


def test_a_guard_age_below_a_day_passes_only_when_it_is_called_unsafe(tmp_path: Path) -> None:
    text = 'policies:\n  - {name: a, select: {tables: ["**"]}, orphans: {older_than: 0d}}\n'
    with pytest.raises(InputError, match=r"a\.yml:2: a guard age below a day") as caught:
        load_policies(write(tmp_path, text))
    assert "--unsafe" in str(caught.value.hint)
    assert str(load_policies(tmp_path, unsafe=True).policies[0].orphans) == "older_than=Duration(count=0, unit='d')"
    with pytest.raises(InputError, match="lies in the future"):
        load_policies(write(tmp_path, text.replace("0d", "-1d")), unsafe=True)
    assert load_policies(write(tmp_path, text.replace("0d", "1d"))).policies


@pytest.mark.parametrize(
    "text",
    [
        "floors:\n  - {any_labels: [Finance.invoice], keep_at_least: 10y, basis: HGB}\n",
        "promises:\n  - {all_labels: [Finance.invoice], gone_within: 10d}\n",
        "policies:\n  - {name: a, select: {any_labels: [Finance.invoice]}, orphans: {}}\n",
        "policies:\n  - {name: a, select: {tables: [a], exclude: {any_labels: [Finance.invoice]}}, orphans: {}}\n",
    ],
)
@pytest.mark.parametrize("classifiers", [None, CLASSIFIERS])
def test_a_label_that_no_classifier_defines_is_refused(tmp_path: Path, text: str, classifiers: str | None) -> None:
    """Also where there are no classifiers at all: a floor that cannot work is not passed over in silence."""
    with pytest.raises(InputError, match=r"a\.yml:2: unknown classifier 'Finance'") as caught:
        load_policies(write(tmp_path, text, classifiers=classifiers))
    assert ("classifiers/" if classifiers is None else "known: ") in str(caught.value.hint)


def test_two_policies_of_one_name_are_refused_across_files(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, 'policies:\n\n  - {name: everything, select: {tables: ["**"]}, orphans: {}}\n', "b.yml")
    with pytest.raises(InputError, match=r"b\.yml:3: two policies are named 'everything'") as caught:
        load_policies(tmp_path)
    assert "a.yml:7" in str(caught.value.hint)


@pytest.mark.parametrize("select", ["{}", "{exclude: {tables: [a]}}", "{tables: []}", "{properties: {}}"])
def test_an_empty_selection_is_invalid_not_permissive(tmp_path: Path, select: str) -> None:
    text = f"policies:\n  - {{name: a, select: {select}, orphans: {{}}}}\n"
    with pytest.raises(InputError, match="empty"):
        load_policies(write(tmp_path, text))


def test_a_table_that_needs_a_label_of_its_own_is_selected_by_labels(tmp_path: Path) -> None:
    """By its name alone no label could be the one, and nothing would ever go."""
    text = "policies:\n  - {name: p, select: {tables: ['**']}, tables: {older_than: 9d, own_label: true}}\n"
    with pytest.raises(InputError, match="own_label asks for a label of the selection") as caught:
        load_policies(write(tmp_path, text))
    assert caught.value.hint == "add select.any_labels or select.all_labels"


def test_a_policy_without_a_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no target") as caught:
        load_policies(write(tmp_path, 'policies:\n  - {name: a, select: {tables: ["**"]}}\n'))
    assert all(target in str(caught.value.hint) for target in TARGETS)


def test_auto_is_read_for_a_promise_to_derive_it(tmp_path: Path) -> None:
    found = load_policies(write(tmp_path, GOOD.replace("older_than: 90d", "older_than: auto")))
    partitions = next(policy.partitions for policy in found.policies if policy.partitions is not None)
    assert partitions.older_than == AUTO


def test_the_canonical_form_tells_every_setting(tmp_path: Path) -> None:
    base = load_policies(write(tmp_path, GOOD)).canonical()
    for old, new in [("90d", "91d"), ("age_of: oldest", "age_of: newest"), ("limit: 50", "limit: 51"), ("7y", "8y")]:
        assert load_policies(write(tmp_path, GOOD.replace(old, new))).canonical() != base
