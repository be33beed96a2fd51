"""How long a cold table keeps its rows by the lake's own policies: a chunk has to be dropped before that.

Else rows leave the lake while they are here: digests differ for good, and the gate never opens. What is asked is what
names and formats say; a policy that takes the table by a label or a property is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from ebbtide.config import Project
from ebbtide.config.hottier import HotTable
from ebbtide.config.policies import Policy, load_policies
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration, as_hours

_SHORTEST_HOURS = {"m": 28 * 24, "y": 365 * 24}
_ASKED = """
SELECT {}
FROM (SELECT ? AS table_id, 'iceberg' AS format, NULL::VARCHAR[] AS labels, NULL::MAP(VARCHAR, VARCHAR) AS properties)
"""


def refuse_outlived(project: Project, table: HotTable) -> None:
    """An `InputError` where the lake lets go of rows before their chunk is dropped."""
    if table.cold is None or table.drop_after is None:
        return
    for policy, target, age in _retention(project, table.cold):
        if as_hours(table.drop_after) + as_hours(table.chunk) > _least(age):
            raise InputError(
                f"policy {policy!r} removes {target} of {table.cold} after {age}, and chunks of {table.chunk} are "
                f"dropped after {table.drop_after} only",
                where=table.where,
                hint="let drop_after and a chunk's length be within what the lake keeps, or exclude the cold table",
            )


def _least(age: Duration) -> int:
    return age.count * _SHORTEST_HOURS[age.unit] if age.unit in _SHORTEST_HOURS else as_hours(age)


def _retention(project: Project, cold: str) -> Iterator[tuple[str, str, Duration]]:
    """Of each target that takes rows by their age, the first policy that has it and selects the table."""
    seen: set[str] = set()
    for policy in load_policies(project.root, unsafe=True).policies:
        ages = {
            target: asked.older_than
            for target, asked in (
                ("transactions", policy.transactions), ("partitions", policy.partitions), ("rows", policy.rows),
                ("tables", policy.tables),
            )
            if asked is not None and target not in seen
        }  # fmt: skip
        if ages and _selects(policy, cold):
            seen |= ages.keys()
            yield from ((policy.name, target, age) for target, age in ages.items() if isinstance(age, Duration))


def _selects(policy: Policy, cold: str) -> bool:
    from ebbtide.kernel.engine import connection
    from ebbtide.plan.select import selects

    wanted, values = selects(policy.select)
    with connection() as engine:
        row = engine.execute(_ASKED.format(wanted), [*values, cold]).fetchone()
    return row is not None and bool(row[0])
