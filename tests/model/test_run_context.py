"""Progress and cancellation of a run: it stops at boundaries, and at once only where somebody said that it may."""

from __future__ import annotations

import signal
from datetime import UTC, datetime

import pytest

from ebbtide.errors import Cancelled
from ebbtide.run import Cancellation, RunContext, Silent, Together, quiet


class Heard(Silent):
    def __init__(self) -> None:
        self.said: list[object] = []

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
        self.said.append((step, total, unit))

    def advance(self, n: int = 1) -> None:
        self.said.append(n)


def test_a_run_stops_at_the_boundary_after_it_was_asked_to_and_names_who_asked_first() -> None:
    heard = Heard()
    context = RunContext("ada", progress=Together((heard, Silent())))
    context.step("read", 2, unit="datasets")
    context.cancellation.request("cancelled by ada")
    context.cancellation.request("terminated", exit_code=143)
    with pytest.raises(Cancelled, match="cancelled by ada") as ended:
        context.advance()
    with pytest.raises(Cancelled):
        context.step("plan")
    assert heard.said == [("read", 2, "datasets"), 1]
    assert ended.value.exit_code == 130


def test_who_turns_failures_into_rows_does_not_take_an_end_for_one() -> None:
    cancellation = Cancellation()
    cancellation.request("interrupted")

    def read() -> str | None:
        try:
            cancellation.check()
        except Exception as error:
            return f"cannot be read: {error}"
        return None

    with pytest.raises(Cancelled):
        read()


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_waits_for_a_boundary(number: signal.Signals, exit_code: int) -> None:
    cancellation = Cancellation()
    with cancellation.by_signals():
        signal.raise_signal(number)
        with pytest.raises(Cancelled) as ended:
            cancellation.check()
    assert ended.value.exit_code == exit_code


def test_where_it_may_a_signal_ends_at_once_and_a_second_one_does_not_disturb_the_end() -> None:
    cancellation, after = Cancellation(), []

    def read() -> None:
        try:
            with cancellation.at_once():
                signal.raise_signal(signal.SIGTERM)
                after.append("went on")
        finally:
            signal.raise_signal(signal.SIGTERM)
            after.append("gave back")

    with cancellation.by_signals(), pytest.raises(Cancelled):
        read()
    assert after == ["gave back"]


def test_a_second_signal_insists() -> None:
    cancellation = Cancellation()
    with cancellation.by_signals():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Cancelled, match="interrupted"):
            signal.raise_signal(signal.SIGTERM)


def test_handlers_that_were_there_are_there_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Cancellation().by_signals():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_the_clock_is_the_one_that_was_named() -> None:
    then = datetime(2026, 3, 1, tzinfo=UTC)
    assert quiet(as_of=then).now() == then
    assert quiet().at(None).clock.as_of is None
