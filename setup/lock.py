"""Lock all environments: requirements with hashes and without any registry's address."""

from __future__ import annotations

from bootstrap import PROFILES, TOOLS, find_uv, run

OPTIONS = ["--quiet", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"]
OURS = ["--extra", "s3", "--extra", "suggest", "--group", "dev", "pyproject.toml"]

for profile in PROFILES:
    inputs = [f"requirements/{profile}.in", *([] if profile in TOOLS else OURS)]
    output = ["--no-header", "--output-file", f"requirements/{profile}.txt"]
    # A profile's PySpark wins over the default one's, which is what a plain installation of the package gets.
    pinned = [] if profile in TOOLS else ["--override", f"requirements/{profile}.in"]
    run(find_uv(), "pip", "compile", *OPTIONS, *pinned, *inputs, *output)
