"""Why a server did not answer, without its own words: those name its address and its user, which may be secrets from
the environment (`config/environment.py`).
"""

from __future__ import annotations

from ebbtide.errors import kind_of

_WORDS = {
    "refused": "the server refused the connection",
    "translate host name": "there is no host of that name",
    "resolve": "there is no host of that name",
    "timed out": "the server did not answer in time",
    "timeout": "the server did not answer in time",
    "authentication failed": "the server refused the user or the password",
    "no password supplied": "the server asks for a password",
    "does not exist": "the server knows no such database or user",
    "too many": "the server has no connection left",
    "SSL": "no encrypted connection could be agreed",
}


def why_unreachable(error: BaseException) -> str:
    """Our words for what the error says, or its kind."""
    said = str(error)
    return next((ours for theirs, ours in _WORDS.items() if theirs in said), kind_of(error))
