"""A round of letters for one member: bytes up and down, and processor time. `python -m benchmarks.letters`

Letters of 64 bytes to every seat of a circle, among so many members. A member sends one packet and reads the page of
all others: it checks every token, parses every report, and opens the letters of its own circle. Each figure is taken
with the native libraries and with Python alone, as on phones, in a process of its own. Writes
benchmarks/out/letters.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from anon.credential import (
    Credential,
    Verifier,
    blind_sign,
    commit,
    finalize,
    generate_secret_key,
    present,
    public_key,
    signer_nym_entropy,
    token_size,
)
from anon.crypto.backend import PURE, VARIABLE
from anon.crypto.sealing import OVERHEAD, SECRET_SIZE, seal
from anon.crypto.sealing.opening import Opener
from anon.protocols.board import page_body
from anon.transparency.documents import MAX_BODY
from anon.wire.cbor import decode
from anon.wire.letters import letter_info, parse_written, written_report, written_size
from anon.wire.packets import Layout, Occasion, PublishedPacket, parse_published

ROUNDS, LETTER, TEXT = 5, 64, 1
SIZES = ((50, 49), (200, 60), (1000, 80))
"""Members, and the seats of a circle."""
HEADER, CONTEXT, STUDY, INFO = b"benchmark study", b"benchmark slot", bytes(32), letter_info(bytes(32), 2, b"", b"")
ROOT = Path(__file__).resolve().parents[1]
Figures = dict[str, float]


def processor_ms(work: Callable[[], object], units: int = 1, runs: int = 3) -> float:
    """Milliseconds of processor time for a unit: the least of some runs."""

    def once() -> float:
        start = time.process_time()
        work()
        return (time.process_time() - start) * 1e3 / units

    return min(once() for _ in range(runs))


def credential_and_verifier() -> tuple[Credential, Verifier]:
    """A member's credential for a study of so many rounds."""
    secret_key = generate_secret_key(os.urandom)
    key, secrets = public_key(secret_key), commit(ROUNDS, os.urandom)
    entropy = signer_nym_entropy(os.urandom(32), b"enrolment")
    signature = blind_sign(secret_key, key, secrets.commitment_with_proof, HEADER, entropy, ROUNDS)
    return finalize(key, HEADER, signature, entropy, secrets), Verifier(key, HEADER, ROUNDS)


def packet_of(number: int, circle: int) -> bytes:
    """The published packet of a member: as long as a real one."""
    report = written_report(bytes(TEXT), [os.urandom(LETTER + OVERHEAD)] * circle)
    token = number.to_bytes(48, "big").ljust(token_size(ROUNDS), b"\0")
    return PublishedPacket(Occasion(STUDY, 1, 1), 2, report, (), token).to_bytes()


def read(body: bytes, circle: int) -> None:
    """All that reading a page takes beside tokens and seals."""
    for packet in decode(body, "page")[3]:
        parse_written(parse_published(packet).report, TEXT, circle, LETTER)


def measured() -> Figures:
    """Every figure, with the libraries of this process."""
    credential, verifier = credential_and_verifier()
    opener = Opener(os.urandom(SECRET_SIZE))
    sealed = [seal(bytes(LETTER), opener.public_key, INFO) for _ in range(20)]
    keys = [Opener(os.urandom(SECRET_SIZE)).public_key for _ in range(20)]
    most = max(members for members, _ in SIZES)
    headers = [b"packet %d" % number for number in range(most)]
    tokens = [(present(credential, CONTEXT, header, os.urandom), CONTEXT, header) for header in headers]
    found = {
        "token_made_ms": processor_ms(lambda: present(credential, CONTEXT, b"packet", os.urandom)),
        "seal_ms": processor_ms(lambda: [seal(bytes(LETTER), key, INFO) for key in keys], 20, runs=1),
        "open_ms": processor_ms(lambda: [opener.open(letter, INFO) for letter in sealed], 20),
    }
    for members, circle in SIZES:
        packets = [packet_of(number, circle) for number in range(members)]
        body = page_body(STUDY, 1, packets)
        layout = Layout(written_size(TEXT, circle, LETTER), (), token_size(ROUNDS))
        batch = tokens[:members]
        found |= {
            f"{members}_{circle}_up_bytes": layout.sealed_size,
            f"{members}_{circle}_page_bytes": len(body),
            f"{members}_{circle}_fits": float(len(body) <= MAX_BODY),
            f"{members}_{circle}_seal_ms": circle * found["seal_ms"],
            f"{members}_{circle}_check_ms": processor_ms(partial(verifier.check_batch, batch, os.urandom)),
            f"{members}_{circle}_read_ms": processor_ms(partial(read, body, circle)),
            f"{members}_{circle}_open_ms": circle * found["open_ms"],
        }
    return found


def measured_in_python() -> Figures:
    """The same in a process without native libraries."""
    command = [sys.executable, "-m", "benchmarks.letters", "--here"]
    environment = {**os.environ, VARIABLE: PURE}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true", help="only with the libraries of this process, as JSON")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out" / "letters.json")
    arguments = parser.parse_args()
    native = measured()
    if arguments.here:
        print(json.dumps(native))
        return
    python = measured_in_python()
    arguments.out.parent.mkdir(exist_ok=True)
    arguments.out.write_text(json.dumps({"native": native, "python": python}, indent=1))
    for name, value in native.items():
        print(f"{name:24} {value:14,.2f} {python[name]:14,.2f}")


if __name__ == "__main__":
    main()
