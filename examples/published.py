"""A study's publication, read back from `anonml aggregator export`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from aggregator.protocols.installed import PROTOCOLS
from anon.errors import Malformed
from anon.transparency.documents import SignedHead, check_body, find, parse_chain
from anon.wire.cbor import decode


@frozen
class Published:
    """The verified chain and where its bodies are."""

    chain: Sequence[SignedHead]
    directory: Path

    def body(self, kind: str, part: int = 0) -> bytes:
        """A body that matches its head. Raises `Malformed` when it was not published."""
        head = find(self.chain, kind, part)
        if head is None:
            raise Malformed(f"{kind} {part}: not published")
        return check_body(head, (self.directory / "documents" / str(head.number)).read_bytes())

    def count(self, kind: str, part: int = 0) -> int:
        """The entries of a roster, or the packets of a slot's transcript; 0 when there is none."""
        return decode(self.body(kind, part), kind)[4] if find(self.chain, kind, part) else 0

    def accepted(self, slots: int) -> int:
        """Packets in the transcripts of all slots; 0 when there are none."""
        return sum(self.count("transcript", slot) for slot in range(slots))


def read_published(directory: Path) -> Published:
    """The study in an exported directory, its chain verified under the key that its manifest names."""
    manifest = PROTOCOLS.manifest((directory / "documents" / "0").read_bytes())
    heads = (directory / "heads").read_bytes()
    return Published(parse_chain(heads, manifest.aggregator_key, manifest.study_id), directory)
