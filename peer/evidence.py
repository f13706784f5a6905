"""What this peer can show others: the two stories it was told, and the one it was told."""

from __future__ import annotations

from anon.documents import SignedHead, parse_head
from anon.encoding import decode
from anon.errors import Refused
from anon.evidence import Evidence, evidence_of
from anon.story import Story
from peer.store import Store


def kept(store: Store) -> list[Evidence]:
    """Every proof that was kept, in the form that others can check."""
    found = []
    for study, _what, proof in store.evidence():
        one, other = (SignedHead(parse_head(head), signature) for head, signature in decode(proof, "stored evidence"))
        found.append(evidence_of(store.study(study).manifest, one, other))
    return found


def told(store: Store, study: bytes) -> Story:
    """The heads of a study that this peer has seen so far. Raises `Refused` before it saw any."""
    known = store.study(study)
    if known.chain_bytes is None:
        raise Refused("no documents of this study were seen yet; `anonml peer run` fetches them once enrolment closed")
    return Story(known.manifest, known.chain_bytes)
