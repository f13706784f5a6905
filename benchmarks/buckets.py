"""Documents in buckets, made of synthetic entries: time and memory to make each, and the bytes that a peer downloads.

    python -m benchmarks.buckets --members 10000 --members 100000 --members 1000000

Keys, credentials and tokens are random bytes of the right lengths. Each size runs in a process of its own, so that its
peak of memory is its own. The bytes are those of the exchanges after the manifest in a study of one packet: heads,
roster, seed, credentials, own buckets and decoys of both, and of the transcript's digests. Looks at the heads are
counted for the default settings.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from anon.protocols.kinds import padded_length
from anon.transparency.bucketed import InBuckets, credentials_in_buckets, roster_in_buckets, transcript_in_buckets
from anon.transparency.buckets import bits_of, bucket_of, decoys, split
from anon.transparency.documents import LONGEST_HEAD
from anon.wire.messages import RosterEntry, encode_seed
from anon.wire.packets import Occasion, PublishedPacket

REPORT, TOKEN = 8, 512
"""Bytes of a report and of a token, about those of a study of one packet."""
HEADS = 8
"""Heads of a study of one packet at its end."""
LOOKS = 5
"""Fetches of the heads after the manifest, by default: with the roster, two before the packet, two after the window."""
STUDY = bytes(32)


def main() -> None:
    """One line for each document, and one for a peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, action="append", default=[])
    for members in parser.parse_args().members or [10_000, 100_000]:
        for kind in ("roster", "credentials", "transcript"):
            _in_a_process(members, kind)


def _in_a_process(members: int, kind: str) -> None:
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("spawn").Process(target=_measured, args=(members, kind, sending))
    child.start()
    print(receiving.recv(), flush=True)
    child.join()


def _measured(members: int, kind: str, sending: Connection) -> None:
    made, seconds, entries_memory = _MAKERS[kind](members)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole, longest = sum(map(len, made.contents)), max(map(len, made.contents))
    fetched = _fetched(made)
    sending.send(
        f"{members:9,} {kind:11}: {made.document.buckets:5} buckets of {min(made.entries)} to {max(made.entries)}, "
        f"{whole / 1e6:7.1f} MB in all, longest {longest / 1e3:6.1f} kB; made in {seconds:6.2f} s of CPU, "
        f"peak {peak:6.0f} MB (entries alone {entries_memory:6.0f}); a peer fetches {fetched / 1e3:6.1f} kB"
    )


def _fetched(made: InBuckets) -> int:
    """Bytes of the document's own exchanges for one peer, averaged over a hundred."""
    size = padded_length(made.document, max(made.entries))
    total = 0
    for _ in range(0 if made.document.only else 100):
        own = bucket_of(os.urandom(32), made.document.bits)
        for bucket in (own, *decoys(os.urandom(32), b"", own, made.document.bits)):
            total += len(made.bucket(bucket).to_bytes(size))
    beside = LOOKS * HEADS * LONGEST_HEAD + len(encode_seed(STUDY, bytes(32))) if made.document.kind == "roster" else 0
    return total // 100 + len(made.document.to_bytes()) + beside


def _timed(make: Callable[[], InBuckets]) -> tuple[InBuckets, float, float]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.process_time()
    made = make()
    return made, time.process_time() - start, before


def _roster(members: int) -> tuple[InBuckets, float, float]:
    entries = [RosterEntry(os.urandom(32), bytes(32), bytes(48)) for _ in range(members)]
    return _timed(lambda: roster_in_buckets(STUDY, entries))


def _credentials(members: int) -> tuple[InBuckets, float, float]:
    issued = (os.urandom(80) for _ in range(members))
    parts: Sequence[Sequence[bytes]] = split(issued, lambda one: one, bits_of(members))
    return _timed(lambda: credentials_in_buckets(STUDY, parts))


def _transcript(members: int) -> tuple[InBuckets, float, float]:
    tokens = (os.urandom(48) + bytes(TOKEN - 48) for _ in range(members))
    packets = [PublishedPacket(Occasion(STUDY, 0, 0), 0, bytes(REPORT), (), token).to_bytes() for token in tokens]
    return _timed(lambda: transcript_in_buckets(STUDY, 0, packets))


_MAKERS = {"roster": _roster, "credentials": _credentials, "transcript": _transcript}

if __name__ == "__main__":
    main()
