"""Every error that Ebbtide raises on purpose.

    EbbtideError                 exit 4: something failed or did not answer
    ├── ConflictError            exit 4: writers kept coming between; nothing was changed
    ├── FullReadNeededError      exit 4: what is new cannot be told from what is left; read the whole table
    ├── InputError               exit 2: what a person wrote is wrong
    ├── ProofError               exit 1: a proof, signature or hash was read and is false
    ├── QueryError               exit 4: a query that a person wrote failed while it ran
    ├── RefusedError             exit 3: refused for safety
    │   ├── BusyError            another scan of the project is at work
    │   ├── MarkedError          a reader met a transaction that is scheduled for deletion
    │   ├── LeaseError           another sweeper is at work, or this one's lease is over
    │   ├── NotAppendedError     the ledger's table holds entries that no signer of it appended
    │   ├── OverLimitError       more would go, of a dataset or of the lake, than a limit allows
    │   ├── RewoundError         the ledger is behind, or beside, what was signed before
    │   └── StateVersionError    the state belongs to an older or newer Ebbtide
    ├── SetupError               exit 2: Java, jars or an extra are missing
    ├── StateError               exit 4: the state database failed or did not answer
    └── UnreadableError          exit 4: a catalog or dataset could not be read

`Cancelled` stands beside them: it is no failure, and nothing that meets failures may take it for one.

An error says what happened, and where it can, a hint says what to do next. Facts are attributes, so that the doors
render them; no error ever carries personal data.
"""

from __future__ import annotations

import os
import re


class EbbtideError(Exception):
    """The root. `exit_code` is what the command line ends with."""

    exit_code = 4

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message, self.hint = message, hint
        super().__init__(message)

    @property
    def kept(self) -> str:
        """What of the message may be kept in the state."""
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark tasks); the default pickling would drop keyword arguments.
        return (_rebuild, (type(self), self.__dict__.copy(), self.args))


def _rebuild(kind: type[EbbtideError], state: dict[str, object], args: tuple[object, ...]) -> EbbtideError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class InputError(EbbtideError):
    """What a person wrote is wrong. `where` is `file:line` when it is known."""

    exit_code = 2

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.where = where
        super().__init__(f"{where}: {message}" if where else message, hint=hint)


class ProofError(EbbtideError):
    """Something was read and does not hold: `what` was to be `expected`, and is `found`."""

    exit_code = 1

    def __init__(self, what: str, *, expected: str, found: str, hint: str | None = None) -> None:
        self.what, self.expected, self.found = what, expected, found
        super().__init__(f"{what}: expected {expected}, found {found}", hint=hint)


class QueryError(EbbtideError):
    """A query that a person wrote failed while it ran. The engine's words may quote values: whoever ran it reads them,
    and nobody keeps them.
    """

    def __init__(self, name: str, reason: str, *, hint: str | None = None) -> None:
        self.name = name
        super().__init__(f"{name} failed: {reason}", hint=hint)

    @property
    def kept(self) -> str:
        return f"{self.name} failed"


class SetupError(EbbtideError):
    """This machine lacks something that a session needs."""

    exit_code = 2


class RefusedError(EbbtideError):
    """Refused for safety: protected, changed, past a limit, or not known well enough."""

    exit_code = 3


class OverLimitError(RefusedError):
    """More would go than a limit allows, of a dataset's rows or of the lake; none of it went."""


class ConflictError(EbbtideError):
    """A commit lost against writers as often as it may be tried; the dataset is as they left it."""


class FullReadNeededError(EbbtideError):
    """A reader of what is new has missed something: retention came first, or rows changed that it had read."""


class MarkedError(RefusedError):
    """A reader met a transaction that is scheduled for deletion, and did not say that it may."""


class BusyError(RefusedError):
    """Somebody else is at it now, and will be done: another scan of the project."""


class LeaseError(RefusedError):
    """One sweeper per project: another one holds the lease, or this one lost it. `fence` is the number that counts."""

    def __init__(self, message: str, *, fence: int, hint: str | None = None) -> None:
        self.fence = fence
        super().__init__(message, hint=hint)


class RewoundError(RefusedError):
    """The ledger does not continue what was signed before: a restored backup, a lost file or a changed one."""

    def __init__(self, what: str, *, expected: str, found: str, hint: str | None = None) -> None:
        self.what, self.expected, self.found = what, expected, found
        super().__init__(f"{what}: expected {expected}, found {found}", hint=hint)


class NotAppendedError(RefusedError):
    """The ledger's table holds entries, from `first` on, that nobody who signs it appended and no checkpoint covers."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        which = f"entry {first} was" if first == last else f"entries {first} to {last} were"
        super().__init__(
            f"{which} not appended here, and no checkpoint covers {'it' if first == last else 'them'}: not signed",
            hint="another host appended and has not signed yet: run `ebbtide ledger checkpoint` there. If none did, "
            f"somebody wrote into the table: look at entry {first}",
        )


class StateVersionError(RefusedError):
    """The state has the layout of another version of Ebbtide."""

    def __init__(self, *, found: int, expected: int) -> None:
        self.found, self.expected = found, expected
        super().__init__(
            f"the state has layout {found}, this Ebbtide works with {expected}",
            hint="run `ebbtide state upgrade`" if found < expected else "use the newer Ebbtide that wrote it",
        )


class StateError(EbbtideError):
    """The state database failed or did not answer. What was not acknowledged may or may not be written."""


class UnreadableError(EbbtideError):
    """A catalog or a dataset could not be read. `subject` names which one."""

    def __init__(self, subject: str, reason: str, *, hint: str | None = None) -> None:
        self.subject, self.reason = subject, reason
        super().__init__(f"{subject}: {reason}", hint=hint)

    @property
    def kept(self) -> str:
        """Names of datasets and catalogs. A path may hold a partition's value: neither it nor its reason is kept."""
        return "something could not be read" if "/" in self.subject else self.message

    @classmethod
    def of(cls, subject: str, error: Exception) -> EbbtideError:
        """An error that becomes a row: our own as it is, any other as one that nobody expected."""
        if not isinstance(error, EbbtideError):
            return cls.unexpected(subject, error)
        keep_trace(error)
        return error

    @classmethod
    def unexpected(cls, subject: str, error: Exception) -> UnreadableError:
        """For whatever an adapter did not foresee: one broken place must not end the work on the others."""
        keep_trace(error)
        hint = "please report this: the adapter did not expect it (`ebbtide --log-file FILE` keeps where it came from)"
        return cls(subject, kind_of(error), hint=hint)


class Cancelled(BaseException):
    """A run was asked to stop, and did so at a boundary. `exit_code` is 128 and the number of the signal.

    Not an `Exception`: whoever turns a failure into a row and goes on, must not go on after this.
    """

    def __init__(self, message: str, *, exit_code: int = 130) -> None:
        self.message, self.exit_code = message, exit_code
        self.hint = "nothing is half done; the next run goes on from here"
        super().__init__(message)


def told(error: Exception) -> str:
    """What an error says to people: our own words where it is ours, its kind where not. The debug log says where."""
    keep_trace(error)
    return error.message if isinstance(error, EbbtideError) else kind_of(error)


def kind_of(error: BaseException) -> str:
    """What may be said of an error of somebody else's. Its text may quote what was read, or partitions' paths: only the
    system's own words and the name of a Java class are taken from it.
    """
    kind = type(error).__name__
    if isinstance(error, OSError) and (words := _words_of(error)):
        return f"{kind}: {words}"
    java = re.search(r"^: ([\w.$]+)", str(error), re.MULTILINE) if kind == "Py4JJavaError" else None
    return f"{kind}: {java[1]}" if java else kind


def _words_of(error: OSError) -> str | None:
    """The system's words. Libraries (pyarrow) put a text of their own, with a path in it, where those belong."""
    if type(error).__name__ == "gaierror":  # numbers and words are the resolver's
        return error.strerror
    words = os.strerror(error.errno) if error.errno else None
    return words if error.strerror == words or type(error).__module__ == "builtins" else None


def keep_trace(error: BaseException) -> None:
    """An error becomes a row, and the work goes on: the debug log keeps where it came from."""
    import logging  # late, as `ledger check` needs none of it

    logger = logging.getLogger(__name__)
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("%s\n%s", type(error).__name__, trace_of(error), stacklevel=3)


def trace_of(error: BaseException) -> str:
    """The way that an error took: places in the code, and kinds of errors, never the words of somebody else's."""
    import traceback

    parts: list[str] = []
    at: BaseException | None = error
    while at is not None and len(parts) < _MOST_CAUSES:
        said = f": {at.kept}" if isinstance(at, EbbtideError) else ""
        parts.append("".join(traceback.format_tb(at.__traceback__)) + f"{type(at).__name__}{said}")
        at = at.__cause__ or at.__context__
    return "\ncaused by:\n".join(parts)


_MOST_CAUSES = 10
