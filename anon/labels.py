"""The one table of domain-separation labels. Every hash and signature in the protocol starts with one of these.

A label is never reused for another purpose and never changed: a change of meaning takes a new version number.
"""

from __future__ import annotations

STUDY = b"anonml/1/study"
HEAD = b"anonml/1/head"
ENROLMENT = b"anonml/1/enrolment"
WITHDRAWAL = b"anonml/1/withdrawal"
INVITE = b"anonml/1/invite"
SEED_COMMITMENT = b"anonml/1/seed-commitment"
SEED = b"anonml/1/seed"
DRAW = b"anonml/1/draw"
SCORE = b"anonml/1/score"
SLOT_CONTEXT = b"anonml/1/slot-context"
PRESENTATION = b"anonml/1/presentation"
FINGERPRINT = b"anonml/1/fingerprint"
NYM_ENTROPY = b"anonml/1/nym-entropy"
HEDGED_SCALAR = b"anonml/1/hedged-scalar"
BATCH = b"anonml/1/batch"
STORED_ENROLMENT = b"anonml/1/stored-enrolment"
PACKET_DIGEST = b"anonml/1/packet-digest"
RELEASE_MASK = b"anonml/1/release-mask"
EVIDENCE = b"anonml/1/evidence"
CHAIN_FINGERPRINT = b"anonml/1/chain-fingerprint"
CREDENTIAL_BATCH = b"anonml/1/credential-batch"
BAD_CREDENTIAL = b"anonml/1/bad-credential"
VDAF_CONTEXT = b"anonml/1/vdaf-context"
VDAF_NONCE = b"anonml/1/vdaf-nonce"
