"""Lock both profiles: requirements with hashes and without any registry's address."""

from __future__ import annotations

from bootstrap import PROFILES, find_uv, run

for profile in PROFILES:
    options = ["--quiet", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"]
    options += ["--no-header", "--extra", "java", "--extra", "s3", "--extra", "suggest", "--group", "dev"]
    inputs = ["pyproject.toml", f"requirements/{profile}.in"]
    run(find_uv(), "pip", "compile", *options, *inputs, "--output-file", f"requirements/{profile}.txt")
