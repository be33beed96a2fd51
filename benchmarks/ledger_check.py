"""The start of `ledger check` against `python -c 'import cryptography'`, each a process of its own, in turns.

*Start* is what passes before the command looks at a file: interpreter, door, arguments read (it is asked for its help).
A whole check loads Ed25519 on top of that, which `import cryptography` does not; it is measured too, for the second
that the spec allows. Nothing here needs Spark or a database.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import ebbtide
from benchmarks.results import Result
from ebbtide.ledger import tree
from ebbtide.ledger.certificate import build
from ebbtide.ledger.commitment import commit, new_key
from ebbtide.ledger.leaf import CERTIFICATE_KEY, CERTIFIED, VERIFIED, LoggedEntry, listing
from ebbtide.ledger.note import Checkpoint, Signer, sign
from ebbtide.ledger.proof import TlogProof
from ebbtide.model.canonical import dumps_leaf

RUNS = 41
AT_MOST_PERCENT = 300
AT_MOST_MILLISECONDS = 1_000
_COMMAND = "import sys; from ebbtide.cli.ledger_check import main; sys.exit(main(sys.argv[1:]))"


def main(folder: Path) -> Iterator[Result]:
    """The start as percent of its bar, and a whole check in milliseconds."""
    certificate, key = folder / "certificate.json", folder / "ledger.pub"
    _issue(certificate, key)
    commands = {
        "baseline": ["import cryptography"],
        "start": [_COMMAND, "--help"],
        "whole": [_COMMAND, str(certificate), "--key", str(key)],
    }
    # In turns, so that whatever else the machine does falls on all of them alike.
    times = [{name: _seconds(arguments) for name, arguments in commands.items()} for _ in range(RUNS)]
    median = {name: statistics.median(run[name] for run in times) for name in commands}
    percent = {name: 100 * median[name] / median["baseline"] for name in commands}
    yield Result.limit("start of `ledger check`, % of `import cryptography`", percent["start"], AT_MOST_PERCENT)
    yield Result.limit(
        f"a whole `ledger check`, ms ({percent['whole']:.0f} % of `import cryptography`)",
        1_000 * median["whole"],
        AT_MOST_MILLISECONDS,
    )


def _issue(certificate: Path, key: Path) -> None:
    """A small certificate: three entries are the whole ledger."""
    ledger, signer = Signer.generate("example.org/acme"), Signer.generate("example.org/acme/certificates")
    common = {"v": 1, "at": "2026-01-31T06:30:00.000000Z"}
    about = {"request": "r-1", "commitments": [commit(new_key(), "user_id", "8841302")]}
    search = {"place": "lake.app.users", "scanner": "verify/1", "inventory": "sha256:0", "found": 0}
    bodies = [
        {**common, "kind": CERTIFICATE_KEY, "key": signer.key.encode()},
        {**common, "kind": VERIFIED, **about, **search},
    ]
    entries = [LoggedEntry(index, dumps_leaf(body)) for index, body in enumerate(bodies)]
    last = {**common, "kind": CERTIFIED, **about, "state": "certified", "entries": listing(entries)}
    entries.append(LoggedEntry(len(entries), dumps_leaf(last)))
    hashes: dict[tuple[int, int], bytes] = {}
    for level, first, run in tree.append(0, [entry.hash for entry in entries], lambda *at: hashes[at]):
        hashes.update({(level, first + offset): item for offset, item in enumerate(run)})
    size, index = len(entries), entries[-1].leaf_index
    head = Checkpoint(ledger.key.name, size, tree.root(size, lambda *at: hashes[at]))
    proof = TlogProof(index, tree.inclusion_proof(index, size, lambda *at: hashes[at]), sign(head.text(), [ledger]))
    certificate.write_bytes(build(entries, proof, signer).encode())
    key.write_text(f"{ledger.key.encode()}\n")


def _seconds(arguments: list[str]) -> float:
    environment = {**os.environ, "PYTHONPATH": str(Path(ebbtide.__file__).parents[1])}
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for result in main(Path(scratch)):
            print(result.line())
