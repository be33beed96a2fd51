"""OpenLineage events: which datasets they mean, which edges flow, and which versions are known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ebbtide.lineage.names import Names
from ebbtide.lineage.openlineage import EventError, flows_of, parse_event, read_events
from ebbtide.lineage.values import Flow, LineageProblem, ProblemKind
from tests.lineage.flows import direct, rows

COLUMNS = {"lake.app.users": ["uid", "Email", "country"], "lake.app.t": ["uid", "mail", "n"]}
NAMES = Names(
    {"lake.app.users": "file:/wh/app/users", "lake.app.t": "s3a://bucket/app/t"}, {"legacy/people": "lake.app.users"}
)
RUN = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACET = "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet"
USERS: dict[str, Any] = {"namespace": "file", "name": "/wh/app/users"}
TARGET: dict[str, Any] = {"namespace": "s3://bucket", "name": "app/t"}


def field(column: str, *transformations: dict[str, Any], dataset: dict[str, Any] = USERS) -> dict[str, Any]:
    made = {"namespace": dataset["namespace"], "name": dataset["name"], "field": column}
    return {**made, "transformations": list(transformations)} if transformations else made


def event(
    fields: dict[str, Any] | None = None,
    *,
    inputs: list[Any] | None = None,
    output: dict[str, Any] = TARGET,
    **more: Any,
) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if fields is not None:
        facets["columnLineage"] = {"_schemaURL": FACET, "fields": fields, **more}
    return {
        "schemaURL": RUN, "eventType": "COMPLETE", "job": {"namespace": "etl", "name": "load"},
        "inputs": [USERS] if inputs is None else inputs, "outputs": [{**output, "facets": facets}],
    }  # fmt: skip


def flows(
    *events: dict[str, Any], columns: Mapping[str, Sequence[str]] = COLUMNS
) -> tuple[list[Flow], list[LineageProblem]]:
    parsed = [parse_event(value, f"events.json:{n}") for n, value in enumerate(events, 1)]
    return flows_of(parsed, NAMES, columns)


def test_direct_masking_and_indirect_edges_are_told_apart() -> None:
    identity, hashed = {"type": "DIRECT", "subtype": "IDENTITY"}, {"type": "DIRECT", "masking": True}
    filter_ = {"type": "INDIRECT", "subtype": "FILTER"}
    ((flow,), problems) = flows(
        event(
            {
                "uid": {"inputFields": [field("uid", identity), field("country", filter_)]},
                "mail": {"inputFields": [field("email", hashed)]},
                "n": {"inputFields": [field("uid", hashed, filter_)]},
            }
        )
    )
    assert direct(flow) == {"users.uid > t.uid", "users.Email ~> t.mail", "users.uid ~> t.n"}
    assert rows(flow) == {"users.country", "users.uid"}
    assert flow.provenance == "openlineage:etl/load"
    assert (flow.target, flow.inputs, problems) == ("lake.app.t", ("lake.app.users",), [])


def test_old_facets_without_transformations_are_direct() -> None:
    old = {"mail": {"inputFields": [field("email")], "transformationType": "MASKED"}}
    ((flow,), _) = flows(event({"uid": {"inputFields": [field("uid")]}, **old}))
    assert direct(flow) == {"users.uid > t.uid", "users.Email ~> t.mail"}


def test_a_transformation_of_an_unknown_kind_is_taken_as_direct() -> None:
    ((flow,), _) = flows(event({"uid": {"inputFields": [field("uid", {"type": "TELEPATHIC"})]}}))
    assert direct(flow) == {"users.uid > t.uid"}


def test_what_decides_about_the_whole_dataset_is_indirect_for_each_column() -> None:
    ((flow,), _) = flows(event({"uid": {"inputFields": [field("uid")]}}, dataset=[field("country")]))
    assert direct(flow) == {"users.uid > t.uid"}
    assert rows(flow) == {"users.country"}
    assert {edge.target.column for edge in flow.all_edges()} == {"uid", "mail", "n"}


@pytest.mark.parametrize(
    "source",
    [
        USERS,
        {"namespace": "file:///wh", "name": "app/users"},
        {"namespace": "legacy", "name": "people"},
        {"namespace": "spark://host", "name": "lake.app.users"},
        {"namespace": "hive://host", "name": "app.users"},
        {
            "namespace": "file", "name": "/elsewhere",
            "facets": {"symlinks": {"identifiers": [{"namespace": "hive://h", "name": "app.users", "type": "TABLE"}]}},
        },
    ],
)  # fmt: skip
def test_datasets_are_found_by_location_symlink_name_and_by_hand(source: dict[str, Any]) -> None:
    ((flow,), problems) = flows(event({"uid": {"inputFields": [field("uid", dataset=source)]}}, inputs=[source]))
    assert direct(flow) == {"users.uid > t.uid"}
    assert problems == []


def test_a_dataset_that_matches_nothing_is_told_and_stays_in_the_graph() -> None:
    unknown = {"namespace": "s3://landing", "name": "x.csv"}
    ((flow,), (problem,)) = flows(event({"uid": {"inputFields": [field("a", dataset=unknown)]}}, inputs=[unknown]))
    assert problem.kind is ProblemKind.UNMATCHED
    assert problem.subject == "s3://landing/x.csv"
    assert flow.inputs == ("s3://landing/x.csv",)


@pytest.mark.parametrize("place", ["field", "dataset"])
def test_a_dataset_that_only_column_lineage_names_is_told_too(place: str) -> None:
    gone = field("uid", dataset={"namespace": "s3://x", "name": "gone"})
    more: dict[str, Any] = {"dataset": [gone]} if place == "dataset" else {}
    said = event({"uid": {"inputFields": [gone] if place == "field" else [field("uid")]}}, inputs=[], **more)
    ((flow,), (problem,)) = flows(said)
    assert (problem.kind, problem.where, problem.subject) == (ProblemKind.UNMATCHED, "events.json:1", "s3://x/gone")
    assert "s3://x/gone" in str(problem.hint)
    assert "s3://x/gone" in flow.inputs


def test_symlinks_that_stand_in_another_event_find_the_dataset_of_column_lineage() -> None:
    link = {"namespace": "hive://h", "name": "app.users", "type": "TABLE"}
    linked = {"namespace": "file", "name": "/elsewhere", "facets": {"symlinks": {"identifiers": [link]}}}
    end = event({"uid": {"inputFields": [field("uid", dataset=linked)]}}, inputs=[])
    for events in ([event(inputs=[linked]), end], [end, event(inputs=[linked])]):
        ((flow,), problems) = flows(*events)
        assert direct(flow) == {"users.uid > t.uid"}
        assert problems == []


def test_a_source_column_that_the_table_lacks_takes_every_one_of_it_and_is_told() -> None:
    renamed = {"lake.app.users": ["uid", "email", "country"], "lake.app.t": COLUMNS["lake.app.t"]}
    old = event({"mail": {"inputFields": [field("e_mail_old", {"type": "DIRECT", "masking": True})]}})
    ((flow,), _) = flows(event({"uid": {"inputFields": [field("uid")]}}), old, columns=renamed)
    masked = {f"users.{name} ~> t.mail" for name in ("uid", "email", "country", "e_mail_old")}
    assert direct(flow) == {"users.uid > t.uid", *masked}
    (problem,) = flow.problems
    assert (problem.kind, problem.where, problem.subject) == (ProblemKind.FALLBACK, "events.json:2", "lake.app.t")
    assert problem.message == "lake.app.users has no column e_mail_old: every input column was taken"
    assert problem.hint == "did you mean 'email'?"


def test_a_column_that_decides_about_rows_and_is_not_there_is_told() -> None:
    ((flow,), _) = flows(event({"uid": {"inputFields": [field("uid")]}}, dataset=[field("contry")]))
    assert rows(flow) == {"users.uid", "users.Email", "users.country", "users.contry"}
    assert [problem.hint for problem in flow.problems] == ["did you mean 'country'?"]


def test_a_target_column_that_the_table_lacks_is_taken_for_each_that_its_event_leaves_open() -> None:
    old = event({"UID": {"inputFields": [field("uid")]}, "mail_old": {"inputFields": [field("email")]}})
    new = event({"mail": {"inputFields": [field("email")]}, "n": {"inputFields": [field("uid")]}})
    ((flow,), _) = flows(old, new)
    assert direct(flow) == {"users.uid > t.uid", "users.uid > t.n", "users.Email > t.mail", "users.Email > t.n"}
    (problem,) = flow.problems
    assert (problem.kind, problem.where) == (ProblemKind.FALLBACK, "events.json:1")
    assert problem.message.startswith("lake.app.t has no column mail_old: ")
    assert problem.hint == "did you mean 'mail'?"


def test_a_target_column_beside_all_that_the_table_has_is_told_and_stays() -> None:
    fields = {name: {"inputFields": [field("uid")]} for name in (*COLUMNS["lake.app.t"], "extra")}
    ((flow,), _) = flows(event(fields))
    assert direct(flow) == {f"users.uid > t.{name}" for name in fields}
    assert ["extra" in problem.message for problem in flow.problems] == [True]


def test_a_struct_is_read_with_its_fields_and_a_field_with_its_struct() -> None:
    nested = {"lake.app.users": ["uid", "addr", "addr.city", "addr.zip"], "lake.app.t": ["uid", "mail", "to"]}
    fields = {"mail": {"inputFields": [field("Addr.City")]}, "to": {"inputFields": [field("addr")]},
              "uid": {"inputFields": [field("addr.street")]}}  # fmt: skip
    ((flow,), _) = flows(event(fields), columns=nested)
    whole = {f"users.{name} > t.{to}" for name in ("addr", "addr.city", "addr.zip") for to in ("to", "uid")}
    assert direct(flow) == {"users.addr.city > t.mail", "users.addr > t.mail", *whole}
    assert flow.problems == ()


def test_without_column_lineage_every_input_column_is_taken_and_it_is_said() -> None:
    ((flow,), _) = flows(event())
    assert {f"users.{a} > t.{b}" for a in COLUMNS["lake.app.users"] for b in COLUMNS["lake.app.t"]} == direct(flow)
    assert "every input column" in flow.problems[0].message


def test_a_start_without_columns_does_not_drown_the_end_with_them() -> None:
    ((flow,), _) = flows(event(), event({"uid": {"inputFields": [field("uid")]}}))
    assert direct(flow) == {"users.uid > t.uid"}
    assert flow.problems == ()


def test_job_and_dataset_events_count_too() -> None:
    job = event({"uid": {"inputFields": [field("uid")]}})
    del job["eventType"]
    dataset = {"schemaURL": RUN, "dataset": job["outputs"][0]}
    found, _ = flows(job, dataset)
    assert [direct(flow) for flow in found] == [{"users.uid > t.uid"}] * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schemaURL": RUN.replace("2-0-2", "3-0-0")}, "OpenLineage 3-0-0 is not known"),
        ({"schemaURL": None}, "no schemaURL"),
        ({"schemaURL": "https://example.org/other.json"}, "no schemaURL"),
        ({"job": {}}, "without job"),
        ({"inputs": [{"namespace": "file"}]}, "without a name"),
        ({"inputs": ["text"]}, "without a name"),
        ({"inputs": {"a": 1}}, "no lists"),
    ],
)
def test_events_that_are_not_understood_are_refused_with_the_reason(change: dict[str, Any], message: str) -> None:
    with pytest.raises(EventError, match=message):
        parse_event({**event({}), **change}, "e")


def test_a_column_facet_of_an_unknown_version_is_refused() -> None:
    made = event({"uid": {"inputFields": [field("uid")]}})
    made["outputs"][0]["facets"]["columnLineage"]["_schemaURL"] = FACET.replace("1-2-0", "2-0-0")
    with pytest.raises(EventError, match="facet of a version"):
        parse_event(made, "e")


@pytest.mark.parametrize(
    "facets",
    [
        {"columnLineage": {"fields": ["uid"]}},
        {"columnLineage": {"fields": {"uid": "email"}}},
        {"columnLineage": {"fields": {"uid": {"inputFields": "email"}}}},
        {"columnLineage": {"fields": {"uid": {"inputFields": [1]}}}},
        {"columnLineage": {"fields": {"uid": {"inputFields": [{"transformations": ["DIRECT"]}]}}}},
        {"columnLineage": {"dataset": {"field": "uid"}}},
        {"symlinks": {"identifiers": "app.users"}},
        {"schema": {"fields": {"uid": "string"}}},
    ],
)
def test_facets_of_another_shape_are_refused_and_never_an_internal_error(facets: dict[str, Any]) -> None:
    with pytest.raises(EventError, match="not shaped"):
        parse_event({**event(), "outputs": [{**TARGET, "facets": facets}]}, "e")


def test_files_of_one_event_of_a_list_and_of_lines_are_read_and_bad_ones_named(tmp_path: Path) -> None:
    good = event({"uid": {"inputFields": [field("uid")]}})
    folder = tmp_path / "events"
    (folder / "deep").mkdir(parents=True)
    (folder / "one.json").write_text(json.dumps(good))
    (folder / "list.json").write_text(json.dumps([good, good]))
    (folder / "deep" / "lines.jsonl").write_text(
        f"{json.dumps(good)}\n\n{{broken\n{json.dumps({**good, 'schemaURL': ''})}\n"
    )
    (folder / "notes.txt").write_text("not an event")
    events, problems = read_events(folder, tmp_path)
    assert len(events) == 4
    assert [problem.where for problem in problems] == ["events/deep/lines.jsonl:3", "events/deep/lines.jsonl:4"]
    assert read_events(tmp_path / "none", tmp_path) == ([], [])
