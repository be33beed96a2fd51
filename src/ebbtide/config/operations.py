"""`notify` and `metrics` of `ebbtide.yml`: who is told of a run, and where numbers of it can be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ebbtide.config.environment import from_environment
from ebbtide.config.wrong import WrongValueError
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration, parse_duration

Event = Literal["failed", "refused", "overdue", "limit", "promise"]
EVENTS: tuple[Event, ...] = ("failed", "refused", "overdue", "limit", "promise")


@dataclass(frozen=True, slots=True)
class Notifier:
    """Somebody who is told. Its values are as the file has them: what comes from the environment is looked up when it
    is used, and never printed.
    """

    where: str
    on: tuple[Event, ...]
    due_within: Duration
    folder: Path
    webhook: str | None = field(default=None, repr=False)
    command: tuple[str, ...] = field(default=(), repr=False)

    @property
    def kind(self) -> str:
        return "webhook" if self.webhook is not None else "command"

    def resolved(self) -> tuple[str, ...]:
        """The address, or the command with its arguments, as they are used. What is missing is an `InputError`."""
        texts = self.command if self.webhook is None else (self.webhook,)
        values = tuple(from_environment(text, where=self.where) for text in texts)
        if self.webhook is not None and not _is_address(values[0]):
            raise InputError("the webhook is no address", where=self.where, hint="write http://… or https://…")
        return values


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where numbers of the project can be read; nowhere where neither a file nor a port is named."""

    file: Path | None = None
    port: int | None = None
    host: str = "127.0.0.1"


class NotifySettings(BaseModel):
    """Who is told of runs: a webhook, or a command that gets the same JSON on stdin."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)
    webhook: str | None = Field(None, min_length=1, description="the address that JSON is posted to; takes `${NAME}`")
    command: list[str] | None = Field(
        None, min_length=1, description="a program and its arguments, run in the project's folder; they take `${NAME}`"
    )
    on: list[Event] = Field(
        list(EVENTS),
        min_length=1,
        description="what of: `failed`, `refused`, `overdue` (requests of people), `limit`, `promise` (a broken one)",
    )
    due_within: str = Field(
        "7d", description="how long before its deadline a request is told of, with those that are `overdue`"
    )

    @field_validator("due_within")
    @classmethod
    def _time(cls, value: str) -> str:
        try:
            parse_duration(value, hours=True)
        except InputError as error:
            raise WrongValueError(error.message, error.hint or "") from None
        return value

    @model_validator(mode="after")
    def _one_way(self) -> NotifySettings:
        if (self.webhook is None) == (self.command is None):
            raise WrongValueError("a notification goes to a webhook or to a command", "write one of the two")
        return self

    def value(self, where: str, root: Path) -> Notifier:
        within = parse_duration(self.due_within, hours=True)
        return Notifier(where, tuple(self.on), within, root, self.webhook, tuple(self.command or ()))


class MetricsSettings(BaseModel):
    """Numbers for Prometheus (docs/operations.md): a file, a port, or both."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    file: str | None = Field(
        None, pattern=r"\.prom$", description="written after each run, for the node exporter's textfile collector"
    )
    port: int | None = Field(
        None, strict=True, ge=0, le=65535, description="where `run --every` answers at `/metrics`; 0 takes a free one"
    )
    host: str = Field("127.0.0.1", min_length=1, description="the address that the port is opened at")

    def value(self, root: Path) -> Metrics:
        return Metrics(None if self.file is None else root / self.file, self.port, self.host)
