"""Who is planted in the lakes of `variants/`: a person of their own for every kind of place of every variant.

Three values are alike but for their ends. The person's is planted in that place and nowhere else, so that a value that
is found names its place. The neighbour's lies beside it and stays. The ghost's was never there. Texts share 33 of 40
characters (a cut bound has 16 or 32), UUIDs all characters but the last, numbers all digits but the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Literal
from uuid import UUID

Who = Literal["person", "neighbour", "ghost"]
WHO: tuple[Who, ...] = ("person", "neighbour", "ghost")
TYPES = ("text", "bigint", "decimal", "uuid")

_LAST_DIGIT = {"person": 3, "neighbour": 5, "ghost": 7}


@dataclass(frozen=True, slots=True)
class Values:
    """One value of each type, of one of three."""

    text: str
    bigint: int
    decimal: Decimal
    uuid: UUID

    def canonical(self, type_: str) -> str:
        return str(getattr(self, type_))

    def __iter__(self) -> Iterator[object]:
        return iter((self.text, self.bigint, self.decimal, self.uuid))


def values_of(variant: str, place: str, who: Who = "person") -> Values:
    """The values that are planted there; without a clock and without luck."""
    seed = sha256(f"{variant}/{place}".encode()).hexdigest()
    number, another, last = int(seed[24:48], 16), int(seed[:24], 16), _LAST_DIGIT[who]
    own = sha256(f"{seed}/{who}".encode()).hexdigest()
    return Values(
        # What a path has to write otherwise stands in the first 16 characters.
        text=f"{seed[:8]}#{seed[8:12]}%{seed[12:22]}@home.{seed[22:24]}.{own[:7]}",
        bigint=10**17 + number % (8 * 10**16) * 10 + last,
        decimal=Decimal(10**19 + another % (8 * 10**18) * 10 + last),
        uuid=UUID(f"{seed[32:63]}{last:x}"),
    )
