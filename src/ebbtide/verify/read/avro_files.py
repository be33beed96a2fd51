"""Avro files: which of the formats' records they hold, by their schema, or else whose file it is."""

from __future__ import annotations

from ebbtide.verify.read.avro import Everything, Record, read_container, read_head
from ebbtide.verify.read.hudi_records import HudiRecord, is_metadata
from ebbtide.verify.read.iceberg import ManifestDecoder, ManifestList, is_manifest, is_manifest_list
from ebbtide.verify.read.paimon import PaimonEntry, is_paimon
from ebbtide.verify.read.pieces import Pieces
from ebbtide.verify.read.stored import ObjectSource


def read_avro(stored: ObjectSource) -> Pieces:
    head = read_head(stored)
    record: Record
    if is_manifest(head):
        record = ManifestDecoder(head)
    elif is_manifest_list(head):
        record = ManifestList(head)
    elif is_paimon(head):
        record = PaimonEntry(head)
    elif is_metadata(stored.name):
        record = HudiRecord(head.schema)
    else:
        record = Everything(head.schema)
    yield from read_container(stored, head, record)
