"""The fixpoint that labels reach, as arrays: nodes are numbers, labels are bits, each round visits only what changed.

On the driver, not in Spark: a million edges take a fraction of a second here, and a round of Spark jobs per level of
lineage takes longer than the whole (benchmarks/labels.py measures both).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Arcs:
    """Edges sorted by where they start: those of node n are `ends[starts[n]:starts[n + 1]]`."""

    nodes: int
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, nodes: int, sources: Ints, targets: Ints) -> Arcs:
        # Both ends in one number: sorting numbers is many times quicker than sorting positions by number.
        keys = np.sort((sources.astype(np.uint64) << _HALF) | targets.astype(np.uint64))
        if keys.size:
            keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))]
        begins = (keys >> _HALF).astype(np.int64)
        return cls(
            nodes, np.searchsorted(begins, np.arange(nodes + 1)).astype(np.int64), (keys & _LOW).astype(np.int64)
        )

    def of_node(self, node: int) -> Ints:
        return self.ends[self.starts[node] : self.starts[node + 1]]

    def leaving(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Where the edges of some nodes end, and how many each node has."""
        first = self.starts[nodes]
        counts = self.starts[nodes + 1] - first
        before = np.cumsum(counts) - counts
        places = np.arange(int(counts.sum())) + np.repeat(first - before, counts)
        return self.ends[places], counts


@dataclass(frozen=True, slots=True)
class LabelChanges:
    """At each of `nodes`, the bits `taken` of what flows in become the bits `given` (spec §3, `reclassify`)."""

    nodes: Ints
    taken: Bits
    given: Bits

    @classmethod
    def of(cls, some: Sequence[tuple[int, int, int]]) -> LabelChanges:
        columns = list(zip(*some, strict=True)) or [(), (), ()]
        return cls(np.array(columns[0], np.int64), np.array(columns[1], np.uint64), np.array(columns[2], np.uint64))


def spread_bits(arcs: Arcs, seeds: Bits, closed: Bits, changes: LabelChanges, flowing: int) -> Bits:
    """The labels of every node: its own (`seeds`) and what flows in, without the bits that the node is `closed` to.

    Only the bits of `flowing` leave a node.
    """
    state, fresh, arriving = seeds.copy(), seeds.copy(), np.zeros_like(seeds)
    front = np.flatnonzero(fresh)
    while front.size:
        ends, counts = arcs.leaving(front)
        np.bitwise_or.at(arriving, ends, np.repeat(fresh[front] & np.uint64(flowing), counts))
        met = _met(ends, arriving)
        passed = arriving[met] & ~closed[met]
        changed = np.flatnonzero(arriving[changes.nodes] & changes.taken)
        np.bitwise_or.at(passed, np.searchsorted(met, changes.nodes[changed]), changes.given[changed])
        arriving[met], fresh[front] = 0, 0
        new = passed & ~state[met]
        front, new = met[new != 0], new[new != 0]
        state[front] |= new
        fresh[front] = new
    return state


def spread_most(arcs: Arcs, own: Ints, fixed: npt.NDArray[np.bool_]) -> Ints:
    """The largest value that reaches each node, its own included; `fixed` nodes keep their own, and pass it on."""
    state, arriving = own.copy(), np.zeros_like(own)
    front = np.flatnonzero(state)
    while front.size:
        ends, counts = arcs.leaving(front)
        np.maximum.at(arriving, ends, np.repeat(state[front], counts))
        met = _met(ends, arriving)
        better = (arriving[met] > state[met]) & ~fixed[met]
        values = arriving[met]
        arriving[met] = 0
        front = met[better]
        state[front] = values[better]
    return state


def _met(ends: Ints, arriving: npt.NDArray[np.int64] | npt.NDArray[np.uint64]) -> Ints:
    """The nodes that something arrived at, each once."""
    return np.unique(ends) if ends.size < arriving.size // 8 else np.flatnonzero(arriving)


def shortest_path(
    into: Arcs,
    start: tuple[int, int],
    is_origin: Callable[[int, int], bool],
    before: Callable[[int, int, int], Sequence[int]],
) -> list[tuple[int, int]]:
    """Walk back from a node and its label to the nearest node that has it of its own; from there to `start`.

    `before(node, label, source)` gives the labels of `source` that become `label` at `node`.
    """
    came: dict[tuple[int, int], tuple[int, int] | None] = {start: None}
    queue = [start]
    for at in queue:
        node, label = at
        if is_origin(node, label):
            path = []
            step: tuple[int, int] | None = at
            while step is not None:
                path.append(step)
                step = came[step]
            return path
        for source in into.of_node(node).tolist():
            for earlier in before(node, label, source):
                if (source, earlier) not in came:
                    came[source, earlier] = at
                    queue.append((source, earlier))
    return []
