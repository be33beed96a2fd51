"""Ebbtide every night, for Airflow 3: retention at two, erasure at five. Change both paths.

Two DAGs and not two tasks of one: both want the project's lease, and retention that could not read a table keeps nobody
from being erased before the deadline. A task fails where Ebbtide's exit code is not 0; the next night goes on.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

EBBTIDE = "/opt/ebbtide/bin/ebbtide"
PROJECT = "/srv/acme"

for name, verb, schedule in (("ebbtide_run", "run", "0 2 * * *"), ("ebbtide_erase", "erase run", "0 5 * * *")):
    with DAG(
        name, schedule=schedule, start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False, max_active_runs=1
    ) as dag:
        # `exec`: who clears a task ends Ebbtide itself, which stops at a boundary with nothing half done.
        BashOperator(
            task_id=name,
            bash_command=f"exec {shlex.quote(EBBTIDE)} --log-format json {verb} --yes --project {shlex.quote(PROJECT)}",
        )
    globals()[name] = dag
