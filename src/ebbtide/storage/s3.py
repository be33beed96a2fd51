"""Talking to S3 where pyarrow cannot: answers per key, which bulk deletes need."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ebbtide.errors import SetupError

_CONNECT_SECONDS, _READ_SECONDS, _TRIES = 3, 8, 2
"""One call with its retries ends well inside a third of a sweeper's lease (design.md, invariant 5)."""
CALLS_AT_ONCE = 8


def s3_client(options: Mapping[str, str]) -> Any:
    """A client for the store that a catalog's options describe. Clients may be used by several threads."""
    wanted = {key: value for key, value in options.items() if key.startswith(("s3.", "client."))}
    return _client(tuple(sorted(wanted.items())))


@lru_cache(maxsize=8)
def _client(options: tuple[tuple[str, str], ...]) -> Any:
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise SetupError("removing objects on S3 needs boto3", hint="pip install 'ebbtide[s3]'") from error
    given = dict(options)
    endpoint = given.get("s3.endpoint")
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint,
        region_name=given.get("client.region") or given.get("s3.region"),
        aws_access_key_id=given.get("s3.access-key-id"),
        aws_secret_access_key=given.get("s3.secret-access-key"),
        aws_session_token=given.get("s3.session-token"),
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"total_max_attempts": _TRIES, "mode": "standard"},
            max_pool_connections=CALLS_AT_ONCE,
            s3={"addressing_style": "path" if endpoint else "auto"},
        ),
    )
