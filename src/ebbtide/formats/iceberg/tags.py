"""Tags on versions that cannot be rewritten under their ids: a branch is made there and erased, and the tag is put on
its head. The version of before then ends like any other.

Tag and branch change by one commit, which is refused where somebody moved the tag meanwhile. A branch that a run left
which died is removed by the next: what it had is a version that nobody is in, or that ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.formats.conflicts import retry_on_conflict
from ebbtide.formats.erasing import Erasure, Fate
from ebbtide.formats.iceberg.heads import Heads
from ebbtide.formats.iceberg.java import CONFLICTS, IcebergJavaTable
from ebbtide.formats.iceberg.survey import Survey, fates, tags_of
from ebbtide.formats.iceberg.traces import Traces
from ebbtide.model.dataset import Catalog

_MADE = "ebbtide_erasing_"
"""So begin the names of such branches."""


@dataclass(frozen=True, slots=True)
class Tags:
    table: IcebergJavaTable
    erasure: Erasure
    catalog: Catalog
    heads: Heads

    def clear(self) -> None:
        """Remove what a run left that died."""
        for name in sorted(each for each in self.table.refresh().branches if each.startswith(_MADE)):
            retry_on_conflict(str(self.table.found.id), CONFLICTS, lambda name=name: self._remove(name))  # type: ignore[misc]

    def rewrite(self) -> None:
        """Move every tag of a version that would otherwise end with it."""
        files = self.table.refresh().files
        survey = Survey(files, Traces(self.erasure.people, files.table))
        holding = survey.holding(self.heads.known.hits)
        found = fates(survey, holding, self.erasure, self.catalog)
        for name, id_ in sorted(tags_of(files.table).items()):
            if found[id_].fate is Fate.EXPIRES:
                subject = f"{self.table.found.id}, tag {name}"
                retry_on_conflict(subject, CONFLICTS, lambda name=name, id_=id_: self._move(name, id_))  # type: ignore[misc]

    def _move(self, tag: str, old: int) -> None:
        base, branch = self.table.refresh(), f"{_MADE}{tag}"
        if branch not in base.branches:
            self.table.set_branch(base, branch, old)
        self.heads.rewrite_branch(branch)
        base = self.table.refresh()
        new = base.branches[branch]
        if new != old and tags_of(base.files.table).get(tag) == old:
            self.table.move_tag(base, tag, new, without=branch)
        else:
            self.table.remove_branch(base, branch)

    def _remove(self, branch: str) -> None:
        base = self.table.refresh()
        if branch in base.branches:
            self.table.remove_branch(base, branch)
