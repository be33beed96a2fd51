"""The entry point. It stays light: what a verb needs is imported when the verb runs."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import traceback
from collections.abc import Collection
from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def main() -> None:
    """What `ebbtide` is to a shell: a process of its own, which ends with the verb."""
    try:
        run()
    except SystemExit as ended:
        _leave(ended.code)
        raise


def run() -> None:
    if sys.argv[1:3] == ["ledger", "check"]:  # an auditor's check starts in a blink: no typer, no Spark, no database
        from ebbtide.cli import ledger_check

        sys.exit(ledger_check.main(sys.argv[3:]))
    from ebbtide.no_pandas import hide_pandas

    hide_pandas()
    gc.set_threshold(300_000)  # what is loaded stays: looking through it again and again is a tenth of the start
    from ebbtide.cli import commands
    from ebbtide.cli.render import complain
    from ebbtide.cli.running import stoppable
    from ebbtide.errors import Cancelled, EbbtideError, keep_trace, kind_of

    app = _only(commands.app, sys.argv[1:])
    try:
        with stoppable():
            app(prog_name="ebbtide", standalone_mode=True)
    except Cancelled as cancelled:
        complain(f"{cancelled.message}: {cancelled.hint}", None)
        sys.exit(cancelled.exit_code)
    except EbbtideError as error:
        complain(error.message, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        complain("interrupted", None)
        sys.exit(130)
    except Exception as error:
        if os.environ.get("EBBTIDE_DEBUG"):
            traceback.print_exc()
        # Its words may quote what was read.
        keep_trace(error)
        complain(f"internal error: {kind_of(error)}", "--log-file FILE keeps where; please report it")
        sys.exit(4)


def _leave(code: object) -> None:
    """End at once, with all that is to be done at the end. To take apart what was loaded would be a sixth of a plan."""
    if not isinstance(code, int | None) or "py4j" in sys.modules or threading.active_count() > 1:
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # nobody reads it any more: Python knows what to say
        return
    os._exit(code or 0)


def _only(app: typer.Typer, words: Collection[str]) -> typer.Typer:
    """Those verbs alone that the command may name. To make parsers for all others takes as long as to load them."""
    verbs = [each for each in app.registered_commands if (each.name or getattr(each.callback, "__name__", "")) in words]
    groups = [each for each in app.registered_groups if each.name in words]
    if "--help" in words or not (verbs or groups):
        return app
    found = copy(app)
    found.registered_commands, found.registered_groups = verbs, groups
    return found


if __name__ == "__main__":
    main()
