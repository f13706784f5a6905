"""Reports per second of one real peer: perturb, token, padding and seal, and one durable commit of charge and packet.

    python -m benchmarks.peer [--first 100]

The peer is the real one (`peer.release`, `peer.store.store`) with operating-system randomness and `synchronous = FULL`,
so that a commit waits for the disk. Studies have one packet each, as in the one-packet design, and a home has ten of
them. The work grows from 1x to 4x. Prints a table and writes benchmarks/out/peer.json.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

from attrs import frozen
from nacl.signing import SigningKey

from anon.credential import (
    Credential,
    blind_sign,
    commit,
    finalize,
    generate_secret_key,
    public_key,
    signer_nym_entropy,
)
from anon.crypto.sealing.opening import Opener
from anon.ldp import NanoEpsilon, RawCategory
from anon.protocols.outgoing import SurveyAnswer
from anon.protocols.resolve import StudyKeys, resolve
from anon.study.manifest import Manifest
from anon.wire.invite import Invite
from anon.wire.messages import credential_header, seed_commitment
from benchmarks.figures import Figure, publish
from examples.protocols import PROTOCOLS
from peer.release import release
from peer.rules.consent import Policy
from peer.rules.ledger import Entry
from peer.store.home import PeerHome
from peer.store.outbox import ScheduledPacket
from peer.store.records import Evaluation, Joining, VerifiedEnrolment
from peer.store.store import Store

GROWTH = (1, 2, 4)
STUDIES_PER_HOME = 10
CATEGORIES = 32
STUDY = f"""
version = 1
title = "Study"
purpose = "To measure a peer."
contact = "nobody@example.org"
[tables]
person = ["place", "income"]
[label]
name = "income"
description = "Income"
query = "SELECT income FROM person"
positive = ["high"]
negative = ["low"]
missing = "negative"
[[features]]
name = "place"
kind = "categorical"
description = "Place"
query = "SELECT place FROM person"
categories = [{", ".join(f'"{number}"' for number in range(CATEGORIES))}]
missing = "0"
[design]
kind = "one-packet"
epsilon = 2.0
[schedule]
enrol = "1h"
settle = "10m"
collect = "1h"
[cohort]
minimum = 2
"""


@frozen
class Ready:
    """A study that has passed all checks and waits for its one report."""

    manifest: Manifest
    credential: Credential
    verified: VerifiedEnrolment


@frozen
class Spent:
    """Seconds of one report: perturb, token and seal together; and its commit."""

    release: float
    commit: float


def prepare(now: int) -> Ready:
    """One study with a real credential."""
    issuer, sealing, signing = generate_secret_key(os.urandom), Opener(os.urandom(32)), SigningKey.generate()
    value = os.urandom(32)
    keys = StudyKeys(
        bytes(signing.verify_key), sealing.public_key, bytes(public_key(issuer)), seed_commitment(value)
    )
    manifest = resolve(PROTOCOLS.proposal(STUDY), keys, now)
    made, roster, seed = commit(manifest.packets, os.urandom), os.urandom(32), os.urandom(32)
    header = credential_header(manifest.study_id, roster)
    entropy = signer_nym_entropy(seed, os.urandom(32))
    signature = blind_sign(
        issuer, public_key(issuer), made.commitment_with_proof, header, entropy, manifest.packets
    )
    credential = finalize(public_key(issuer), header, signature, entropy, made)
    return Ready(manifest, credential, VerifiedEnrolment((), roster, seed, signature, (0,)))


def settle_in(folder: Path, studies: list[Ready]) -> Store:
    """A home that consented to these studies and has checked them."""
    home = PeerHome(folder)
    home.prepare()
    store = Store(home.store_path, os.urandom, Policy(lifetime=sum(one.manifest.epsilon for one in studies)))
    for one in studies:
        study = one.manifest.study_id
        reserved = NanoEpsilon(one.manifest.epsilon)
        entry = Entry(study, one.manifest.title, one.manifest.aggregator_key, "default", reserved=reserved)
        invite = Invite("127.0.0.1:1", one.manifest.aggregator_key, study)
        joining = Joining(entry, invite, one.manifest.to_bytes(), 2, b"\0", b"\0", 0.0, b"")
        store.join(joining, lambda policy, ledger: None)
        store.record_enrolled(study, 0.0)
        store.record_verified(study, one.verified, Evaluation(0.0, {}, b""))
        store.record_evaluated(study, b"\0", (), ())
    return store


def report(store: Store, ready: Ready) -> Spent:
    """The measured part: what a peer does for one answer, up to the commit after which it may be sent."""
    manifest = ready.manifest
    answering = SurveyAnswer(0, 0, RawCategory(7, manifest.survey(0).m))
    study = manifest.study_id
    start = time.perf_counter()
    released = release(study, manifest, answering, ready.credential, os.urandom)
    made = time.perf_counter()
    store.journal(study, [ScheduledPacket(released, 0.0)], ())
    return Spent(made - start, time.perf_counter() - made)


def measure(count: int, growth: int) -> Figure:
    """`count` reports, one after the other."""
    spent: list[Spent] = []
    for start in range(0, count, STUDIES_PER_HOME):
        with tempfile.TemporaryDirectory() as scratch:
            studies = [prepare(int(time.time())) for _ in range(min(STUDIES_PER_HOME, count - start))]
            with closing(settle_in(Path(scratch), studies)) as store:
                spent += [report(store, one) for one in studies]
    seconds = sum(one.release + one.commit for one in spent)
    return {
        "work": f"{growth}x",
        "reports": count,
        "seconds": round(seconds, 3),
        "reports_per_second": round(count / seconds, 1),
        "median_perturb_token_seal_ms": round(_median([one.release for one in spent]) * 1e3, 3),
        "median_commit_ms": round(_median([one.commit for one in spent]) * 1e3, 3),
    }


def _median(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2]


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=100, help="reports of the first round")
    first = parser.parse_args().first
    measure(20, 0)
    rows = [measure(growth * first, growth) for growth in GROWTH]
    survey = prepare(0).manifest.survey(0)
    about: Figure = {"mechanism": survey.mechanism, "m": survey.m, "tokens_per_study": 1, "cores": os.cpu_count()}
    publish("peer", rows, about)


if __name__ == "__main__":
    main()
