"""What a validator raises: pydantic collects it, and people get it with file, line and a hint."""

from __future__ import annotations

from ebbtide.errors import InputError

Place = tuple[str | int, ...]


class WrongValueError(ValueError, InputError):
    """A wrong value with a hint, raised inside a validator: pydantic collects only what is a ValueError.

    `place` says where inside of what is validated it stands.
    """

    def __init__(self, message: str, hint: str, *, place: Place = ()) -> None:
        self.place = place
        InputError.__init__(self, message, hint=hint)
