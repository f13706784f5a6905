"""All that a study has published, as one ZIP file."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from aggregator.audit import export, export_bucket
from anon.transparency.documents import SignedHead

_INSTANT = (1980, 1, 1, 0, 0, 0)


Bucket = tuple[int, int, bytes]
"""The numbers of document and bucket, and its content."""


def archive(chain: Sequence[SignedHead], bodies: Mapping[int, bytes], buckets: Sequence[Bucket] = ()) -> bytes:
    """The files of `aggregator.audit.export`, without any time of their own: equal documents, equal bytes."""
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        folder = Path(scratch) / "study"
        export(chain, bodies, folder)
        for bucket in buckets:
            export_bucket(folder, *bucket)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _INSTANT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                target.writestr(entry, path.read_bytes())
    return packed.getvalue()
