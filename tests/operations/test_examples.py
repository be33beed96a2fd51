"""The examples are run as a scheduler runs them, as far as one can be had here, and name verbs that there are."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.generate import commands
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

EXAMPLES = Path(__file__).parents[2] / "examples"
_LINE = re.compile(r"(?:[0-9*/,-]+ ){5}(.+)")
_SETTING = re.compile(r"([A-Z]+)=(.*)")


def crontab() -> tuple[dict[str, str], list[str]]:
    lines = [line for line in (EXAMPLES / "crontab").read_text().splitlines() if not line.startswith("#")]
    settings = {match[1]: match[2] for line in lines if (match := _SETTING.fullmatch(line))}
    found = [match[1] for line in lines if (match := _LINE.fullmatch(line))]
    assert len(settings) + len(found) == len(lines), "cron knows settings and lines with five fields, and nothing else"
    return settings, found


def unit(name: str) -> dict[str, list[tuple[str, str]]]:
    """The keys of a unit by section; systemd lets a key stand twice."""
    found: dict[str, list[tuple[str, str]]] = {}
    section = ""
    for line in (EXAMPLES / "systemd" / name).read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            found[section] = []
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[section].append((key, value))
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("examples") / "a project"
    SmallLake(root).create("payments", 2)
    (root / "ebbtide.yml").write_text(PROJECT + "ledger: {origin: example.org/a, checkpoint: ../checkpoint}\n")
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(
        'policies:\n  - {name: old, select: {tables: ["**"]}, versions: {older_than: 30d}}\n'
    )
    return root


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ebbtide` as the examples call it, by a path of its own."""
    path = tmp_path_factory.mktemp("bin") / "ebbtide"
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ebbtide.cli.main "$@"\n')
    path.chmod(0o755)
    return path


def test_the_line_of_cron_runs_in_a_shell_that_knows_nothing(project: Path, program: Path) -> None:
    settings, (first, second) = crontab()
    assert set(settings) == {"EBBTIDE", "PROJECT"}
    words = shlex.split(second)
    assert words[:2] == ["$EBBTIDE", "--quiet"]
    known(words[2:])
    environment = {"EBBTIDE": str(program), "PROJECT": str(project), "LOGNAME": "nobody"}
    environment |= {"HOME": str(project.parent), "PATH": "/usr/bin:/bin"}
    for rehearsal in ("", " --dry-run"):
        done = subprocess.run(["/bin/sh", "-c", first + rehearsal], env=environment, cwd="/", capture_output=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout + done.stderr == b"", "cron mails what a line says: a night that went well says nothing"
    assert (project / ".ebbtide" / "state.db").exists()


def test_retention_and_erasure_are_services_of_their_own_and_run(project: Path, program: Path) -> None:
    """A run that could not read one table ends with 4: nobody's erasure is to wait for that."""
    assert sorted(path.name for path in (EXAMPLES / "systemd").iterdir()) == UNITS
    for name, verb in (("ebbtide-run.service", ["run"]), ("ebbtide-erase.service", ["erase", "run"])):
        service = unit(name)["Service"]
        assert ("Type", "oneshot") in service
        (words,) = (shlex.split(value)[1:] for key, value in service if key == "ExecStart")
        assert words[: len(verb)] == verb
        known(words)
        done = subprocess.run([program, *words, "--dry-run"], cwd=project, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    times = [dict(unit(name)["Timer"])["OnCalendar"] for name in UNITS if name.endswith(".timer")]
    assert len(set(times)) == 2


def test_systemd_takes_the_units(program: Path, tmp_path: Path) -> None:
    verifier = shutil.which("systemd-analyze")
    if verifier is None:  # not a system that systemd runs: the test above reads the unit
        return
    for name in UNITS:
        text = (EXAMPLES / "systemd" / name).read_text().replace("/opt/ebbtide/bin/ebbtide", str(program))
        (tmp_path / name).write_text(text)
        done = subprocess.run([verifier, "verify", tmp_path / name], capture_output=True, text=True)
        assert str(tmp_path) not in done.stderr, done.stderr


UNITS = ["ebbtide-erase.service", "ebbtide-erase.timer", "ebbtide-run.service", "ebbtide-run.timer"]


def known(words: Sequence[str]) -> None:
    """They are a verb with options that it has."""
    verbs = dict(commands())
    name = next(" ".join(words[:count]) for count in (2, 1) if " ".join(words[:count]) in verbs)
    given = {word for word in words[len(name.split()) :] if word.startswith("-")}
    options = {option for parameter in verbs[name].params for option in parameter.opts}
    assert given <= options, (name, given - options)
    assert "--yes" in given, "nobody is there to be asked"


def cronjobs() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / "kubernetes" / "cronjob.yaml").read_text()))


@pytest.mark.parametrize("found", cronjobs(), ids=lambda each: each["metadata"]["name"])
def test_a_cronjob_is_one_runs_one_at_a_time_and_without_rights(found: dict[str, Any]) -> None:
    assert (found["apiVersion"], found["kind"]) == ("batch/v1", "CronJob")
    assert re.fullmatch(r"[a-z0-9-]+", found["metadata"]["name"])
    assert len(found["spec"]["schedule"].split()) == 5
    assert found["spec"]["concurrencyPolicy"] == "Forbid"
    pod = found["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure")
    assert pod["securityContext"]["runAsNonRoot"] is True
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in pod["containers"]:
        assert container["image"]
        known(container["args"])
        assert "command" not in container, "the image's own is ebbtide"
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert "/project" in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert len({each["metadata"]["name"] for each in cronjobs()}) == len(
        {each["spec"]["schedule"] for each in cronjobs()}
    )
    assert "initContainers" not in pod, "what fails there keeps the rest from running"


def instructions() -> list[tuple[str, str]]:
    text = (EXAMPLES / "kubernetes" / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]
    assert {name for name, _ in found} <= {"FROM", "RUN", "COPY", "USER", "ENV", "WORKDIR", "ENTRYPOINT", "CMD"}
    return found


def test_the_image_is_without_root_and_runs_a_verb() -> None:
    found = instructions()
    assert found[0][0] == "FROM"
    users = [value for name, value in found if name == "USER"]
    (user,) = {
        each["spec"]["jobTemplate"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"] for each in cronjobs()
    }
    assert users == [str(user)]
    assert any("ebbtide setup" in value for name, value in found if name == "RUN"), "no session fetches jars"
    last = max(number for number, (name, _) in enumerate(found) if name == "RUN")
    assert last < found.index(("USER", str(user))), "what is installed is root's, and nobody's to change"
    by_name = dict(found)
    assert json.loads(by_name["ENTRYPOINT"]) == ["ebbtide"]
    known(json.loads(by_name["CMD"]))
    assert by_name["WORKDIR"] == "/project"
    for _, script in (one for one in found if one[0] == "RUN"):
        assert subprocess.run(["/bin/sh", "-n", "-c", script]).returncode == 0, script
