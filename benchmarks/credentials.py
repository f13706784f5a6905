"""The cost of checking everybody's credential: `python -m benchmarks.credentials --count 1000 100000`.

Distinct credentials are repeated to fill a list: decoding and folding cost the same. `ANONML_CRYPTO=pure` measures the
curve in Python.
"""

from __future__ import annotations

import argparse
import json
import os
import time

from anon.credential import (
    IssuedChecker,
    IssuedCredential,
    blind_sign,
    commit,
    generate_secret_key,
    public_key,
    signer_nym_entropy,
)

DISTINCT = 200
HEADER = bytes(64)


def make_list() -> tuple[IssuedChecker, list[IssuedCredential]]:
    """Good credentials of one issuer, and who checks them."""
    secret_key = generate_secret_key(os.urandom)
    key, issued = public_key(secret_key), []
    for place in range(DISTINCT):
        committed = commit(1, os.urandom).commitment_with_proof
        entropy = signer_nym_entropy(bytes(32), place.to_bytes(32, "big"))
        signature = blind_sign(secret_key, key, committed, HEADER, entropy, 1)
        issued.append(IssuedCredential(committed[:48], signature, entropy))
    return IssuedChecker(key, HEADER, 1), issued


def measure(count: int) -> dict[str, float]:
    """Seconds of wall clock and of processor for one good list, and for finding the one bad entry in its middle."""
    checker, issued = make_list()
    listed = (issued * -(-count // DISTINCT))[:count]
    wall, processor = time.perf_counter(), time.process_time()
    if checker.bad(listed, os.urandom):
        raise AssertionError("a good credential was called bad")
    figures = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}
    good, other = listed[count // 2], listed[count // 2 - 1]
    listed[count // 2] = IssuedCredential(good.commitment, other.signature, good.entropy)
    processor = time.process_time()
    if checker.bad(listed, os.urandom, most=1) != [count // 2]:
        raise AssertionError("the bad credential was not found")
    return figures | {"processor_one_bad": time.process_time() - processor}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description="The cost of checking everybody's credential.")
    parser.add_argument("--count", type=int, nargs="+", default=[1000])
    print(json.dumps({count: measure(count) for count in parser.parse_args().count}, indent=2))


if __name__ == "__main__":
    main()
