"""`ebbtide erase extend`: a later deadline within the law, with who and why, and nothing else (spec §4)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.ledger import open_ledger
from ebbtide.config import load_project
from ebbtide.errors import InputError, RefusedError
from tests.cli.command import ebbtide
from tests.erasure.test_erase_request import PROJECT, SUBJECTS
from tests.inventory.lakes import SmallLake

RECEIVED, REASON = datetime(2026, 1, 31, tzinfo=UTC), "four copies of Ada's files"


def at(month: int, day: int) -> datetime:
    return datetime(2026, month, day, tzinfo=UTC)


@pytest.fixture(scope="module")
def tide(tmp_path_factory: pytest.TempPathFactory) -> Ebbtide:
    root = tmp_path_factory.mktemp("extended")
    SmallLake(root).create("users", 1)
    (root / "ebbtide.yml").write_text(f"clock: simulated\n{PROJECT}")
    (root / "subjects.yml").write_text(SUBJECTS)
    found = Ebbtide(load_project(root))
    found.scan()
    return found


def filed(tide: Ebbtide, number: int, law: str = "gdpr") -> str:
    return tide.erase.request({"user_id": str(number)}, law=law, received=RECEIVED, as_of=at(2, 1)).id or ""


def test_an_extension_is_a_later_deadline_with_who_and_why_in_the_ledger(tide: Ebbtide) -> None:
    request = filed(tide, 1)
    assert tide.erase.status(request).deadline.startswith("2026-02-28")
    tried = tide.erase.extend(request, until=at(4, 30), reason=REASON, dry_run=True, as_of=at(2, 2))
    assert (tried.deadline[:10], tide.erase.status(request).deadline[:10]) == ("2026-04-30", "2026-02-28")
    done = tide.erase.extend(request, until=at(4, 30), reason=REASON, as_of=at(2, 2))
    assert (done.deadline, done.state) == ("2026-04-30T00:00:00.000000Z", "received")
    assert tide.erase.status(request).deadline == done.deadline
    ledger = open_ledger(tide.project)
    with ledger.reading() as log:
        entries = [json.loads(body) for _, _, body in log.rows(0, log.size) if body]
    (entry,) = [each for each in entries if each["kind"] == "request.moved" and each["request"] == request]
    assert (entry["deadline"], entry["state"]) == (done.deadline, "received")
    assert entry["actor"]
    assert entry["because"].startswith("hmac-sha256:")
    assert "Ada" not in json.dumps(entries)
    with ledger.database.reader() as state:
        assert state.get_request(request).note == REASON
    assert tide.ledger.audit().findings == ()


@pytest.mark.parametrize(
    ("law", "until", "now", "why"),
    [
        ("gdpr", at(5, 1), at(2, 2), "none after 2026-04-30"),
        ("gdpr", at(2, 28), at(2, 2), "cannot be extended"),
        ("gdpr", at(4, 1), at(3, 1), "overdue since 2026-02-28"),
        ("promise", at(12, 1), at(2, 2), "knows no extension"),
    ],
)
def test_what_no_law_allows_is_refused(tide: Ebbtide, law: str, until: datetime, now: datetime, why: str) -> None:
    request = filed(tide, 1000 + until.timetuple().tm_yday + now.timetuple().tm_yday, law)
    before = tide.erase.status(request)
    for dry_run in (True, False):
        with pytest.raises(RefusedError, match=why):
            tide.erase.extend(request, until=until, reason=REASON, dry_run=dry_run, as_of=now)
    assert tide.erase.status(request) == before


def test_it_needs_a_reason_and_a_request(tide: Ebbtide) -> None:
    with pytest.raises(InputError):
        tide.erase.extend(filed(tide, 2), until=at(4, 1), reason=" ", as_of=at(2, 2))
    with pytest.raises(InputError):
        tide.erase.extend("nobody", until=at(4, 1), reason=REASON, as_of=at(2, 2))


def test_the_command_says_the_new_deadline(tide: Ebbtide) -> None:
    request, root = filed(tide, 3), Path(tide.project.root)
    told = ("erase", "extend", request, "--until", "2026-04-01", "--reason", REASON, "--as-of", "2026-02-02")
    done = ebbtide(*told, "--json", cwd=root)
    assert (done.returncode, json.loads(done.stdout)["deadline"][:10]) == (0, "2026-04-01"), done.stderr
    assert ebbtide(*told, cwd=root).returncode == 3, "no later day than it has"


def test_where_nothing_tells_people_apart_nobody_is_filed_found_or_held(tide: Ebbtide) -> None:
    """No identity column anywhere: told with what to write, and no hold or request is half there."""
    root = Path(tide.project.root)
    aside = (root / "subjects.yml").rename(root / "subjects.aside")
    before = tide.erase.list()
    try:
        for asked in (
            lambda: tide.erase.request({"user_id": "1"}, law="gdpr", as_of=at(2, 2)),
            lambda: tide.erase.find(subject={"user_id": "1"}),
            lambda: tide.hold(owner="counsel", reason="a suit", subject={"user_id": "1"}, as_of=at(2, 2)),
        ):
            with pytest.raises(InputError, match="nothing tells people apart") as error:
                asked()
            assert "subjects.yml" in (error.value.hint or "")
    finally:
        aside.rename(root / "subjects.yml")
    assert (tide.erase.list(), tide.holds()) == (before, ())
