"""The numbers of packets held to the signed roster: a member has one tag in each slot, so nobody counts twice.

The roster's size is what its signed body says. In buckets that is a number, which the audit compares with the entries.
Invented members are in the roster, and so within these bounds: docs/threats.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from anon.study.manifest import Manifest


def slots_of(manifest: Manifest, transcripts: Mapping[int, int], in_buckets: bool) -> Counter[int]:
    """By slot, how many packets there are. `transcripts`: the same by transcript, which is a survey's or a slot's."""
    if in_buckets:
        return Counter(transcripts)
    packets = Counter[int]()
    for slot in manifest.slots:
        packets[slot.slot] = sum(transcripts.get(row.survey, 0) for row in slot.rows)
    return packets


def crowded(packets: Mapping[int, int], members: int) -> Iterator[str]:
    """A fault for each slot that has more packets than the roster has members."""
    for slot, number in sorted(packets.items()):
        if number > members:
            yield f"slot {slot} has {number} packets, and the signed roster {members} members: the others are invented"
