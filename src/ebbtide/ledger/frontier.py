"""The frontier: what the signer appended, kept beside its keys and not in the database that it signs (spec §5).

A row that somebody put at the end of the table is not told from an entry by anything in the database. So the signer
keeps, for itself, the roots of the complete subtrees of what it appended: 32 bytes a level, from which the next entries
give the next ones without a look at the table.

1. Before a transaction commits, the frontier that it will lead to is on disk beside the one that it started from.
   After a crash the table holds either, and both are accepted.
2. A checkpoint that a key of the key folder signed extends the frontier: another host appended, and signed.
3. A file that is not there is the frontier of nothing: what was signed then counts, and nothing else. One that cannot
   be read is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ebbtide.errors import EbbtideError, InputError, StateError, UnreadableError
from ebbtide.ledger import tree
from ebbtide.ledger.durable import replace_file
from ebbtide.ledger.note import parse_decimal
from ebbtide.model.canonical import Json, base64_bytes, base64_text, dumps, loads_canonical


class Frontier(NamedTuple):
    """A tree of `size` leaves by its complete subtrees, the largest first: enough to grow it, and for its root."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, size: int, get: tree.Get) -> Frontier:
        """The frontier of the first `size` leaves of a stored tree."""
        return cls(size, tuple(get(level, index) for level, index in tree.peaks(size)))

    @property
    def root(self) -> bytes:
        """The root hash."""
        return tree.root(self.size, self.get)

    def get(self, level: int, index: int) -> bytes:
        """The hash of a subtree that the frontier has; any other is not asked for."""
        return dict(zip(tree.peaks(self.size), self.peaks, strict=True))[level, index]

    def append(self, leaf_hashes: Sequence[bytes]) -> tuple[Frontier, list[tree.HashRun]]:
        """The frontier with these leaves after it, and the hashes that are new."""
        runs = list(tree.append(self.size, leaf_hashes, self.get))
        grown = {run.level: run for run in runs}

        def get(level: int, index: int) -> bytes:
            run = grown.get(level)
            return run.hashes[index - run.first] if run and index >= run.first else self.get(level, index)

        return Frontier.read(self.size + len(leaf_hashes), get), runs


NOTHING = Frontier()


@dataclass(frozen=True, slots=True)
class Appended:
    """What may be in the table: the frontier that was certain last, and the one that was about to be committed."""

    certain: Frontier = NOTHING
    intended: Frontier | None = None

    def frontiers(self) -> Iterator[Frontier]:
        """The certain one first."""
        yield self.certain
        if self.intended is not None:
            yield self.intended


@dataclass(frozen=True, slots=True)
class FrontierFile:
    """The file beside the keys, one for each origin."""

    path: Path

    @classmethod
    def of(cls, keys: Path, origin: str) -> FrontierFile:
        """The frontier of the ledger that the keys of this folder sign under this origin."""
        return cls(keys / f"{quote(origin, safe='')}.frontier")

    def read(self) -> Appended:
        """What was appended; nothing where there is no file."""
        try:
            found = loads_canonical(self.path.read_bytes())
            if not isinstance(found, dict):
                raise InputError("not a frontier")
            return Appended(_parse(found.get("certain")), _parse(found["intended"]) if "intended" in found else None)
        except FileNotFoundError:
            return Appended()
        except OSError as error:
            raise UnreadableError(str(self.path), error.strerror or "cannot be read") from None
        except EbbtideError:
            raise UnreadableError(
                str(self.path),
                "not what the signer appended last",
                hint="move it away and look at `ebbtide ledger audit`: what was signed counts, and nothing else",
            ) from None

    def write(self, appended: Appended) -> None:
        """Keep it, on disk when this returns; refused when it cannot be kept, before anything is committed."""
        content: dict[str, Json] = {"certain": _encode(appended.certain)}
        if appended.intended is not None:
            content["intended"] = _encode(appended.intended)
        try:
            replace_file(self.path, dumps(content), mode=0o600)
        except OSError as error:
            raise StateError(
                f"what is appended could not be kept at {self.path}: {error.strerror}",
                hint="without it the signer would have to believe the table; make room, or give the folder back",
            ) from None


def _encode(frontier: Frontier) -> Json:
    return {"size": str(frontier.size), "peaks": [base64_text(peak) for peak in frontier.peaks]}


def _parse(found: object) -> Frontier:
    match found:
        case {"size": str(size), "peaks": list(peaks)}:
            frontier = Frontier(parse_decimal(size), tuple(base64_bytes(str(peak)) for peak in peaks))
            if [len(peak) for peak in frontier.peaks] == [tree.HASH_BYTES] * frontier.size.bit_count():
                return frontier
    raise InputError("not a frontier")
