"""What a benchmark measured: a ratio against what a user would do instead, or a limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """`ours` and `theirs` in seconds (or another unit that the name says); `bar` is the ratio that is asked for."""

    name: str
    ours: float
    against: str
    theirs: float
    bar: float
    is_limit: bool = False

    @classmethod
    def limit(cls, name: str, value: float, most: float) -> Result:
        return cls(name, value, "at most", most, most, is_limit=True)

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    @property
    def met(self) -> bool:
        return self.ours <= self.bar if self.is_limit else self.ratio >= self.bar

    @property
    def half_met(self) -> bool:
        """Whether it is at least half of what is asked for: less is no noise of a machine."""
        return self.ours <= 2 * self.bar if self.is_limit else 2 * self.ratio >= self.bar

    def line(self) -> str:
        verdict = "met" if self.met else "**missed**"
        if self.is_limit:
            return f"| {self.name} | {self.ours:,.0f} | {self.against} {self.bar:,.0f} | | | {verdict} |"
        return (
            f"| {self.name} | {self.ours:.2f} s | {self.against}: {self.theirs:.1f} s | {self.ratio:.1f}× "
            f"| ≥ {self.bar:g}× | {verdict} |"
        )
