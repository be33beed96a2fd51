"""`python -m tests.app.run_notebook FILE FOLDER` runs a notebook's cells in FOLDER, on a session that was there before.

As Jupyter does it, cell by cell in one namespace, and each last expression is shown as HTML where it can be. Without
Jupyter: a kernel, its sockets and forty packages would run the same lines. Prints what it saw as JSON.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.app.notebook_session import prepare, seen, start_configured


def main(file: Path, folder: Path) -> dict[str, Any]:
    spark = start_configured(folder)
    prepare(spark)
    seen(spark)  # reading is not without effect: Spark remembers settings that somebody asked for
    os.chdir(folder)
    cells = json.loads(file.read_text())["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    shown: list[str] = []
    before: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        text = "".join(cell["source"])
        if "Ebbtide(" in text:
            before = seen(spark)  # what the notebook itself sets is set by then
        shown.append(_run(text, names))
    swept, left = names["swept"], names["left"]
    return {
        "before": before,
        "after": seen(spark),
        "shown": shown,
        "is_same": names["spark"] is spark,
        "states": sorted({each.state for each in swept.objects}),
        "left": [str(day) for day in left],
        "days": [str(day) for day in names["days"]],
        "rescued": names["rescued"],
    }


def _run(text: str, names: dict[str, Any]) -> str:
    tree = ast.parse(text)
    last = tree.body[-1] if tree.body else None
    shown = last.value if isinstance(last, ast.Expr) else None
    tree.body = tree.body if shown is None else tree.body[:-1]
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - our own notebook
        if shown is not None:
            value = eval(compile(ast.Expression(shown), "<cell>", "eval"), names)  # noqa: S307
    html = getattr(value, "_repr_html_", lambda: None)()  # a DataFrame has one that answers None
    return str(html) if html is not None else printed.getvalue() + ("" if value is None else repr(value))


if __name__ == "__main__":
    told = json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2])))
    print(told)  # noqa: T201 - what it is for
