"""How much goes: totals, and the limits of a run (spec §2, invariant 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ebbtide.config.project import Limits

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VERBS = ("mark", "sweep")


@dataclass(frozen=True, slots=True)
class Totals:
    """Distinct files that are freed, counted once however many objects name them, and bytes that leave heads."""

    files: int = 0
    bytes: int = 0
    leaves: int = 0


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A limit that the run would break: of a dataset, or of the lake (`dataset` is None)."""

    dataset: str | None
    verb: str
    text: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What goes of some datasets, by verb: those that are past a limit, and the sums of all others. `share` is what
    counts for the lake's limit: of each dataset what is freed or what leaves heads, whichever is more.
    """

    all_bytes: int = 0
    totals: Mapping[str, Totals] = field(default_factory=lambda: dict.fromkeys(VERBS, Totals()))
    share: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(VERBS, 0))
    over: tuple[OverLimit, ...] = ()


def measure(engine: DuckDBPyConnection, limits: Limits) -> Measured:
    """From the step `measures`: datasets and heads that lose more than they may are left out, all others summed up."""
    (everything,) = engine.execute("SELECT coalesce(sum(all_bytes), 0)::BIGINT FROM measures").fetchall()[0]
    totals, shares, over = {}, {}, []
    for verb in VERBS:
        one = f"""
            (SELECT table_id, all_bytes, {verb}_files AS files, {verb}_bytes AS freed, {verb}_left AS gone,
                    {verb}_heads AS heads, greatest({verb}_bytes, {verb}_left) AS most FROM measures)"""
        past = "most > ? AND most > all_bytes * ?"
        bound = [limits.min_bytes, limits.max_share]
        rows = engine.execute(
            f"SELECT table_id, most, all_bytes, heads, {past} FROM {one} WHERE ({past}) OR len(heads) > 0", bound * 2
        ).fetchall()
        share = f"{limits.max_share:.0%}"
        for table_id, most, whole, heads, is_past in rows:
            text = f"{verb} of {most:,} of {whole:,} bytes, more than {share} of the dataset"
            if not is_past:
                head = heads[0]
                text = f"{verb} of {head['left']:,} of the {head['live']:,} bytes that {head['branch']} has, more than "
                text += f"{share} of that branch"
            over.append(OverLimit(table_id, verb, text))
        files, freed, gone, shares[verb] = engine.execute(
            "SELECT coalesce(sum(files), 0)::BIGINT, coalesce(sum(freed), 0)::BIGINT, coalesce(sum(gone), 0)::BIGINT, "
            f"coalesce(sum(most), 0)::BIGINT FROM {one} WHERE NOT (({past}) OR len(heads) > 0)", bound
        ).fetchall()[0]  # fmt: skip
        totals[verb] = Totals(files, freed, gone)
    return Measured(everything, totals, shares, tuple(over))


def together(parts: Iterable[Measured]) -> Measured:
    """The sums of what was measured apart."""
    parts = list(parts)
    return Measured(
        sum(part.all_bytes for part in parts),
        {verb: Totals(*(sum(getattr(part.totals[verb], name) for part in parts) for name in Totals.__slots__))
         for verb in VERBS},
        {verb: sum(part.share[verb] for part in parts) for verb in VERBS},
        tuple(sorted((one for part in parts for one in part.over), key=lambda one: (one.verb, one.dataset or ""))),
    )  # fmt: skip


def over_limits(measured: Measured, counts: Mapping[str, int], limits: Limits) -> tuple[OverLimit, ...]:
    """Every limit that is broken: those of datasets, then by all others together the lake's, then numbers."""
    over = []
    for verb in VERBS:
        over += [one for one in measured.over if one.verb == verb]
        share, everything = measured.share[verb], measured.all_bytes
        if share > limits.min_bytes and share > everything * limits.lake_max_share:
            text = f"{verb} of {share:,} of {everything:,} bytes, more than {limits.lake_max_share:.0%} of the lake"
            over.append(OverLimit(None, verb, text))
    for verb in VERBS if limits.max_objects is not None else ():
        if counts[verb] > (limits.max_objects or 0):
            text = f"{verb} of {counts[verb]:,} objects, more than {limits.max_objects:,}"
            over.append(OverLimit(None, verb, text))
    return tuple(over)
