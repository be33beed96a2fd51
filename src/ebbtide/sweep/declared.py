"""What the project file says that lifts a protection, in the ledger before anything is done under it (spec §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from ebbtide.config.project import Ignored
from ebbtide.ledger.entries import CatalogDeclared, DatasetIgnored, salted
from ebbtide.ledger.ledger import Step
from ebbtide.model.dataset import Catalog
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import Declaration, DeclarationKind

_Said = tuple[DeclarationKind, str, str, datetime | None]


def record_declarations(
    step: Step[SweepWriter],
    catalogs: Mapping[str, Catalog],
    ignored: Iterable[Ignored],
    *,
    actor: str,
    as_of: datetime,
    at: datetime,
) -> None:
    """Say once what counts at `as_of` and is not in the ledger yet, and what the file no longer says.

    `actor` is a name. One that ran out is over by what its entry says: nobody took it back.
    """
    says: dict[_Said, bool] = {
        (DeclarationKind.CATALOG, name, "", None): True for name, c in sorted(catalogs.items()) if not c.shares_files
    }
    says |= {(DeclarationKind.DATASET, i.dataset, i.reason, i.until): i.holds(as_of) for i in ignored}
    known = {(one.kind, one.name, one.reason, one.until): one for one in step.state.declarations()}
    for said, one in known.items():
        if said not in says:
            who = step.state.actor(actor)
            step.state.end_declaration(one.id, actor=who, at=at)
            step.append(replace(_entry(one, at), actor=who, ended=True))
    for said, counts in says.items():
        if counts and said not in known:
            kind, name, reason, until = said
            who = step.state.actor(actor)
            step.append(_entry(step.state.declare(kind, name, reason=reason, until=until, actor=who, at=at), at))


def _entry(one: Declaration, at: datetime) -> CatalogDeclared | DatasetIgnored:
    if one.kind is DeclarationKind.CATALOG:
        return CatalogDeclared(at=at, declaration=one.id, catalog=one.name, actor=one.actor)
    return DatasetIgnored(
        at=at, declaration=one.id, dataset=one.name, actor=one.actor, reason=salted(one.salt, one.reason),
        until=one.until,
    )  # fmt: skip
