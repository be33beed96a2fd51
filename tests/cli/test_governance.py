"""`labels`, `lineage` and `lineage listen` as their users meet them, over a real lake."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.cli.command import ebbtide
from tests.cli.listener import listening
from tests.cli.test_commands import PROJECT

TABLES = {
    "users": "uid email country", "countries": "country name", "logs": "host _date",
    "daily": "uid email n _date", "by_country": "country n", "report": "name mail_hash",
}  # fmt: skip
FILES = {
    "classifiers/pii.yml": """\
classifiers:
  - {name: PII, kind: column, propagate: true, labels: [tag, hashed]}
  - {name: TableContent, kind: table, propagate: true, labels: [machine_data, static_data, user_data]}
  - {name: LegalHold, kind: table, propagate: false, labels: [is_true]}
""",
    "tables/app.yml": """\
tables:
  - {name: lake.app.users, schedule: +1d, labels: [LegalHold.is_true], columns: {uid: [PII.tag], email: [PII.tag]}}
  - {name: lake.app.countries, labels: [TableContent.static_data]}
  - {name: lake.app.daily, schedule: +1d, time_grain: +7d}
  - {name: lake.app.report, reclassify: {mail_hash: {PII.tag: PII.hashed}}}
""",
    "lineage/lake.app.daily.sql": "SELECT uid, email, count(*) AS n, @date AS _date FROM lake.app.users GROUP BY ALL",
    "lineage/lake.app.by_country.sql": "SELECT country, count(*) AS n FROM lake.app.users GROUP BY country",
    "lineage/view.sql": "CREATE VIEW lake.app.mails AS SELECT email FROM lake.app.daily",
    "lineage/report.sql": "INSERT INTO lake.app.report SELECT c.name, md5(m.email) FROM mails m CROSS JOIN countries c",
}


def make_project(root: Path) -> Path:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("app")
    for name, columns in TABLES.items():
        properties = {"ebbtide.labels": "TableContent.machine_data"} if name == "logs" else {}
        schema = pa.schema([(column, pa.string()) for column in columns.split()])
        catalog.create_table(("app", name), schema, properties=properties)
    (root / "ebbtide.yml").write_text(PROJECT)
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    done = ebbtide("scan", cwd=root)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("governed"))


@pytest.fixture
def copied(project: Path, tmp_path: Path) -> Path:
    """A copy of the project to change: its inventory names the same tables, nothing is scanned again."""
    return shutil.copytree(project, tmp_path / "copy")


def labels(project: Path, *arguments: str) -> Any:
    done = ebbtide("labels", *arguments, "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_labels_lists_every_table_with_what_counts(project: Path) -> None:
    rows = {row["table_id"].removeprefix("lake.app."): row for row in labels(project)["tables"]}
    assert {name: row["classifiers"] for name, row in rows.items()} == {
        "users": "LegalHold.is_true,TableContent.user_data,TimeGrain.+1d",
        "countries": "TableContent.static_data",
        "logs": "TableContent.machine_data",
        "daily": "TableContent.user_data,TimeGrain.+7d",
        "by_country": "TimeGrain.+1d",
        "report": "TableContent.user_data,TimeGrain.+7d",
    }
    assert rows["report"]["depends"] == "lake.app.countries,lake.app.mails"
    assert (rows["users"]["is_root"], rows["daily"]["is_root"]) == (True, False)
    assert (rows["users"]["is_pii"], rows["by_country"]["is_pii"]) == (True, False)
    people = ebbtide("labels", cwd=project)
    assert "TableContent.static_data" in people.stdout


def test_labels_of_a_table_show_the_path_that_brought_each(project: Path) -> None:
    found = labels(project, "lake.app.report")
    (mail,) = [column for column in found["columns"] if column["column"] == "mail_hash"]
    (why,) = mail["why"]
    assert (why["label"], why["how"]) == ("PII.hashed", "propagated")
    assert [step["name"].removeprefix("lake.app.") for step in why["path"]] == [
        "users.email", "daily.email", "mails.email", "report.mail_hash",
    ]  # fmt: skip
    assert why["path"][-1]["provenance"] == ["sql:lineage/report.sql"]
    (content, grain) = found["why"]
    assert (content["how"], content["because"]) == ("derived", "lake.app.report.mail_hash has PII.hashed")
    assert [step["name"] for step in grain["path"]] == ["lake.app.daily", "lake.app.mails", "lake.app.report"]
    people = ebbtide("labels", "lake.app.report", cwd=project)
    assert "lake.app.users.email → lake.app.daily.email → lake.app.mails.email" in people.stdout


def test_lineage_shows_edges_with_provenance_and_can_be_narrowed(project: Path) -> None:
    done = ebbtide("lineage", "--json", cwd=project)
    told = json.loads(done.stdout)
    direct = {(e["source_column"], e["target_column"]) for e in told["edges"] if e["kind"] == "direct"}
    assert ("lake.app.mails.email", "lake.app.report.mail_hash") in direct
    assert {e["provenance"] for e in told["edges"] if e["target_table"] == "lake.app.daily"} == {
        "sql:lineage/lake.app.daily.sql"
    }
    assert told["problems"] == []
    narrow = json.loads(ebbtide("lineage", "--table", "lake.app.by_country", "--json", cwd=project).stdout)
    assert {e["target_table"] for e in narrow["edges"]} == {"lake.app.by_country"}
    assert "direct, masking" in ebbtide("lineage", "--project", str(project), cwd=project.parent).stdout


def test_a_second_run_traces_nothing(project: Path) -> None:
    ebbtide("lineage", cwd=project)
    assert json.loads(ebbtide("lineage", "--json", cwd=project).stdout)["traced"] == 0


def test_a_label_goes_when_its_source_goes(copied: Path) -> None:
    root = copied
    tables = root / "tables" / "app.yml"
    tables.write_text(tables.read_text().replace(", email: [PII.tag]", "").replace("uid: [PII.tag]", "country: []"))
    assert "TableContent.user_data" not in labels(root, "lake.app.report")["labels"]


@pytest.mark.parametrize(
    ("file", "text", "verb", "message", "hint"),
    [
        ("tables/x.yml", "tables:\n  - {name: lake.app.logs, labels: [TableContent.machin_data]}\n", "labels",
         "tables/x.yml:2: unknown label 'TableContent.machin_data'", "did you mean 'TableContent.machine_data'?"),
        ("lineage/bad.sql", "SELECT uid\nFROM (lake.app.users", "lineage", "lineage/bad.sql:2:20: not SQL", "per file"),
        ("lineage/bad.sql", "SELECT uid\nFROM (lake.app.users", "labels", "lineage/bad.sql:2:20: not SQL", "per file"),
        ("lineage/openlineage/e.json", '{"schemaURL": "https://openlineage.io/spec/9-0-0/OpenLineage.json"}', "lineage",
         "lineage/openlineage/e.json: OpenLineage 9-0-0 is not known", "known version"),
    ],
)  # fmt: skip
def test_bad_input_exits_2_with_its_place(
    copied: Path, file: str, text: str, verb: str, message: str, hint: str
) -> None:
    (copied / file).parent.mkdir(exist_ok=True, parents=True)
    (copied / file).write_text(text)
    done = ebbtide(verb, cwd=copied)
    assert done.returncode == 2
    assert message in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


def test_what_matches_nothing_is_told_and_the_rest_goes_on(copied: Path) -> None:
    root = copied
    (root / "tables" / "x.yml").write_text("tables:\n  - {name: lake.app.usres, labels: [TableContent.user_data]}\n")
    (root / "lineage" / "lake.app.logs.sql").write_text("SELECT host, _date FROM lake.app.hosts")
    (root / "lineage" / "ring.sql").write_text(
        "INSERT INTO lake.app.users (country) SELECT country FROM lake.app.by_country"
    )
    done = ebbtide("labels", "--json", cwd=root)
    assert done.returncode == 0
    problems = {(p["kind"], p["subject"]): p["message"] for p in json.loads(done.stdout)["problems"]}
    assert problems["label", "lake.app.usres"] == "no catalog has lake.app.usres"
    assert problems["unmatched", "lake.app.hosts"] == "nothing is known of lake.app.hosts"
    assert (
        problems["cycle", "lake.app.by_country"] == "these tables feed each other: lake.app.by_country, lake.app.users"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["labels", "lake.app.usres"], "did you mean lake.app.users"),
        (["labels", "users"], "not a dataset"),
        (["lineage", "--table", "lake.app.no"], "no dataset lake.app.no"),
        (["lineage", "listen", "--port", "70000"], "65535"),
    ],
)
def test_wrong_names_exit_2(project: Path, arguments: list[str], message: str) -> None:
    done = ebbtide(*arguments, cwd=project)
    assert done.returncode == 2
    assert message in done.stderr


def event(project: Path) -> dict[str, Any]:
    source = {"namespace": "file", "name": f"{project}/lake/app/users"}
    facet = "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
    fields = {"host": {"inputFields": [{**source, "field": "email", "transformations": [{"type": "DIRECT"}]}]}}
    output = {
        "namespace": "file", "name": f"{project}/lake/app/logs",
        "facets": {"columnLineage": {"_schemaURL": facet, "_producer": "test", "fields": fields}},
    }  # fmt: skip
    return {
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent", "eventType": "COMPLETE",
        "eventTime": "2026-11-15T10:00:00Z", "producer": "test", "run": {"runId": "0190"},
        "job": {"namespace": "etl", "name": "copy", "facets": {"sql": {"query": "SELECT 'secret@example.org'"}}},
        "inputs": [source], "outputs": [output],
    }  # fmt: skip


JSON = {"content-type": "application/json"}


def test_beyond_loopback_a_token_is_asked_for(project: Path, copied: Path) -> None:
    sent = event(project)

    def posted(address: str, token: str | None) -> int:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.post(address.replace("0.0.0.0", "127.0.0.1"), json=sent, headers=headers).status_code  # noqa: S104

    with listening(copied, "--host", "0.0.0.0", EBBTIDE_LISTEN_TOKEN="") as address:  # noqa: S104
        # Made for this run, and shown only to who started it.
        assert [posted(address, token) for token in (None, "guess")] == [401, 401]
    with listening(copied, EBBTIDE_LISTEN_TOKEN="a-token") as address:
        assert [posted(address, token) for token in (None, "guess", "a-token")] == [401, 401, 201]


def test_posted_events_become_lineage_and_keep_no_query_text(project: Path, copied: Path) -> None:
    root, sent = copied, event(project)
    with listening(root) as address:
        first = httpx.post(address, json=sent)
        assert first.status_code == 201, first.text
        assert httpx.post(address, json=sent).json() == first.json()
        deep = b'{"a":' * 100_000, b'{"job": {"name": "x"}, "facets": ' + b"[" * 900 + b"]" * 900 + b"}"
        for body in (b"{", b"[]", b'{"schemaURL": "https://openlineage.io/spec/9-0-0/OpenLineage.json"}', *deep):
            refused = httpx.post(address, content=body, headers=JSON)
            assert refused.status_code == 400, refused.text
            assert set(refused.json()) == {"error", "hint"}
        assert httpx.post(address, content=b"x", headers=JSON | {"content-encoding": "gzip"}).status_code == 415
        assert httpx.post(address, content=b"x" * ((16 << 20) + 1), headers=JSON).status_code == 413
        assert httpx.get(address).status_code == 405
        assert httpx.options(address).status_code == 405, "no page is told that it may"
        # What a web page can send, of a form or of a name of its own that resolves to loopback.
        port = address.partition(":")[2].partition(":")[2].partition("/")[0]
        for status, headers in (
            (403, {"origin": "https://example.org"}), (403, {"origin": "null"}),
            (403, {"host": f"rebound.example.org:{port}"}), (403, {"host": "127.0.0.1.example.org"}),
            (403, {"host": "["}),
            (415, {"content-type": "text/plain"}), (415, {"content-type": "application/x-www-form-urlencoded"}),
        ):  # fmt: skip
            refused = httpx.post(address, json={**sent, "producer": "page"}, headers=headers)
            assert (refused.status_code, set(refused.json())) == (status, {"error", "hint"}), headers
        for host in (f"localhost:{port}", "LOCALHOST", f"[::1]:{port}"):
            assert httpx.post(address, json=sent, headers={"host": host}).status_code == 201, host
    (stored,) = (root / "lineage" / "openlineage").iterdir()
    assert "secret" not in stored.read_text()
    edges = json.loads(ebbtide("lineage", "--table", "lake.app.logs", "--json", cwd=root).stdout)["edges"]
    assert [(e["source_column"], e["target_column"], e["provenance"]) for e in edges] == [
        ("lake.app.users.email", "lake.app.logs.host", "openlineage:etl/copy")
    ]
    assert labels(root, "lake.app.logs")["labels"] == ["TableContent.user_data", "TimeGrain.+1d"]
