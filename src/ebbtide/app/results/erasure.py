"""Results of erasure: requests, what is held of a person, what a search found. Nothing here names a person."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.app.results.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class BadLine(Shown):
    """A line from which nothing was filed."""

    line: int
    because: str
    hint: str | None


@dataclass(frozen=True, slots=True, repr=False)
class RequestFiled(Shown):
    """The request of one person; `known` says that it was there before. Where it is only tried there is none."""

    id: str | None
    known: bool


@dataclass(frozen=True, slots=True, repr=False)
class RequestsFiled(Shown):
    """The requests of many people, in their order; `known` of them were there before. `bad` lines filed nothing."""

    filed: int
    known: int
    requests: tuple[str, ...]
    bad: tuple[BadLine, ...]


@dataclass(frozen=True, slots=True, repr=False)
class RequestRow(Shown):
    id: str
    law: str
    state: str
    received_at: str
    deadline: str
    closed_at: str | None


@dataclass(frozen=True, slots=True, repr=False)
class RequestStep(Shown):
    """What became of one place: `kind` is what was done there."""

    place: str
    kind: str
    state: str
    because: str


@dataclass(frozen=True, slots=True, repr=False)
class RequestStatus(Shown):
    id: str
    law: str
    state: str
    received_at: str
    deadline: str
    steps: tuple[RequestStep, ...]


@dataclass(frozen=True, slots=True, repr=False)
class HeldPlace(Shown):
    """Rows of a person in a branch, tag or version of a dataset, and the columns that say so."""

    dataset: str
    ref: str
    rows: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Unreachable(Shown):
    """A place that was not looked at; `failed` means: try again."""

    place: str
    because: str
    failed: bool


@dataclass(frozen=True, slots=True, repr=False)
class FindResult(Shown):
    """What is held of one person. `id` is None where nobody asked by a request."""

    id: str | None
    places: tuple[HeldPlace, ...]
    not_reachable: tuple[Unreachable, ...]


@dataclass(frozen=True, slots=True, repr=False)
class FoundObject(Shown):
    """An object that holds a value of the person, or may; its path is keyed where it says the value."""

    path: str
    role: str
    how: str
    where: str
    referenced_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class UntoldObject(Shown):
    path: str
    because: str


@dataclass(frozen=True, slots=True, repr=False)
class VerifyResult(Shown):
    """What a search of every object found of one request's person, and its grade. `left` lies in places that keep it
    for a reason.
    """

    id: str
    grade: str
    files: int
    bytes: int
    found: tuple[FoundObject, ...]
    left: tuple[FoundObject, ...]
    cannot_tell: tuple[UntoldObject, ...]
    inventory: str


@dataclass(frozen=True, slots=True, repr=False)
class CertificateWritten(Shown):
    """A certificate, and the file that opens its commitments: personal data, to be kept as such. None where the request
    was closed before, and its identifiers with it.
    """

    id: str
    state: str
    certificate: str
    opening: str | None


@dataclass(frozen=True, slots=True, repr=False)
class RefPlan(Shown):
    """A branch, tag or version that holds somebody, the data files that they are in, and what becomes of it."""

    ref: str
    rows: int
    fate: str
    because: str | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class ErasedBytes(Shown):
    """What is read and written again; written is an upper bound."""

    read: int
    written: int


@dataclass(frozen=True, slots=True, repr=False)
class StoreRequests(Shown):
    """Requests to a store, at least."""

    read: int
    written: int
    deleted: int


@dataclass(frozen=True, slots=True, repr=False)
class PlannedEnd(Shown):
    """When the last byte is gone where runs come in time, and why then; `at` is None where no time ends it."""

    at: str | None
    because: str


@dataclass(frozen=True, slots=True, repr=False)
class PlacePlan(Shown):
    """A dataset or hot table (its `kind`) that holds somebody: what is decided there, how and why, what it costs and
    when it ends.
    """

    dataset: str
    kind: str
    decision: str
    method: str
    because: str
    waits_for: tuple[str, ...]
    until: str | None
    history: str
    requests: tuple[str, ...]
    files: int
    bytes: ErasedBytes
    refs: tuple[RefPlan, ...]
    store_requests: StoreRequests
    ends: PlannedEnd


@dataclass(frozen=True, slots=True, repr=False)
class RequestPlan(Shown):
    """A request: whether it goes on now, and when its last place ends; None where none of its places is to end."""

    id: str
    decision: str
    because: str
    deadline: str
    ends: PlannedEnd | None


@dataclass(frozen=True, slots=True, repr=False)
class PlaceMissed(Shown):
    """A place that was not looked at, and why."""

    place: str
    because: str


@dataclass(frozen=True, slots=True, repr=False)
class CopyPlan(Shown):
    """A declared copy that may hold these people, and until when; `until` is None where nobody says."""

    copy: str
    kind: str
    because: str
    until: str | None
    requests: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ErasePlanResult(Shown):
    """What `erase run` would do; the same lake and requests give the same digest. `failed` places did not answer."""

    digest: str
    as_of: str
    requests: tuple[RequestPlan, ...]
    places: tuple[PlacePlan, ...]
    copies: tuple[CopyPlan, ...]
    not_reachable: tuple[PlaceMissed, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class DatasetErased(Shown):
    """How a dataset stands after the run: `files` and `bytes` are what went in it, `findings` what its proof found."""

    dataset: str
    state: str
    because: str
    files: int
    bytes: int
    findings: int


@dataclass(frozen=True, slots=True, repr=False)
class RequestMovedOn(Shown):
    id: str
    state: str


@dataclass(frozen=True, slots=True, repr=False)
class StagesOf(Shown):
    """What an act on a dataset would do, in order."""

    dataset: str
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class EraseRunResult(Shown):
    """What a run did, with its plan. A dry run has stages instead of datasets. `failed` are places without answer, and
    `left` the datasets in which something was left that a person has to see to.
    """

    run: str | None
    plan: ErasePlanResult
    datasets: tuple[DatasetErased, ...]
    requests: tuple[RequestMovedOn, ...]
    stages: tuple[StagesOf, ...]
    failed: tuple[str, ...]
    left: tuple[str, ...]
    exit_code: int
