"""Speed of tokens: made, verified alone, verified in batches, issued. `python benchmarks/tokens.py [--seconds 20]`

Milliseconds on one core: medians with the fastest and slowest run, and the median of processor time, which a busy
machine distorts less. Writes benchmarks/out/tokens.json. `threads_2_speedup` is the gain of two batches in two
threads over one after the other: what threads, rather than processes, buy the server. `phone_...` are the prover's
figures with the curve in Python (docs/mobile.md), from a process of its own: `phone_make` takes a new context each
time, as every slot of a peer does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from anon.credential import (
    Credential,
    PublicKey,
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

HEADER, CONTEXT = b"benchmark study", b"benchmark slot"
BATCHES = (16, 64, 256, 1024)
BAD = (1, 64)
GOALS_MS = {"make": 2.5, "verify_batch_256": 1.3, "phone_make": 100.0, "phone_finalize": 3000.0}
ROOT = Path(__file__).resolve().parents[1]
Figures = dict[str, float]
Item = tuple[bytes, bytes, bytes]


def timed(work: Callable[[], object], seconds: float, units: int = 1) -> Figures:
    """Milliseconds per unit: median, min, max and number of runs, repeating for about `seconds` (at least 5 runs)."""
    work()
    runs: list[float] = []
    processor: list[float] = []
    stop = time.perf_counter() + seconds
    while len(runs) < 5 or time.perf_counter() < stop:
        start, busy = time.perf_counter(), time.process_time()
        work()
        processor.append((time.process_time() - busy) * 1e3 / units)
        runs.append((time.perf_counter() - start) * 1e3 / units)
    return {
        "median": statistics.median(runs),
        "min": min(runs),
        "max": max(runs),
        "processor_median": statistics.median(processor),
        "runs": len(runs),
    }


def two_threads_speedup(work: Callable[[], object]) -> float:
    """Time of two runs one after the other, divided by the time of two at once. 1 means that the lock is held."""

    def at_once() -> None:
        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return timed(work, 1)["median"] * 2 / timed(at_once, 1)["median"]


def measure(seconds: float) -> dict[str, Figures]:
    """All figures; `seconds` is shared out."""
    each = seconds / 16
    secret_key = generate_secret_key(os.urandom)
    key, secrets = public_key(secret_key), commit(1, os.urandom)
    entropy = signer_nym_entropy(os.urandom(32), b"enrolment")
    commitment = secrets.commitment_with_proof

    def issue() -> bytes:
        return blind_sign(secret_key, key, commitment, HEADER, entropy, 1)

    signature = issue()
    credential = finalize(key, HEADER, signature, entropy, secrets)
    figures = {
        "commit": timed(lambda: commit(1, os.urandom), each),
        "issue": timed(issue, each),
        "finalize": timed(lambda: finalize(key, HEADER, signature, entropy, secrets), each),
    }
    return figures | measure_checks(key, credential, each)


def measure_checks(key: PublicKey, credential: Credential, each: float) -> dict[str, Figures]:
    """Making and checking of tokens."""
    verifier, items = Verifier(key, HEADER, 1), make_items(credential, max(BATCHES))
    figures = {
        "make": timed(partial(present, credential, CONTEXT, b"packet", os.urandom), each),
        "verify_alone": timed(partial(verifier.check, *items[0]), each),
    }
    for size in BATCHES:
        figures[f"verify_batch_{size}"] = timed(check(verifier, items[:size]), each, size)
    growth = figures["verify_batch_256"]["median"] * 256 / (figures["verify_batch_64"]["median"] * 64)
    figures["growth_64_to_256"] = {"factor": growth}
    for bad in BAD:
        # Evenly spread, each for another packet than its own: what it costs a stranger least to send.
        places = range(0, max(BATCHES), max(BATCHES) // bad)
        spoilt = [(*item[:2], b"other") if at in places else item for at, item in enumerate(items)]
        spent = timed(partial(verifier.check_batch, spoilt, os.urandom), each, len(items))
        honest = figures[f"verify_batch_{max(BATCHES)}"]["processor_median"]
        figures[f"bad_{bad}_of_{len(items)}"] = {"factor": spent["processor_median"] / honest}
    figures["threads_2_speedup"] = {"factor": two_threads_speedup(check(verifier, items[:64]))}
    return figures


def measure_prover(seconds: float) -> dict[str, Figures]:
    """A peer's work, with the curve that this process has underneath."""
    secret_key = generate_secret_key(os.urandom)
    key, secrets = public_key(secret_key), commit(1, os.urandom)
    entropy = signer_nym_entropy(os.urandom(32), b"enrolment")
    signature = blind_sign(secret_key, key, secrets.commitment_with_proof, HEADER, entropy, 1)
    credential = finalize(key, HEADER, signature, entropy, secrets)
    contexts = iter(range(10**9))
    return {
        "phone_commit": timed(lambda: commit(1, os.urandom), seconds / 4),
        "phone_finalize": timed(lambda: finalize(key, HEADER, signature, entropy, secrets), seconds / 4),
        "phone_make": timed(
            lambda: present(credential, b"slot %d" % next(contexts), b"packet", os.urandom),
            seconds / 2,
        ),
    }


def measure_phone(seconds: float) -> dict[str, Figures]:
    """`measure_prover` with the curve in Python."""
    command = [sys.executable, "-m", "benchmarks.tokens", "--prover", "--seconds", str(seconds)]
    environment = {**os.environ, VARIABLE: PURE}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    figures: dict[str, Figures] = json.loads(done.stdout)
    return figures


def make_items(credential: Credential, count: int) -> list[Item]:
    """`count` tokens of one slot, each for its own packet."""
    headers = [b"packet %d" % number for number in range(count)]
    return [(present(credential, CONTEXT, header, os.urandom), CONTEXT, header) for header in headers]


def check(verifier: Verifier, items: Sequence[Item]) -> Callable[[], object]:
    """The work of one batch."""

    def work() -> object:
        outcomes = verifier.check_batch(items, os.urandom)
        if not all(isinstance(outcome, bytes) for outcome in outcomes):
            raise RuntimeError("a good token was refused")
        return outcomes

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=16)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out" / "tokens.json")
    parser.add_argument("--prover", action="store_true", help="only the prover's figures, as JSON")
    arguments = parser.parse_args()
    if arguments.prover:
        print(json.dumps(measure_prover(arguments.seconds)))
        return
    figures = measure(arguments.seconds) | measure_phone(arguments.seconds / 2)
    for name, figure in figures.items():
        if "median" in figure:
            goal = f"  (goal {GOALS_MS[name]})" if name in GOALS_MS else ""
            print(
                f"{name:34} {figure['median']:7.3f} ms  [{figure['min']:.3f} .. {figure['max']:.3f}]  "
                f"processor {figure['processor_median']:.3f}{goal}"
            )
        else:
            print(f"{name:34} {figure['factor']:7.2f} x")
    size = token_size(1)
    report = {"unit": "ms per token, one core", "token_bytes": size, "goals_ms": GOALS_MS, "figures": figures}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
