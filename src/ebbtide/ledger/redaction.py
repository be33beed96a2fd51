"""What the ledger may hold of an object: never a value that may name a person, nor what guesses could be held against.

The plain words stay in the state, beside the salt that makes the keyed form of them (spec §5, "No personal data"). In
clear are only native ids that a format counts or draws, and partitions that are a date by the type of their column or
by a format that somebody declared, never by their digits. A hash without a key is a clear text to whoever can guess it:
fingerprints, paths and tokens are keyed, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from ebbtide.ledger.entries import salted
from ebbtide.state.values import Condemnation, Mark, Salt

_COUNTED = re.compile(r"(main/)?[0-9]+", re.ASCII)
"""Ids of transactions and versions. Paimon's have the branch in front, whose name is somebody's free text."""
_AGE_ONLY = ("branches", "tables", "transactions", "versions")
"""Targets whose reason is an age and nothing else."""


def object_in_ledger(mark: Mark, dated: Collection[str]) -> str:
    """The object's id, or its keyed form. `dated` are the tables whose partitions may be named by their dates.

    Row objects are named by their policy, whole tables by themselves; orphans are folders, whose segments may be
    partition values, and the name of a branch is free text.
    """
    key = mark.key
    if key.target in ("transactions", "versions"):
        return id_in_ledger(mark.salt, key.object)
    if key.target in ("rows", "tables") or _is_date(mark, dated):
        return key.object
    return salted(mark.salt, key.object)


def because_in_ledger(mark: Mark, dated: Collection[str]) -> str:
    """Why it goes: an age, a partition's day, or a predicate, which is free text and may hold a value of anybody."""
    clear = mark.key.target in _AGE_ONLY or _is_date(mark, dated)
    return mark.because if clear else salted(mark.salt, mark.because)


def id_in_ledger(salt: Salt, native_id: str) -> str:
    """The native id of a transaction or version, or its keyed form where it is anything but counted."""
    return native_id if _COUNTED.fullmatch(native_id) else salted(salt, native_id)


def dataset_in_ledger(condemned: Iterable[Condemnation], dataset: str) -> str:
    """A dataset by its name. What a person condemned has a name that was made of its path: that one is keyed."""
    salt = next((folder.salt for folder in condemned if folder.dataset == dataset), None)
    return dataset if salt is None else salted(salt, dataset)


def files_in_ledger(salt: Salt, files: Mapping[str, int]) -> list[tuple[str, int]]:
    """A list of files for an attachment, in an order that tells nothing of their names."""
    return sorted((salted(salt, path), size) for path, size in files.items())


def _is_date(mark: Mark, dated: Collection[str]) -> bool:
    """Whether a partition has one value, which is the date that it was marked by."""
    key = mark.key
    return key.target == "partitions" and key.dataset in dated and mark.days is not None and key.object.count("/") == 1
