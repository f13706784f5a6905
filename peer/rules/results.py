"""Which results of a study its members can be offered: what was published, and never what can only be refused."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from anon.protocols.kinds import Stage, kinds_of
from anon.protocols.registry import protocol_of
from anon.study.manifest import Manifest
from anon.transparency.documents import SignedHead, find
from peer.rules.lifecycle import State
from peer.rules.unsummed import UNSUMMED

REPORT = "report"
MODEL = "model"
_WITHOUT_RESULTS = (UNSUMMED, *kinds_of(Stage.INSTEAD))
"""Kinds of the documents after which there is neither."""


class Results(StrEnum):
    """How far a study's results are."""

    OUT = "out"
    LATER = "later"
    NEVER = "never"


def results_of(kind: str, manifest: Manifest, chain: Sequence[SignedHead], state: State, now: float) -> Results:
    """The report or the model, by the heads that this peer has, or the time that the signed manifest names.

    A study that is over for one member may still collect from the others, so the member's state says nothing of it.
    After its end a peer looks at no more heads: whether there is a report then, only fetching it tells.
    """
    if kind == MODEL and not any(named == MODEL for named, _ in protocol_of(manifest).results(manifest)):
        return Results.NEVER
    if state is State.ABANDONED or any(find(chain, ended) is not None for ended in _WITHOUT_RESULTS):
        return Results.NEVER
    there = find(chain, kind) is not None or now >= manifest.timetable.ends
    return Results.OUT if there else Results.LATER
