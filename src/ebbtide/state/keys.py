"""Keys that are files: the ledger's own, one per hold on a subject (spec §4, §5). Requests' are in `request_keys.py`.

What a key sealed is unreadable for ever once the key is destroyed, wherever copies of the sealed bytes lie. So a key
is in one file only, readable by its owner only, and never in the database, a backup of it, or a log. (On storage that
keeps old blocks, overwriting a file is not enough: keep the folder on an encrypted volume, and out of backups.)
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ebbtide.errors import InputError, ProofError, RefusedError, StateError, UnreadableError
from ebbtide.private import private_folder

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
KEY_BYTES = 32
_NONCE_BYTES = 12
_MAX_FILE_BYTES = 10_000


class KeyFolder:
    """A folder of secrets. It prints its path, never what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"KeyFolder({self.path})"

    def names(self) -> tuple[str, ...]:
        """The keys that are there."""
        if not self.path.exists():
            return ()
        return tuple(sorted(file.stem for file in self.path.glob("*.key")))

    def store(self, name: str, secret: bytes) -> None:
        """Write a new key file for its owner only, on disk when this returns. One that exists is never replaced."""
        file = self._file(name)
        private_folder(self.path)
        partial = file.with_suffix(f".{secrets.token_hex(4)}.partial")
        descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            try:
                os.write(descriptor, secret)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            # A link, unlike a rename, fails when the name is taken.
            os.link(partial, file)
        except FileExistsError:
            raise RefusedError(f"the key {name} is there already", hint="a key is never replaced") from None
        except OSError as error:
            raise StateError(f"the key {name} could not be kept: {error.strerror}") from None
        finally:
            partial.unlink()
        _sync(self.path)

    def read(self, name: str) -> bytes:
        """The secret; refused when others could read it as well."""
        file = self._file(name)
        try:
            mode = file.stat().st_mode
            secret = file.read_bytes()
        except FileNotFoundError:
            raise UnreadableError(
                f"key {name}", "it is not here", hint=f"it was destroyed, or it belongs to {self.path} and is missing"
            ) from None
        except OSError as error:
            raise UnreadableError(f"key {name}", error.strerror or "cannot be read") from None
        if mode & 0o077:
            raise RefusedError(f"others may read the key {name}", hint=f"run `chmod 600 {file}`")
        if not 0 < len(secret) <= _MAX_FILE_BYTES:
            raise UnreadableError(f"key {name}", f"it has {len(secret)} bytes", hint="the file was cut or replaced")
        return secret

    def destroy(self, name: str) -> None:
        """Overwrite and remove a key. Destroying one that is gone changes nothing."""
        file = self._file(name)
        try:
            # Not through a link: what it leads to may be no key at all.
            descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "r+b", buffering=0) as stream:
                stream.write(secrets.token_bytes(os.fstat(descriptor).st_size))
                os.fsync(descriptor)
            file.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise RefusedError(f"the key {name} is a link", hint=f"destroy what {file} leads to yourself") from None
        _sync(self.path)

    def create_sealing(self, name: str) -> None:
        """Make a random key for `seal`."""
        self.store(name, secrets.token_bytes(KEY_BYTES))

    def seal(self, name: str, content: bytes) -> bytes:
        """Encrypt content under the key, bound to the key's name (AES-256-GCM)."""
        return seal(self._sealing(name), name, content)

    def unseal(self, name: str, sealed: bytes) -> bytes:
        """The content; refused when the key is gone or the bytes are not what this key sealed."""
        return unseal(self._sealing(name), name, sealed)

    def _sealing(self, name: str) -> bytes:
        secret = self.read(name)
        if len(secret) != KEY_BYTES:
            raise UnreadableError(f"key {name}", f"it has {len(secret)} bytes, not {KEY_BYTES}")
        return secret

    def _file(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise InputError("not the name of a key", hint="lower-case letters, digits, hyphens and underscores")
        return self.path / f"{name}.key"


def seal(key: bytes, name: str, content: bytes) -> bytes:
    """Encrypt content under a key, bound to the name of what it belongs to (AES-256-GCM)."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, content, name.encode())


def unseal(key: bytes, name: str, sealed: bytes) -> bytes:
    """The content; refused unless it is what this key sealed under this name."""
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], name.encode())
    except (InvalidTag, ValueError):
        raise ProofError(
            f"what is sealed under {name}", expected="the bytes that its key sealed", found="others"
        ) from None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
