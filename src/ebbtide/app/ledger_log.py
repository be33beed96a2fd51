"""`ebbtide ledger log`: what was done, narrowed to what an auditor asks for, and never handed out unchecked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ebbtide.app.ledger import open_ledger
from ebbtide.app.state import open_state
from ebbtide.config import Project
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.entries import KINDS
from ebbtide.ledger.frontier import NOTHING
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.tree import leaf_hash
from ebbtide.model.times import parse_time

_PAGE = 1000
_IDS = ("mark", "unmark", "hold", "act", "declaration", "condemned")
"""What a later entry names an earlier one by: the earlier one says which dataset and which request it is about."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """What somebody wants to see; nothing is all of it."""

    dataset: str | None = None
    request: str | None = None
    kinds: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(
        cls,
        *,
        dataset: str | None = None,
        request: str | None = None,
        kinds: Sequence[str] = (),
        since: str | None = None,
        until: str | None = None,
    ) -> LogFilter:
        """From what people write. A kind may be the part before the dot: `mark` is `mark.made` and `mark.sent-back`."""
        known = sorted({*KINDS, *(kind.partition(".")[0] for kind in KINDS)})
        for kind in kinds:
            if kind not in known:
                raise InputError(f"no entries of kind {kind!r}", hint=nearest(kind, known))
        times = [None if text is None else parse_time(text) for text in (since, until)]
        return cls(dataset, request, kinds, *times)


@dataclass(slots=True)
class _IdsTold:
    """Which datasets and requests the ids of earlier entries stand for."""

    datasets: dict[str, str] = field(default_factory=dict)
    requests: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def about(self, says: Mapping[str, Any]) -> tuple[set[str], set[str]]:
        """The datasets and requests that an entry is about, by itself or by what it names; kept for later ones."""
        ids = [says[name] for name in _IDS if name in says] + list(says.get("marks", ()))
        datasets = {self.datasets[id_] for id_ in ids if id_ in self.datasets}
        requests = {name for id_ in ids for name in self.requests.get(id_, ())} | set(says.get("requests", ()))
        datasets |= {says["dataset"]} if says.get("dataset") else set()
        requests |= {says["request"]} if says.get("request") else set()
        for name in _IDS:
            if name in says:
                self.requests[says[name]] = tuple(sorted(requests))
                if len(datasets) == 1:
                    self.datasets[says[name]] = next(iter(datasets))
        return datasets, requests


def read_log(project: Project, asked: LogFilter) -> Iterator[dict[str, Any]]:
    """The entries that were asked for, oldest first. Every row is held against its hash, and all hashes against what
    was signed, before the first one is handed out; a body that retention removed says nothing any more.

    A dataset of which neither an entry, nor the state, nor the inventory has ever heard is an `InputError`.
    """
    heard_of: set[str] = set()
    is_whole = True
    with open_ledger(project).verified() as log:
        log.trust()
        _check(log)
        told = _IdsTold()
        for index, _, body in log.rows(0, log.size):
            says = {} if body is None else json.loads(body)
            datasets, requests = told.about(says)
            heard_of |= datasets
            is_whole = is_whole and body is not None
            if body is None and asked != LogFilter():
                continue
            if _is_asked(asked, says, datasets, requests):
                yield {"index": index, "kind": says.pop("kind", None), "at": says.pop("at", None), "says": says}
    if asked.dataset is not None and asked.dataset not in heard_of and is_whole:
        known = heard_of | _known(project)
        if asked.dataset not in known:
            raise InputError(f"no dataset {asked.dataset!r}", hint=nearest(asked.dataset, list(known)))


def _known(project: Project) -> set[str]:
    """Of what the state and the inventory speak, also where a table is gone and its marks are closed."""
    from ebbtide.inventory import current as currents  # late: who names no table, or a right one, needs none of it

    with open_state(project).reader() as state:
        found = {mark.key.dataset for mark in state.marks(only_open=False)}
        found |= {pin.dataset for pin in state.unmarks()} | {folder.dataset for folder in state.condemned()}
        found |= {hold.dataset for hold in state.holds(only_active=False) if hold.dataset is not None}
    current = currents.load(project.inventory)
    listed = set() if current is None else {*current.entries, *(former.table_id for former in current.former)}
    return found | listed


def _check(log: LedgerLog) -> None:
    """All leaves make the tree that was appended, and every body is the leaf that its row says."""
    frontier, hashes = NOTHING, []
    for index, claimed, body in log.rows(0, log.size):
        if body is not None and leaf_hash(body) != claimed:
            hint = "run `ebbtide ledger audit`"
            raise ProofError(f"body of entry {index}", expected=claimed.hex(), found=leaf_hash(body).hex(), hint=hint)
        hashes.append(claimed)
        if len(hashes) == _PAGE:
            frontier, hashes = frontier.append(hashes)[0], []
    frontier = frontier.append(hashes)[0] if hashes else frontier
    if (frontier.size, frontier.root) != (log.frontier().size, log.frontier().root):
        raise ProofError(
            "the ledger's entries", expected=f"root {log.frontier().root.hex()}", found=frontier.root.hex(),
            hint="run `ebbtide ledger audit`",
        )  # fmt: skip


def _is_asked(asked: LogFilter, says: Mapping[str, Any], datasets: set[str], requests: set[str]) -> bool:
    kind, at = says.get("kind", ""), says.get("at")
    when = None if at is None else parse_time(at)
    return (
        (asked.dataset is None or asked.dataset in datasets)
        and (asked.request is None or asked.request in requests)
        and (not asked.kinds or kind in asked.kinds or kind.partition(".")[0] in asked.kinds)
        and (asked.since is None or (when is not None and when >= asked.since))
        and (asked.until is None or (when is not None and when < asked.until))
    )
