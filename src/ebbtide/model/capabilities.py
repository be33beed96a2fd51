"""What a format may be able to do, and says of each whether it can.

What is not declared is refused before anything starts (design.md, invariant 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Capability(StrEnum):
    BRANCHES = "branches"
    TAGS = "tags"
    STAGING = "staging"
    CHERRY_PICK = "cherry-pick"
    ROLLBACK = "rollback"
    REPLACE_TABLE = "replace table"
    MERGE_ON_READ = "merge on read"
    PARTITION_EVOLUTION = "partition evolution"
    SCHEMA_EVOLUTION = "schema evolution"
    EMPTY_TABLE = "table without a commit"
    DROPS_FILES = "drop exact data files"
    DROPS_PARTITIONS = "drop whole partitions"
    DELETES_ROWS = "delete rows"
    DROPS_BRANCHES = "drop branches"
    DROPS_TABLES = "drop tables"
    EXPIRES = "expire versions"
    ANY_ORDER = "remove versions in any order"
    UNLISTS = "let versions go by a commit, before their files"
    FORGETS = "no longer list a version once its files are gone"
    SINGLE_FILES = "remove single files by their paths"
    NEW_ROWS = "read what is new since a transaction"
    REWRITES_FILES = "rewrite exactly the files that hold a person"
    REWRITES_REFS = "rewrite tags and older versions without a person, under their ids"
    CLEANSES_METADATA = "leave no value of a person in metadata"
    ODD_NAMES = "names with spaces, dots, percent signs and unicode"


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a format can do something, and where not, why."""

    supported: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.supported


YES = Support(True)


def no(reason: str) -> Support:
    return Support(False, reason)
