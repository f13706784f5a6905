"""How long one look at a home takes in which many studies were joined, and at their manifests.

    python -m benchmarks.status [--surveys 200]

The page looks twice a second, in the loop that times packets. Each study asks so many surveys. Prints a table and
writes benchmarks/out/status.json.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from attrs import evolve

from anon.crypto.sealing.opening import Opener
from anon.ldp import NanoEpsilon
from anon.protocols.resolve import StudyKeys, resolve
from anon.route import DirectRoute
from anon.study.manifest import Manifest
from anon.study.slots import Row, Slot
from anon.wire.invite import Invite
from benchmarks.figures import Figure, publish
from benchmarks.peer import STUDY
from examples.protocols import PROTOCOLS
from peer.app import PeerApp
from peer.rules.consent import Policy
from peer.rules.ledger import Entry
from peer.store.home import PeerHome
from peer.store.records import Joining
from peer.store.store import Store

STUDIES = (1, 4, 5, 20, 80)
LOOKS = 50
"""In each row; the first, which parses what is not parsed yet, stands by itself."""


def manifest_of(surveys: int) -> Manifest:
    """A study of one slot that asks so many surveys; each call makes another."""
    keys = StudyKeys(os.urandom(32), Opener(os.urandom(32)).public_key, os.urandom(96), os.urandom(32))
    plain = resolve(PROTOCOLS.proposal(STUDY), keys, int(time.time()))
    asked = tuple(evolve(plain.surveys[0], survey=number) for number in range(surveys))
    return evolve(plain, surveys=asked, slots=(Slot(0, tuple(Row(number, 1) for number in range(surveys))),))


def join(store: Store, manifest: Manifest) -> None:
    """Store a study as joined."""
    key, reserved = manifest.aggregator_key, NanoEpsilon(manifest.epsilon)
    entry = Entry(manifest.study_id, manifest.title, key, "default", reserved=reserved)
    invite = Invite("127.0.0.1:1", key, manifest.study_id)
    store.join(Joining(entry, invite, manifest.to_bytes(), 2, b"\0", b"\0", 0.0, b""), lambda policy, ledger: None)


def measure(studies: int, surveys: int) -> Figure:
    """Looks at a home with so many studies."""
    with tempfile.TemporaryDirectory() as folder:
        app = PeerApp(PeerHome(Path(folder)), DirectRoute, time.time, os.urandom, policy=Policy(lifetime=10**13))
        with closing(app):
            for _ in range(studies):
                join(app.store, manifest_of(surveys))
            return {
                "studies": studies,
                "first_status_ms": _milliseconds(app.status, 1),
                "status_ms": _milliseconds(app.status, LOOKS),
                "first_manifests_ms": _milliseconds(lambda: _manifests(app), 1),
                "manifests_ms": _milliseconds(lambda: _manifests(app), LOOKS),
            }


def _manifests(app: PeerApp) -> list[Manifest]:
    return [study.manifest for study in app.store.studies()]


def _milliseconds(look: Callable[[], object], times: int) -> float:
    """Of this process's time for one look, on average."""
    start = time.process_time()
    for _ in range(times):
        look()
    return round((time.process_time() - start) / times * 1e3, 3)


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surveys", type=int, default=200, help="surveys of each study")
    surveys = parser.parse_args().surveys
    about: Figure = {"surveys_per_study": surveys, "looks": LOOKS}
    publish("status", [measure(studies, surveys) for studies in STUDIES], about)


if __name__ == "__main__":
    main()
