"""A command that starts no session goes without pandas.

pyarrow asks of the first value that it converts whether it is one of pandas', and loads pandas to find out: that takes
several times as long as loading pyarrow. It goes without where pandas is not installed, so a command's process says
that it is not, until something needs it. Only the command line does this: in a process of others pandas is theirs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder
else:
    MetaPathFinder = object  # what it adds is nothing, and takes longer to load than the rest of this file


class _Hidden(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden (ebbtide.no_pandas)", name=fullname)


_HIDDEN = _Hidden()


def hide_pandas() -> None:
    """From now on pandas is not installed, for all that this process can see."""
    if "pandas" not in sys.modules and _HIDDEN not in sys.meta_path:
        sys.meta_path.insert(0, _HIDDEN)


def show_pandas() -> None:
    """It is again. A pyarrow that looked for it in vain looks once more: otherwise a Series were a list to it."""
    if _HIDDEN in sys.meta_path:
        sys.meta_path.remove(_HIDDEN)
        if arrow := sys.modules.get("pyarrow"):
            _ = arrow.lib._pandas_api.pd
