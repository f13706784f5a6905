"""What one party was told of a study, as a folder that others can compare with theirs: `heads` and `documents/0`, under
the names they have over HTTP, and all fingerprints as text. Public documents only, nothing of the party itself."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

from anon.documents import SignedHead, encode_chain, parse_chain
from anon.errors import Malformed, Refused
from anon.evidence import manifest_of
from anon.fingerprint import listing
from anon.study.manifest import Manifest, parse_manifest

HEADS = "heads"
MANIFEST = "documents/0"
FINGERPRINTS = "fingerprints.txt"


@frozen
class Story:
    """A manifest and the signed heads that begin with it."""

    manifest: Manifest = field(repr=False)
    heads: bytes = field(repr=False)

    @property
    def chain(self) -> tuple[SignedHead, ...]:
        """The heads, checked when the story was read."""
        return parse_chain(self.heads, self.manifest.aggregator_key, self.manifest.study_id)


def read_story(directory: Path) -> Story:
    """The story in a folder. Raises `Malformed` or `RejectedProof` for heads that its aggregator did not sign."""
    try:
        heads, body = (directory / HEADS).read_bytes(), (directory / MANIFEST).read_bytes()
    except OSError as error:
        raise Malformed(
            f"{directory}: not an exported study ({type(error).__name__}); write one with `anonml aggregator export` "
            "or `anonml peer fingerprint --export`"
        ) from None
    return Story(manifest_of(heads, body), heads)


def write_story(directory: Path, manifest_bytes: bytes, chain: tuple[SignedHead, ...]) -> None:
    """Write a story to a new folder. Raises `Refused` when it exists."""
    if directory.exists():
        raise Refused(f"{directory}: already exists; name a new folder")
    (directory / MANIFEST).parent.mkdir(parents=True)
    (directory / HEADS).write_bytes(encode_chain(chain))
    (directory / MANIFEST).write_bytes(manifest_bytes)
    study = parse_manifest(manifest_bytes).study_id
    (directory / FINGERPRINTS).write_text(listing(study, chain), encoding="utf-8")
