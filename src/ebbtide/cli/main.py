"""The entry point. It stays light: what a verb needs is imported when the verb runs."""

from __future__ import annotations

import gc
import os
import sys
import traceback


def run() -> None:
    if sys.argv[1:3] == ["ledger", "check"]:  # an auditor's check starts in a blink: no typer, no Spark, no database
        from ebbtide.cli.ledger_check import main

        sys.exit(main(sys.argv[3:]))
    from ebbtide.no_pandas import hide_pandas

    hide_pandas()
    gc.set_threshold(300_000)  # what is loaded stays: looking through it again and again is a tenth of the start
    from ebbtide.cli.commands import app
    from ebbtide.cli.render import complain
    from ebbtide.cli.running import stoppable
    from ebbtide.errors import Cancelled, EbbtideError, keep_trace, kind_of

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


if __name__ == "__main__":
    run()
