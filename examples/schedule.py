"""The times of a demo's study, on its virtual clock."""

from __future__ import annotations

import random
import re

from attrs import frozen

from anon.study import proposal
from anon.study.proposal import Proposal

DAY = 86400
MOST = 10_000


@frozen
class Schedule:
    """Lengths of a study's stages in seconds. `ahead`: how far processes may run ahead of each other."""

    enrol: int
    settle: int
    binning: int
    collect: int
    ahead: float

    @classmethod
    def of(cls, written: proposal.Schedule) -> Schedule:
        """That of a study file. A process runs ahead by a twentieth of the shortest stage at most."""
        stages = (written.enrol, written.settle, written.binning, written.collect)
        return cls(*stages, ahead=min(WEEKS.ahead, min(filter(None, stages)) / 20))

    def sections(self, peers: int, most: int) -> str:
        """The study file's schedule and cohort, of at most so many members, and room for all peers."""
        return (
            f'[schedule]\nenrol = "{self.enrol}s"\nsettle = "{self.settle}s"\nbinning = "{self.binning}s"\n'
            f'collect = "{self.collect}s"\n\n[cohort]\nminimum = {max(2, peers // 2)}\nmaximum = {max(most, peers)}\n'
        )

    def comes(self, peers: int, start: float, seed: int) -> list[float]:
        """The instants at which people look at their links: each at a time of its own while enrolment is open."""
        drawn = random.Random(f"arrivals {seed}")
        return [start + drawn.uniform(0.01, 0.9) * self.enrol for _ in range(peers)]


WEEKS = Schedule(7 * DAY, DAY // 2, 2 * DAY, 7 * DAY, ahead=1800.0)
"""A week to enrol, two days to find cuts, a week to answer."""
THROUGH_TOR = Schedule(1800, 600, 1200, 1800, ahead=100.0)
"""Shorter, since each step of the clock waits for the circuits of everybody who is due in it."""


def scheduled(text: str, schedule: Schedule, peers: int) -> str:
    """The study file with its schedule and cohort replaced. It has no more members than the file says."""
    stated = re.search(r"(?m)^maximum = (\d+)$", text)
    most = min(MOST, int(stated[1])) if stated else MOST
    for name in ("schedule", "cohort"):
        text = re.sub(rf"(?ms)^\[{name}\][^\n]*\n.*?(?=^\[|\Z)", "", text)
    return text.rstrip() + "\n\n" + schedule.sections(peers, most)


def with_tellers(text: str, proposal: Proposal, addresses: list[str]) -> str:
    """The study file with these addresses for its tellers, in their order; the entries that it has fall away."""
    text = re.sub(r"(?ms)^\[\[tellers\]\][^\n]*\n.*?(?=^\[|\Z)", "", text)
    named = zip(proposal.tellers, addresses, strict=True)
    tables = [f'[[tellers]]\nname = "{teller.name}"\naddress = "{address}"\n' for teller, address in named]
    return text.rstrip() + "\n\n" + "\n".join(tables)
