"""Proofs against aggregators, and the chains that this peer saw, to show to others."""

from __future__ import annotations

from collections.abc import Sequence

from anon.errors import Refused
from anon.text.sentences import say
from anon.transparency.equivocation import Proof, parse_kept_evidence
from anon.transparency.exported_chain import ExportedChain
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
    return [parse_kept_evidence(proof, study.manifest) for study, proof in stored if not study.refused]


def seen_chain(store: Store, study: bytes) -> ExportedChain:
    """The heads of a study that this peer has seen so far. Raises `Refused` before it saw any."""
    known = store.study(study)
    if known.chain_bytes is None:
        raise Refused(say(
            "no documents of this study were seen yet; `anonml peer run` fetches them once enrolment closed",
        ))
    return ExportedChain(known.manifest, known.chain_bytes)
