"""A staff's own study, rehearsed by made-up people: nothing in its file is changed, and only its title says so.

They are real peers in processes of their own, with real links and noise. An aggregator of the rehearsal's own serves
them, with the key by which the study's own tellers know the staff. All but the tellers share a virtual clock
(`examples.clock`), so no load of the machine makes anybody late. Tellers have no clock: they answer when asked.

It is no loosened form of a real study. It has an id and secrets of its own, names no address that others could reach,
and its links go to the made-up people alone. Minimum, epsilon and schedule are the file's.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from attrs import field, frozen

from aggregator.lab import synthetic
from aggregator.lab.simulation.people import People
from aggregator.report.rehearsal import REHEARSAL
from anon.crypto.nacl import SigningKey
from anon.storage.private_files import write_private
from anon.study.given import read_given
from anon.study.proposal import Proposal
from examples.scenes import Scene
from examples.schedule import Schedule
from examples.study_run import HOSTS, Wanted

OF_A_HOST = 25
"""People for whom another process is worth its start."""


@frozen
class OwnStudy(Wanted):
    """See `Wanted`. `proposal`: its file's."""

    proposal: Proposal = field(kw_only=True)

    @classmethod
    def of(cls, scene: Scene, folder: Path, proposal: Proposal, begins: float, key: SigningKey | None) -> OwnStudy:
        """In a folder that its owner alone reads. `key`: of the staff's home; None for a fresh one."""
        if key is not None:
            (folder / "aggregator").mkdir(mode=0o700)
            write_private(folder / "aggregator" / "signing.key", bytes(key))
        title = f"{REHEARSAL}{proposal.title}"
        return cls(scene, folder, secrets.randbits(31), begins=begins, title=title, proposal=proposal)

    @property
    def schedule(self) -> Schedule:
        """The file's."""
        return Schedule.of(self.proposal.schedule)

    @property
    def hosts(self) -> int:
        """Few people share one process."""
        return min(HOSTS, 1 + self.peers // OF_A_HOST)

    @property
    def least(self) -> int:
        """The study's own minimum."""
        return self.proposal.cohort.minimum

    def published_text(self, running: ExitStack) -> str:
        """The file's, with its tellers."""
        return self.scene.study_text


def made_up(file: Path, proposal: Proposal, people: int) -> Scene:
    """So many people with a row each. Raises `Malformed` where nothing can be made up for the study's queries."""
    columns, rows = synthetic.people(proposal, people, secrets.SystemRandom())
    table = proposal.tables[0].name
    peers = tuple({"table": table, "columns": list(columns), "rows": [row]} for row in rows)
    nobody = People({}, np.zeros(0, np.int64))
    given = read_given(proposal.given, file.parent)
    return Scene(file.stem, file.read_text("utf-8"), peers, nobody, nobody, True, given)
