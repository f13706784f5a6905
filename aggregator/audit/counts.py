"""The numbers of packets held to the signed roster: a member has one tag in each slot, so nobody counts twice.

The roster's size is the number that its document says, which the audit compares with the entries.
Invented members are in the roster, and so within these bounds: docs/threats.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def crowded(packets: Mapping[int, int], members: int) -> Iterator[str]:
    """A fault for each slot that has more packets than the roster has members."""
    for slot, number in sorted(packets.items()):
        if number > members:
            yield f"slot {slot} has {number} packets, and the signed roster {members} members: the others are invented"
