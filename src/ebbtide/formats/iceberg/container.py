"""An Avro file without its compression, unpacked within bounds (Avro 1.11, "Object Container Files").

fastavro unpacks every block whole, however large that is, and only by the libraries that happen to be installed. Here
each block is unpacked with what is left of the file's bound; fastavro then reads the plain blocks, and checks them.
"""

from __future__ import annotations

from ebbtide.storage.unpack import most_unpacked, too_large, unpack_block

_MAGIC = b"Obj\x01"
_SYNC = 16
_CODEC = b"avro.codec"


def without_compression(content: bytes) -> bytes:
    """The same file with codec `null`. Whatever is wrong with it raises `ValueError`."""
    if not content.startswith(_MAGIC):
        raise ValueError("it is no Avro file")
    facts, at = _facts(content, len(_MAGIC))
    codec = facts.get(_CODEC, b"null").decode("ascii", "replace")
    if codec == "null":
        return content
    sync = content[at : at + _SYNC]
    at += _SYNC
    plain = bytearray(_MAGIC + _whole(len(facts)))
    for name, value in (facts | {_CODEC: b"null"}).items():
        plain += _whole(len(name)) + name + _whole(len(value)) + value
    plain += b"\x00" + sync
    left = most_unpacked(len(content))
    while at < len(content):
        count, at = _number(content, at)
        packed, at = _bytes(content, at)
        block = unpack_block(codec, packed, left)
        if block is None:
            raise too_large(len(content))
        left -= len(block)
        marker, at = content[at : at + _SYNC], at + _SYNC
        plain += _whole(count) + _whole(len(block)) + block + marker
    return bytes(plain)


def _facts(content: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """The file's own metadata: a map in blocks, the last of them empty."""
    facts: dict[bytes, bytes] = {}
    while True:
        count, at = _number(content, at)
        if count < 0:  # then the size of the block stands before it
            count = -count
            _, at = _number(content, at)
        if count == 0:
            return facts, at
        for _ in range(count):
            name, at = _bytes(content, at)
            facts[name], at = _bytes(content, at)


def _bytes(content: bytes, at: int) -> tuple[bytes, int]:
    size, at = _number(content, at)
    if size < 0 or at + size > len(content):
        raise ValueError(f"it ends at byte {len(content)}, in the middle of something")
    return content[at : at + size], at + size


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A long: seven bits a byte, the lowest first, the sign in the lowest bit."""
    value = 0
    for n in range(10):
        if at + n >= len(content):
            raise ValueError(f"it ends at byte {len(content)}, in the middle of a number")
        value |= (content[at + n] & 0x7F) << 7 * n
        if not content[at + n] & 0x80:
            return (value >> 1) ^ -(value & 1), at + n + 1
    raise ValueError(f"there is no number at byte {at}")


def _whole(value: int) -> bytes:
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes(encoded) + bytes([rest])
