"""A search of storage for people, against reading the same bytes and searching nothing, and against `grep`.

Sessions' start is left out. The files are read before anything counts, so that all find them in memory; what takes
turns is timed in rounds, and the middle one counts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.results import Result
from ebbtide.run import RunContext
from ebbtide.spark.session import session
from ebbtide.verify.needles import Needle, byte_forms, is_short
from ebbtide.verify.search import SearchPlace, SearchReport, search

CORES = 2
_FILE = 64 << 20


def main(root: Path) -> Iterator[Result]:
    return measure(root, size=4 << 30, rounds=3)


def smoke(root: Path) -> Iterator[Result]:
    return measure(root, size=256 << 20, rounds=3)


def people(count: int) -> list[Needle]:
    """Each with a number and an address, none of which stands in any file."""
    made = []
    for n in range(count):
        person, types = f"p{n}", frozenset({"bigint", "string"})
        made.append(Needle(person, "user_id", str(4 * 10**18 + n * 7_919_191_919), types))
        made.append(Needle(person, "email", f"absent{n * 7919:07}@example.com", frozenset({"string"})))
    return made


def build(folder: Path, size: int) -> int:
    """Parquet as an app's events have it, in files of one size, and some metadata. The bytes on disk."""
    folder.mkdir(parents=True)
    written, number = 0, 0
    while written < size:
        path = folder / f"part-{number:05}.parquet"
        _write(path, min(_FILE, size - written), number)
        written += path.stat().st_size
        said = json.dumps({"add": {"path": path.name, "size": path.stat().st_size}})
        path.with_suffix(".json").write_text(f"{said}\n" * 200)
        number += 1
    return sum(path.stat().st_size for path in folder.iterdir())


def _write(path: Path, size: int, seed: int) -> None:
    rng, rows = np.random.default_rng(seed), 200_000
    with pq.ParquetWriter(path, _rows(rng, 1).schema, compression="zstd") as writer:
        while path.stat().st_size < size * 0.95:
            writer.write_table(_rows(rng, rows))


def _rows(rng: np.random.Generator, rows: int) -> pa.Table:
    users = rng.integers(1, 10**18, rows)
    hashes = rng.integers(0, 256, rows * 16, dtype=np.uint8).tobytes().hex()
    return pa.table(
        {
            "user_id": users,
            "email": pa.array([f"user{n % 10_000_000}@example.com" for n in users.tolist()]),
            "event": pa.array(rng.choice(["view", "click", "buy", "leave"], rows)),
            "at": pa.array(rng.integers(1_700_000_000_000_000, 1_800_000_000_000_000, rows), pa.timestamp("us")),
            "amount": pa.array(rng.random(rows)),
            "session": pa.array([hashes[n * 32 : n * 32 + 32] for n in range(rows)]),
            "items": pa.array(rng.integers(0, 1000, rows), pa.int32()),
        }
    )


def build_unknown(folder: Path, size: int) -> int:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(max(1, size // _FILE)):
        (folder / f"{number:05}.blob").write_bytes(rng.integers(0, 256, min(size, _FILE), dtype=np.uint8).tobytes())
    return sum(path.stat().st_size for path in folder.iterdir())


def read_all(paths: Sequence[Path]) -> int:
    """What pyarrow does to read all columns of these files, one core's share."""
    pa.set_cpu_count(1)
    rows = 0
    for path in paths:
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                rows += sum(batch.num_rows for batch in file.iter_batches(use_threads=False))
        else:
            rows += len(path.read_bytes())
    return rows


def grep(paths: Sequence[Path], patterns: Path) -> None:
    subprocess.run(["grep", "-aFc", "-f", str(patterns), *map(str, paths)], check=False, capture_output=True,
                   env={"LC_ALL": "C", "PATH": os.environ["PATH"]})  # fmt: skip


def side_by_side(work: Callable[[Sequence[Path]], object], folder: Path, pool: ProcessPoolExecutor) -> None:
    paths = sorted(folder.iterdir())
    list(pool.map(work, [paths[n::CORES] for n in range(CORES)]))


def timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def in_turns(rounds: int, *work: Callable[[], object]) -> list[float]:
    """Of each, the middle of its rounds."""
    for each in work:
        each()
    took = [[timed(each) for each in work] for _ in range(rounds)]
    return [sorted(column)[rounds // 2] for column in zip(*took, strict=True)]


def measure(root: Path, *, size: int, rounds: int) -> Iterator[Result]:
    shutil.rmtree(root, ignore_errors=True)
    spark = session(master=f"local[{CORES}]")

    def look(folder: Path, wanted: list[Needle]) -> SearchReport:
        report = search(
            wanted, [SearchPlace("lake", str(folder))], spark=lambda: spark, run=RunContext("bench"),
            path_key=b"k", in_process=0,
        )  # fmt: skip
        assert not report.found
        return report

    large, small, unknown = root / "large", root / "small", root / "unknown"
    bytes_, fewer = build(large, size), build(small, size // 4)
    unread = build_unknown(unknown, size // 2)
    patterns, few = root / "patterns", people(10)
    forms = [form.content for each in few for form in byte_forms(each) if not is_short(form.content)]
    patterns.write_bytes(b"".join(form + b"\n" for form in forms if b"\n" not in form and b"\0" not in form))
    named = f"{bytes_ / 2**30:.2f} GiB of Parquet and metadata"
    # A child that is forked beside threads of pyarrow may wait for good for a lock that one of them held.
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        ours, theirs, quarter = in_turns(
            rounds, partial(look, large, few), partial(side_by_side, read_all, large, pool), partial(look, small, few)
        )
        yield Result(f"search of {named} for 10 people", ours, "pyarrow reads all columns", theirs, 0.7)
        growth = 100 * (ours / quarter) / (bytes_ / fewer)
        yield Result.limit("time for 4× the bytes, per cent of 4× the time", growth, 110)
        ours, theirs = in_turns(
            rounds, partial(look, unknown, few), partial(side_by_side, partial(grep, patterns=patterns), unknown, pool)
        )
        named_so = f"search of {unread / 2**30:.2f} GiB of no known structure for 10 people"
        yield Result(named_so, ours, "grep -aF -f", theirs, 1)
        ten, thousand, plain = in_turns(
            rounds, partial(look, large, few), partial(look, large, people(1000)),
            partial(subprocess.run, ["sh", "-c", f"cat {large}/* | wc -c"], check=True, capture_output=True),
        )  # fmt: skip
    yield Result.limit("1,000 people, per cent of the time for ten", 100 * thousand / ten, 200)
    yield Result.limit("memory of all workers at their most, MiB", _workers() >> 20, 1024)
    yield Result(f"search of {named} for 10 people (recorded)", ten, "cat | wc -c", plain, 0)
    spark.stop()


def _workers() -> int:
    """The most memory that the session's Python workers ever held, together; those of `grep` and pyarrow have ended."""
    most = []
    for child in psutil.Process().children(recursive=True):
        said = Path(f"/proc/{child.pid}/status").read_text() if "python" in child.name() else ""
        most += [int(line.split()[1]) << 10 for line in said.splitlines() if line.startswith("VmHWM")]
    return sum(most)
