"""Opening Iceberg's metadata files: table metadata, manifest lists and manifests.

Each file is opened at most once per reading. Whatever goes wrong names the dataset and the file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.snapshots import Snapshot

from ebbtide.errors import UnreadableError, told
from ebbtide.formats.iceberg import avro
from ebbtide.formats.iceberg.avro import Manifest, ManifestEntry
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.storage.unpack import DamagedError, gunzip

_PACKED = ".gz.metadata.json"
T = TypeVar("T")


class MetadataFiles:
    """The metadata of one table, opened on demand and remembered."""

    def __init__(self, found: TableHandle, catalog: Catalog) -> None:
        self.found, self.location = found, found.handle
        self._catalog = catalog
        self._lists: dict[int, list[Manifest]] = {}
        self._entries: dict[str, list[ManifestEntry]] = {}

    @cached_property
    def _io(self) -> FileIO:
        return load_file_io({"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", **self._catalog.options})

    @cached_property
    def table(self) -> TableMetadata:
        return self.open(self.location)

    def open(self, location: str) -> TableMetadata:
        return self._read(location, lambda: TableMetadataUtil.parse_raw(self._text(location)))

    def is_there(self, location: str) -> bool:
        return self._read(location, lambda: self._io.new_input(location).exists())

    def manifests(self, snapshot: Snapshot) -> list[Manifest]:
        """The manifests of one version, as its manifest list names them."""
        if snapshot.snapshot_id not in self._lists:
            path = snapshot.manifest_list
            if not path:
                raise self.unreadable(f"snapshot {snapshot.snapshot_id} has no manifest list")
            self._lists[snapshot.snapshot_id] = self._read(path, lambda: avro.manifests(self._bytes(path)))
        return self._lists[snapshot.snapshot_id]

    def entries(self, manifest: Manifest) -> list[ManifestEntry]:
        """Every entry of a manifest, deleted ones included."""
        path = manifest.path
        if path not in self._entries:
            self._entries[path] = self._read(path, lambda: avro.entries(self._bytes(path), manifest))
        return self._entries[path]

    def content(self, path: str) -> bytes:
        """A file as it is stored."""
        return self._read(path, lambda: self._bytes(path))

    def write(self, path: str, content: bytes) -> None:
        """A file of metadata that is new."""
        with self._io.new_output(path).create() as stream:
            stream.write(content)

    def beside(self, table: TableMetadata) -> MetadataFiles:
        """The same place with other metadata, which need not be written yet. What was opened stays open."""
        other = MetadataFiles(self.found, self._catalog)
        other.table, other._entries = table, self._entries
        return other

    def _text(self, path: str) -> str:
        content = self._bytes(path)
        # As pyiceberg and Iceberg know it: by the name.
        return (gunzip(content) if path.endswith(_PACKED) else content).decode()

    def _bytes(self, path: str) -> bytes:
        with self._io.new_input(path).open() as stream:
            return stream.read()

    def unreadable(self, reason: str) -> UnreadableError:
        return UnreadableError(
            str(self.found.id),
            reason,
            hint="restore the file, or repair the table; until then nothing of it is removed",
        )

    def _read(self, path: str, open_: Callable[[], T]) -> T:
        try:
            return open_()
        except FileNotFoundError as error:
            raise self.unreadable(f"{path} is missing") from error
        except Exception as error:  # a corrupt file surfaces as almost anything: validation, decoding, arithmetic
            reason = str(error) if isinstance(error, DamagedError) else told(error)
            raise self.unreadable(f"{path} cannot be read: {reason}") from error
