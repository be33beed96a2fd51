"""Many models: names, order, what changed, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.errors import InputError
from ebbtide.lineage.cache import FlowCache
from ebbtide.lineage.models import Traced, sql_models, trace_models
from ebbtide.lineage.names import Names
from ebbtide.lineage.values import Flow, ProblemKind
from ebbtide.model.ids import DatasetId
from tests.lineage.flows import direct

COLUMNS = {
    "lake.raw.users": ["uid", "email"],
    "lake.raw.orders": ["id", "uid"],
    "lake.app.daily": ["uid", "email"],
    "lake.app.total": ["uid", "n"],
}
LOCATIONS = {table_id: f"/lake/{table_id}" for table_id in COLUMNS}
MODELS = {
    "lake.app.daily.sql": "SELECT uid, email FROM clean",
    "view.sql": "CREATE VIEW lake.app.clean AS SELECT u.* FROM lake.raw.users u",
    "total.sql": "INSERT INTO lake.app.total SELECT uid, count(*) FROM raw.orders GROUP BY uid",
}


class Project:
    """A folder of models and the cache beside it."""

    def __init__(self, root: Path) -> None:
        self.folder, self.cache = root / "lineage", root / "cache.json"
        self.folder.mkdir()
        self.columns = {table_id: list(names) for table_id, names in COLUMNS.items()}
        for name, text in MODELS.items():
            (self.folder / name).write_text(text)

    def run(self) -> Traced:
        cache = FlowCache(self.cache)
        models = sql_models(self.folder, self.folder.parent)
        traced = trace_models(models, self.columns, LOCATIONS, {}, cache)
        cache.save()
        return traced

    def flow(self, name: str) -> Flow:
        return next(flow for flow in self.run().flows if flow.provenance == f"sql:lineage/{name}")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_view_that_no_catalog_has_is_traced_before_what_reads_it(project: Project) -> None:
    traced = project.run()
    assert direct(project.flow("view.sql")) == {"lake.raw.users.uid > clean.uid", "lake.raw.users.email > clean.email"}
    assert direct(project.flow("lake.app.daily.sql")) == {"clean.uid > daily.uid", "clean.email > daily.email"}
    assert traced.problems == ()


def test_a_second_run_traces_nothing_and_says_the_same(project: Project) -> None:
    first, second = project.run(), project.run()
    assert (first.traced, second.traced) == (3, 0)
    assert second.flows == first.flows


def test_only_what_changed_is_traced_again(project: Project) -> None:
    project.run()
    (project.folder / "total.sql").write_text(
        "INSERT INTO lake.app.total SELECT uid, max(id) FROM raw.orders GROUP BY uid"
    )
    assert project.run().traced == 1
    assert "lake.raw.orders.id > total.n" in direct(project.flow("total.sql"))


def test_a_new_column_traces_again_what_reads_it_and_nothing_else(project: Project) -> None:
    project.run()
    project.columns["lake.raw.users"].append("phone")
    again = project.run()
    assert again.traced == 2  # the view with its star, and what reads the view, whose columns grew
    assert "lake.raw.users.phone > clean.phone" in direct(project.flow("view.sql"))


def test_a_model_that_is_gone_takes_its_edges_with_it(project: Project) -> None:
    project.run()
    (project.folder / "total.sql").unlink()
    assert not any(flow.target == "lake.app.total" for flow in project.run().flows)
    assert "total.sql" not in project.cache.read_text()


def test_a_broken_cache_costs_time_only(project: Project) -> None:
    first = project.run()
    project.cache.write_text("{not json")
    again = project.run()
    assert again.traced == 3
    assert again.flows == first.flows


def test_a_file_that_does_not_parse_is_a_problem_and_leaves_the_others_alone(project: Project) -> None:
    (project.folder / "bad.sql").write_text("SELECT a,\nFROM (")
    traced = project.run()
    (problem,) = traced.problems
    assert problem.kind is ProblemKind.UNREADABLE
    assert problem.where.startswith("lineage/bad.sql:2:")
    assert len(traced.flows) == 3


def test_a_name_that_matches_nothing_is_a_problem_with_the_nearest_name(project: Project) -> None:
    (project.folder / "lake.app.dayly.sql").write_text("SELECT uid FROM lake.raw.usres")
    unmatched = {p.subject: p for p in project.run().problems if p.kind is ProblemKind.UNMATCHED}
    assert set(unmatched) == {"lake.app.dayly", "lake.raw.usres"}
    assert unmatched["lake.raw.usres"].hint == "did you mean lake.raw.users?"
    assert unmatched["lake.app.dayly"].where == "lineage/lake.app.dayly.sql"


def test_a_column_that_the_catalogs_table_lacks_is_told_and_taken_for_what_is_left(project: Project) -> None:
    (project.folder / "lake.app.daily.sql").write_text("SELECT uid, email AS e_mail FROM clean WHERE email > ''")
    (project.folder / "total.sql").write_text("INSERT INTO lake.app.total (uid, nn) SELECT uid, id FROM raw.orders")
    for _ in range(2):  # the second time from the cache
        daily, total = project.flow("lake.app.daily.sql"), project.flow("total.sql")
        assert direct(daily) == {"clean.uid > daily.uid", "clean.email > daily.email"}
        assert daily.columns == ("uid", "email")
        (problem,) = daily.problems
        assert (problem.kind, problem.where) == (ProblemKind.FALLBACK, "lineage/lake.app.daily.sql")
        assert "lake.app.daily has no column e_mail: " in problem.message
        assert problem.hint == "did you mean 'email'?"
        assert "lake.raw.orders.id > total.n" in direct(total)
        assert ["no column nn" in problem.message for problem in total.problems] == [True]


def test_a_bare_select_needs_a_file_name_that_is_a_table(project: Project) -> None:
    (project.folder / "query.sql").write_text("SELECT uid FROM lake.raw.users")
    (problem,) = project.run().problems
    assert "names no table" in problem.message


def test_models_that_read_each_other_are_traced_all_the_same(project: Project) -> None:
    (project.folder / "a.sql").write_text("CREATE VIEW lake.app.a AS SELECT uid FROM lake.app.b")
    (project.folder / "b.sql").write_text("CREATE VIEW lake.app.b AS SELECT uid FROM lake.app.a")
    flows = {flow.target: flow for flow in project.run().flows}
    assert direct(flows["lake.app.a"]) == {"b.uid > a.uid"}
    assert direct(flows["lake.app.b"]) == {"a.uid > b.uid"}


NAMES = Names(
    {"lake.raw.users": "s3a://bucket/raw/users", "ice.raw.users": "/ice/users", "lake.raw.Only": "", "lake.x.y.z": ""},
    {"warehouse.people": "lake.raw.users"},
)


@pytest.mark.parametrize(
    ("parts", "near", "expected"),
    [
        (("lake", "raw", "users"), None, "lake.raw.users"),
        (("LAKE", "Raw", "USERS"), None, "lake.raw.users"),
        (("lake", "x", "y", "z"), None, "lake.x.y.z"),
        (("raw", "only"), None, "lake.raw.Only"),
        (("raw", "users"), None, None),  # two catalogs have it
        (("raw", "users"), "ice.app.t", "ice.raw.users"),
        (("users",), "lake.raw.t", "lake.raw.users"),
        (("users",), "lake.app.t", None),  # a bare name is a neighbour's, never a guess
        (("only",), None, None),
        (("warehouse", "people"), None, "lake.raw.users"),
        (("delta", "s3://bucket/raw/users/"), None, "lake.raw.users"),
        (("delta", "s3://bucket/raw/users_2"), None, None),
        (("nowhere", "at", "all"), None, None),
    ],
)
def test_names_are_found_or_not_and_never_guessed(
    parts: tuple[str, ...], near: str | None, expected: str | None
) -> None:
    assert NAMES.find(parts, DatasetId.parse(near) if near else None) == expected


def test_names_that_differ_in_case_only_are_told_by_their_exact_spelling() -> None:
    names = Names({"lake.raw.users": "", "lake.raw.Users": ""}, {})
    assert names.find(("lake", "raw", "Users")) == "lake.raw.Users"
    assert names.find(("lake", "raw", "USERS")) is None


def test_a_place_inside_a_dataset_is_that_dataset() -> None:
    assert NAMES.at("s3://bucket/raw/users/data/dt=1") == "lake.raw.users"
    assert NAMES.at("s3://bucket/raw") is None


def test_a_hand_made_mapping_to_no_dataset_is_refused() -> None:
    with pytest.raises(InputError, match=r"lineage.names: x: not a dataset"):
        Names({}, {"x": "nowhere"})
