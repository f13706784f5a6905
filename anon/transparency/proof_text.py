"""The words and the figures of a proof against an aggregator, for people and for programs."""

from __future__ import annotations

from typing import Any

from anon.text.foreign import Quoted
from anon.transparency.bucket_evidence import NO_PLACE, BadBucket
from anon.transparency.equivocation import Evidence, Proof
from anon.transparency.fingerprint import head_words, words


def evidence_lines(proof: Proof) -> list[str]:
    """The statement of evidence, for people."""
    whose = [
        f"The key {proof.key.hex()}",
        f"of the study {Quoted(proof.manifest.title)} (id {proof.study.hex()[:16]}...,",
        f"fingerprint {words(proof.study)})",
    ]
    if isinstance(proof, Evidence):
        return whose + _equivocation(proof)
    return whose + _bad_bucket(proof)


def _equivocation(proof: Evidence) -> list[str]:
    return [
        f"signed two different documents number {proof.number}:",
        *(f"  {signed.head.kind} {signed.head.part}: {head_words(signed)}" for signed in (proof.first, proof.second)),
        "Both signatures verify: its aggregator told two stories (or was restored from a backup and went on elsewise).",
    ]


def _bad_bucket(proof: BadBucket) -> list[str]:
    head = proof.chain[-1]
    return [
        f"signed a document of {head.head.kind} ({head_words(head)})",
        f"of which bucket {proof.bucket} is not what it must be:",
        f"  {proof.fault}",
        "The signatures verify, and the bucket is the one that was signed: its aggregator put it there.",
    ]


def evidence_json(proof: Proof) -> dict[str, Any]:
    """The statement of evidence, for programs."""
    pair = (proof.first, proof.second) if isinstance(proof, Evidence) else (proof.chain[-1],)
    heads = [
        {
            "kind": signed.head.kind,
            "part": signed.head.part,
            "digest": signed.head.digest.hex(),
            "words": head_words(signed),
        }
        for signed in pair
    ]
    known = {
        "key": proof.key.hex(),
        "study": proof.study.hex(),
        "title": proof.manifest.title,
        "fingerprint": words(proof.study),
        "number": proof.number,
        "heads": heads,
    }
    if isinstance(proof, Evidence):
        return known | {"proves": "two-stories"}
    place = None if proof.place == NO_PLACE else proof.place
    return known | {"proves": "bad-bucket", "bucket": proof.bucket, "entry": place, "fault": proof.fault}
