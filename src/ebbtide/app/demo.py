"""`ebbtide demo`: a small real lake, and a walk through what Ebbtide makes of it."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.results.lake import History, Table
from ebbtide.app.results.shown import ResultRows
from ebbtide.errors import RefusedError
from ebbtide.model.ids import object_name
from ebbtide.private import writing

_MARKER = ".ebbtide-demo"


class Story(Protocol):
    """Who tells it."""

    def chapter(self, title: str) -> None: ...

    def step(self, text: str) -> None: ...

    def tables(self, rows: ResultRows[Table]) -> None: ...

    def history(self, found: History) -> None: ...


def run_demo(folder: Path, *, tell: Story) -> None:
    """Build the lake anew in `folder`, walk through it, and leave it for exploring."""
    _make_room(folder)
    with writing(folder, hint="name a folder that can be written", asked=True):
        folder.mkdir(parents=True)
        (folder / _MARKER).write_text("made by `ebbtide demo`, which may remove this folder\n")
    from ebbtide.demo.lake import PROJECT

    project = folder / "ebbtide.yml"
    project.write_text(PROJECT)
    tide = Ebbtide(project)
    tell.chapter("1. A lake in four formats")
    _build(tide, tell)
    tell.chapter("2. One inventory of all of it")
    report = tide.scan()
    tell.step(f"{report.datasets} datasets read, {len(report.errors)} errors")
    again = tide.scan()
    tell.step(f"a second scan reads only what changed: {len(again.read)} datasets")
    tell.tables(tide.tables())
    tell.chapter("3. The history of one table, branch by branch")
    tell.history(tide.history("lake.raw.payment_events"))
    tell.step("the reload began a new view on main; the audit branch still needs the days before it")
    tell.chapter("4. Labels, the gdpr pack, and what its checks find")
    _govern(tide, tell)
    tell.chapter("5. Mark, a second thought, grace, sweep")
    _retain(tide, tell)
    tell.chapter("Go on by yourself")
    tell.step(f"ebbtide tables --project {folder}")
    tell.step(f"ebbtide history stream.risk.alerts --project {folder}")
    tell.step(f"ebbtide check --project {folder}")


def _make_room(folder: Path) -> None:
    if not folder.exists():
        return
    if not (folder / _MARKER).exists():
        raise RefusedError(f"{folder} is already there and no demo", hint="name another folder")
    shutil.rmtree(folder)


def _govern(tide: Ebbtide, tell: Story) -> None:
    from ebbtide.demo.lake import GOVERNED
    from ebbtide.governance.packs import install

    root = tide.project.root
    install("gdpr", root)
    for name, text in GOVERNED.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    derived = tide.explain_labels("lake.app.daily_user_events")
    tell.step(f"lake.app.daily_user_events is {', '.join(derived.labels)}: its uid comes from a PII column")
    for check in tide.check():
        if not check.passed:
            said = "fails" if check.severity == "error" else "warns"
            tell.step(f"check {check.name} {said} with {len(check.rows)} rows: {check.description}")
    for row in tide.report("partitions_to_delete"):
        tell.step(f"past its {row['keep']}: {row['table_id']} {row['partition']} ({row['class']})")


def _retain(tide: Ebbtide, tell: Story) -> None:
    """By a simulated clock: marked today, one partition rescued, swept in eight days and in sixteen."""
    from ebbtide.app.mark import run_mark
    from ebbtide.app.sweep import run_sweep
    from ebbtide.app.unmark import unmark_object

    today = datetime.now(UTC)
    marked = run_mark(tide.project, as_of=today)
    partitions = [key for key in marked.marked if key.target == "partitions"]
    tell.step(f"{len(marked.marked)} objects are scheduled for deletion, {len(partitions)} of them partitions")
    rescued = next(key for key in partitions if key.dataset == "events.web.clicks")
    named = object_name(rescued.dataset, rescued.target, rescued.object)
    unmark_object(tide.project, named, reason="a dispute is open", as_of=today)
    tell.step(f"somebody needs {named}: unmarked, and it stays so")
    for days in (8, 16):
        swept = run_sweep(tide.project, as_of=today + timedelta(days=days))
        states = Counter(result.state for result in swept.results)
        told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        tell.step(f"sweep after {days} days: {told}; {swept.removed_files} files, {swept.removed_bytes:,} bytes gone")
    tide.scan()
    tell.history(tide.history("lake.app.daily_user_events"))


def _build(tide: Ebbtide, tell: Story) -> None:
    from ebbtide.app.scan import start_session
    from ebbtide.demo.lake import steps

    spark = start_session(tide.project)
    for table, build in steps(spark, tide.project.root, datetime.now(UTC).date()):
        tell.step(table)
        build()
