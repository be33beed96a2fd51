"""What is said of tables directly, wherever it is said: table YAML, table properties, dbt's meta (spec §3, "Labels").

A label in YAML was checked when the file was read. One in a property or in dbt's meta is checked here, and becomes a
problem where it is wrong: a typo in one table's properties must not keep every other table from its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ebbtide.config import yaml
from ebbtide.config.classifiers import ClassifierKind, Classifiers
from ebbtide.config.label_properties import column_of, label_properties
from ebbtide.config.tables import Reclassify, TableSettings
from ebbtide.errors import InputError
from ebbtide.lineage.values import ColumnRef, LineageProblem, ProblemKind


@dataclass(slots=True)
class DeclaredLabels:
    """Labels with where each is said, reclassifications, schedules and time grains."""

    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    columns: dict[ColumnRef, dict[str, str]] = field(default_factory=dict)
    reclassify: dict[ColumnRef, Reclassify] = field(default_factory=dict)
    schedules: dict[str, str] = field(default_factory=dict)
    grains: dict[str, str] = field(default_factory=dict)
    problems: list[LineageProblem] = field(default_factory=list)


class Collector:
    """Gathers what is declared. `columns` has the columns of every table that a catalog or lineage knows."""

    def __init__(self, classifiers: Classifiers, columns: Mapping[str, Sequence[str]]) -> None:
        self._classifiers, self._columns = classifiers, columns
        self.declared = DeclaredLabels()

    def settings(self, tables: Mapping[str, TableSettings]) -> None:
        """Everything of `tables/*.yml`. A table or column that is not there is a problem, with the nearest name."""
        for table_id, table in tables.items():
            if table_id not in self._columns:
                self.no_such_table(table_id, table.where, yaml.nearest(table_id, list(self._columns)))
            for label in table.labels:
                self.declared.tables.setdefault(table_id, {})[label] = table.where
            for name, labels in table.columns.items():
                ref = self._column(table_id, name, table.where)
                for label in labels:
                    self.declared.columns.setdefault(ref, {})[label] = table.where
            for name, change in table.reclassify.items():
                self.declared.reclassify[self._column(table_id, name, table.where)] = change
            if table.schedule:
                self.declared.schedules[table_id] = table.schedule
            if table.time_grain:
                self.declared.grains[table_id] = table.time_grain

    def no_such_table(self, table_id: str, where: str, hint: str) -> None:
        self._complain(where, table_id, f"no catalog has {table_id}", hint)

    def properties(self, table_id: str, properties: Mapping[str, str]) -> None:
        """`ebbtide.labels` and `ebbtide.column.<name>.labels`, each a comma-separated list."""
        for key, text in label_properties(properties).items():
            labels = [label.strip() for label in text.split(",") if label.strip()]
            where = f"{table_id}: property {key}"
            column = column_of(key)
            if column is None:
                self.table_labels(table_id, labels, where)
            else:
                self.column_labels(table_id, column, labels, where)

    def table_labels(self, table_id: str, labels: Sequence[str], where: str) -> None:
        for label in labels:
            if self._is_right(label, ClassifierKind.TABLE, table_id, where):
                self.declared.tables.setdefault(table_id, {}).setdefault(label, where)

    def column_labels(self, table_id: str, name: str, labels: Sequence[str], where: str) -> None:
        ref = self._column(table_id, name, where)
        for label in labels:
            if self._is_right(label, ClassifierKind.COLUMN, table_id, where):
                self.declared.columns.setdefault(ref, {}).setdefault(label, where)

    def _is_right(self, label: str, kind: ClassifierKind, table_id: str, where: str) -> bool:
        try:
            self._classifiers.check(label, kind)
        except InputError as error:
            self._complain(where, table_id, error.message, error.hint)
            return False
        return True

    def _column(self, table_id: str, name: str, where: str) -> ColumnRef:
        """The column as its table spells it. One that is not there is a problem, and its labels stay all the same."""
        known = self._columns.get(table_id, ())
        if name in known:
            return ColumnRef(table_id, name)
        same = [other for other in known if other.lower() == name.lower()]
        if len(same) == 1:
            return ColumnRef(table_id, same[0])
        if known:
            hint = yaml.nearest(name, list(known))
            self._complain(where, table_id, f"{table_id} has no column {name!r}", hint)
        return ColumnRef(table_id, name)

    def _complain(self, where: str, subject: str, message: str, hint: str | None) -> None:
        self.declared.problems.append(LineageProblem(ProblemKind.LABEL, where, subject, message, hint))
