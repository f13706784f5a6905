"""All that a study has published, as one ZIP file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO

_INSTANT = (1980, 1, 1, 0, 0, 0)


def archive(folder: Path, packed: IO[bytes]) -> None:
    """Write the files of an exported study, without any time of their own: equal documents, equal bytes. One file is in
    memory at a time, and files of buckets are short."""
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _INSTANT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                target.writestr(entry, path.read_bytes())
