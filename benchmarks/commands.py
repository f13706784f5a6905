"""The processor time of commands that people type often.

    python -m benchmarks.commands [--runs 15] [--program ANONML]

Each run is a program of its own, with the files of its modules in memory: the tree's `anonml`, or another one. An
installed wheel needs less, since it looks for no tree. The first row is Python alone, by which figures of a busy
machine can be judged. The last three are in a home with one study, nothing of which is due; `look` fetches it
over loopback. Prints a table and writes benchmarks/out/commands.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from attrs import frozen
from nacl.signing import SigningKey

from anon.credential import generate_secret_key, public_key
from anon.crypto.sealing.opening import Opener
from anon.ldp import NanoEpsilon
from anon.protocols.resolve import StudyKeys, resolve
from anon.route import DirectRoute
from anon.transparency.documents import encode_chain, sign_head
from anon.transparency.together import with_heads
from anon.wire.invite import Invite
from benchmarks.figures import Figure, publish
from benchmarks.peer import STUDY
from examples.protocols import PROTOCOLS
from peer.app import PeerApp
from peer.rules.ledger import Entry
from peer.store.home import PeerHome
from peer.store.records import Joining

PROGRAM = Path(sys.executable).with_name("anonml")
COMMANDS = (
    ("--help",), ("peer", "status"), ("peer", "run", "--once"), ("peer", "budget"),
    ("peer", "--help"),
)


@contextmanager
def home_with_study(home: Path) -> Iterator[str]:
    """A peer's home with one study, whose enrolment is open; the link at which it is served meanwhile."""
    key, sealing = SigningKey.generate(), Opener(os.urandom(32)).public_key
    issuer = bytes(public_key(generate_secret_key(os.urandom)))
    keys = StudyKeys(bytes(key.verify_key), sealing, issuer, os.urandom(32))
    manifest = resolve(PROTOCOLS.proposal(STUDY), keys, int(time.time()))
    body = manifest.to_bytes()
    heads = encode_chain([sign_head(key, manifest.study_id, [], "manifest", 0, body)])

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = b"".join(with_heads(heads, [body])) if self.path.endswith("opening") else heads
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        invite = Invite(f"127.0.0.1:{server.server_port}", manifest.aggregator_key, manifest.study_id)
        reserved, due = NanoEpsilon(manifest.epsilon), float(manifest.timetable.enrol_closes)
        with closing(PeerApp(PeerHome(home), DirectRoute, time.time, os.urandom)) as app:
            entry = Entry(manifest.study_id, manifest.title, manifest.aggregator_key, "default", reserved=reserved)
            app.store.join(Joining(entry, invite, body, 2, b"\0", b"\0", due, b""), lambda policy, ledger: None)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield invite.link()
        finally:
            server.shutdown()


@frozen
class Measuring:
    """Milliseconds of processor time of one command of a program, over its runs; the first run is not counted."""

    program: Path
    runs: int

    def of(self, words: tuple[str, ...], home: Path, said: str = "") -> Figure:
        """One command in a home. `said`: its name in the table."""
        named = ["--home", str(home)] if words[0] == "peer" and words[-1] != "--help" else []
        return _figure([str(self.program), *words, *named], self.runs, said or " ".join(words))


def _figure(call: list[str], runs: int, said: str) -> Figure:
    seconds = [_seconds(call) for _ in range(runs + 1)][1:]
    shown = {"median_ms": median(seconds), "least_ms": min(seconds), "most_ms": max(seconds)}
    return {"command": said, **{name: round(1e3 * value, 1) for name, value in shown.items()}}


def _seconds(call: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # as installed
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL, env={**kept, "COLUMNS": "100"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--program", type=Path, default=PROGRAM)
    given = parser.parse_args()
    runs, measuring = given.runs, Measuring(given.program.absolute(), given.runs)
    with tempfile.TemporaryDirectory() as folder:
        rows = [_figure([sys.executable, "-c", "pass"], runs, "Python alone")]
        rows += [measuring.of(words, Path(folder) / "home") for words in COMMANDS]
        home = Path(folder) / "with-study"
        with home_with_study(home) as link:
            rows += [
                measuring.of(words, home, f"peer {words[1]}, one study")
                for words in (("peer", "status"), ("peer", "run", "--once"), ("peer", "look", link))
            ]
    publish("commands", rows, {"runs": runs, "load": round(os.getloadavg()[0], 1)})


if __name__ == "__main__":
    main()
