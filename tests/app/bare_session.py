"""A session without any format: `python -m tests.app.bare_session FOLDER` prints what Ebbtide says to it as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.errors import SetupError
from tests.app.notebook_session import start


def main(folder: Path) -> dict[str, Any]:
    spark = start(folder, **{"spark.sql.extensions": "", "spark.jars.packages": ""})
    told = [_refused(folder, spark)]
    spark.stop()
    return {"told": [*told, _refused(folder, spark)]}


def _refused(folder: Path, spark: Any) -> list[str | None]:
    try:
        Ebbtide(folder / "ebbtide.yml", spark=spark)
    except SetupError as error:
        return [error.message, error.hint]
    return []


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))  # noqa: T201 - what it is for
