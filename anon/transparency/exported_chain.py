"""The heads of a study that one party saw, as a folder that others can compare with theirs. It holds `heads` and
`documents/0`, under the names they have over HTTP, and all fingerprints as text. They are public documents only, with
nothing of the party itself."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from attrs import field

from anon.errors import Malformed, Refused, because
from anon.storage.private_files import close_folder, new_private
from anon.study.manifest import Manifest, parse_manifest
from anon.transparency.documents import SignedHead, encode_chain, parse_chain
from anon.transparency.equivocation import manifest_of
from anon.transparency.fingerprint import listing
from anon.values import frozen

HEADS = "heads"
MANIFEST = "documents/0"
FINGERPRINTS = "fingerprints.txt"
MOST_BYTES = 2**28
"""Of one file: no document is as long."""


@frozen
class ExportedChain:
    """A manifest and the signed heads that begin with it."""

    manifest: Manifest = field(repr=False)
    heads: bytes = field(repr=False)

    @property
    def chain(self) -> tuple[SignedHead, ...]:
        """The heads, checked when the folder was read."""
        return parse_chain(self.heads, self.manifest.aggregator_key, self.manifest.study_id)


def content_of(file: Path) -> bytes:
    """The content of a file that somebody else made. Raises `OSError` for a pipe or a device, which may never end, and
    for a file that is longer than any document."""
    if not file.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if file.stat().st_size > MOST_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return file.read_bytes()


def read_exported_chain(directory: Path) -> ExportedChain:
    """The chain in a folder. Raises `Malformed` or `RejectedProof` for heads that its aggregator did not sign."""
    try:
        heads, body = content_of(directory / HEADS), content_of(directory / MANIFEST)
    except OSError as error:
        raise Malformed(
            f"{directory}: not an exported study{because(error)}; write one with `anonml aggregator export` "
            "or `anonml peer fingerprint --export`"
        ) from None
    return ExportedChain(manifest_of(heads, body), heads)


def write_exported_chain(directory: Path, manifest_bytes: bytes, chain: tuple[SignedHead, ...]) -> None:
    """Write a chain to a new folder, for its owner alone, because it says whose study was joined.

    Raises `Refused` when the folder exists.
    """
    if directory.exists():
        raise Refused(f"{directory}: already exists; name a new folder")
    directory.mkdir(mode=0o700, parents=True)
    close_folder(directory)
    (directory / MANIFEST).parent.mkdir(mode=0o700)
    study = parse_manifest(manifest_bytes).study_id
    listed = listing(study, chain).encode()
    for name, content in ((HEADS, encode_chain(chain)), (MANIFEST, manifest_bytes), (FINGERPRINTS, listed)):
        with new_private(directory / name) as file:
            file.write(content)
