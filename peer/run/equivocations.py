"""Proofs against aggregators, and the chains that this peer saw, to show to others."""

from __future__ import annotations

from collections.abc import Sequence

from anon.errors import Refused
from anon.transparency.documents import SignedHead, parse_head
from anon.transparency.equivocation import Proof, evidence_of, parse_evidence
from anon.transparency.exported_chain import ExportedChain
from anon.wire.cbor import decode
from peer.store.records import Study
from peer.store.store import Store


def kept(store: Store) -> list[Proof]:
    """Every proof that was kept, in the form that others can check."""
    return proofs_of(stored_proofs(store))


def stored_proofs(store: Store) -> list[tuple[Study, bytes]]:
    """Every proof as it is stored, with its study."""
    return [(store.study(study), proof) for study, _what, proof in store.evidence()]


def proofs_of(stored: Sequence[tuple[Study, bytes]]) -> list[Proof]:
    """Stored proofs, verified again; an aggregator decides how long that takes, so never on a loop that sends."""
    return [_proof(study, proof) for study, proof in stored if not study.refused]


def _proof(study: Study, stored: bytes) -> Proof:
    """Two heads are stored as they are, everything else as the file that others check."""
    first, *rest = decode(stored, "stored evidence")
    if isinstance(first, bytes):
        return parse_evidence(stored)
    one, other = (SignedHead(parse_head(head), signature) for head, signature in (first, *rest))
    return evidence_of(study.manifest, one, other)


def seen_chain(store: Store, study: bytes) -> ExportedChain:
    """The heads of a study that this peer has seen so far. Raises `Refused` before it saw any."""
    known = store.study(study)
    if known.chain_bytes is None:
        raise Refused("no documents of this study were seen yet; `anonml peer run` fetches them once enrolment closed")
    return ExportedChain(known.manifest, known.chain_bytes)
