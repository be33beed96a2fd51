"""One spelling for one place: every comparison of paths goes through here (hazards 1, 2, 4, 5).

A normalised path is a URI with scheme, one authority spelling, no empty or dot segments and no trailing slash.
Percent signs are left alone: whether a path is encoded is known only to the format that wrote it.
"""

from __future__ import annotations

import re

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(.*)$", re.DOTALL)
# Several connectors name one store. The left spelling is what is compared, never what is opened.
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs", "gcs": "gs"}


def normalise(path: str) -> str:
    """The one spelling of a path: `/a//b/`, `file:/a/b` and `file:///a/b` are all `file:///a/b`."""
    match = _SCHEME.match(path)
    scheme, rest = (match.group(1).lower(), match.group(2)) if match else ("file", path)
    scheme = _SAME_STORE.get(scheme, scheme)
    authority = ""
    if rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
        if scheme == "file" and authority == "localhost":
            authority = ""
    segments: list[str] = []
    for segment in rest.split("/"):
        if segment == "..":
            if segments:
                segments.pop()
        elif segment not in ("", "."):
            segments.append(segment)
    return f"{scheme}://{authority}/{'/'.join(segments)}"


def is_inside(path: str, folder: str) -> bool:
    """Whether a normalised path is the folder or lies in it. A sibling `/t_2` is not inside `/t`."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def local_path(path: str) -> str | None:
    """The plain path of a local file, or None where it is no local file."""
    uri = normalise(path)
    return uri.removeprefix("file://") if uri.startswith("file:///") else None
