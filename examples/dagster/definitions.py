"""Ebbtide every night, for Dagster: retention at two, erasure at five. Change both paths.

Two jobs, hours apart: both want the project's lease, and retention that could not read a table keeps nobody from being
erased before the deadline. A job fails where Ebbtide's exit code is not 0; the next night goes on from there.
"""

import subprocess

import dagster

EBBTIDE = "/opt/ebbtide/bin/ebbtide"
PROJECT = "/srv/acme"


def nightly(name: str, verb: list[str], schedule: str) -> dagster.ScheduleDefinition:
    @dagster.op(name=f"{name}_op")
    def act(context: dagster.OpExecutionContext) -> None:
        command = [EBBTIDE, "--log-format", "json", *verb, "--yes", "--project", PROJECT]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
            try:
                for line in running.stdout:
                    context.log.info(line.rstrip())
            finally:
                # Whoever ends the job ends Ebbtide, which stops at a boundary with nothing half done.
                if running.poll() is None:
                    running.terminate()
        if running.returncode:
            raise dagster.Failure(f"{' '.join(verb)} ended with {running.returncode}")

    @dagster.job(name=name)
    def job() -> None:
        act()

    return dagster.ScheduleDefinition(job=job, cron_schedule=schedule, execution_timezone="UTC")


definitions = dagster.Definitions(
    schedules=[nightly("ebbtide_run", ["run"], "0 2 * * *"), nightly("ebbtide_erase", ["erase", "run"], "0 5 * * *")]
)
