"""The contract of a protocol's peer part. Pure: it never sends, stores or waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from anon.ldp import PerturbedReport, RandomBytes, RawCategory
from anon.protocols.contract import DocumentArrived, Place, Record, SurveyAnswer
from anon.study.manifest import Manifest, Survey


class PeerPart(Protocol):
    """The part on the owner's machine. Only `answers` sees the record, and only `peer.release` calls `perturb`."""

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        """The documents (kind, part) without which the survey cannot be answered."""

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """Read every document, also those that no drawn survey needs: whoever drew what stops at the same one. Raises
        `Malformed`."""

    def answers(
        self,
        manifest: Manifest,
        record: Record,
        slots: Sequence[tuple[int, int]],
        documents: Sequence[DocumentArrived],
    ) -> tuple[SurveyAnswer, ...]:
        """One answer for each of the slots (slot, survey) whose documents are among these. Raises `Malformed`, and
        never on account of the record: whether there is an answer depends on study and documents alone."""

    def random_size(self, survey: Survey) -> int:
        """Random bytes that `perturb` takes, for every record alike."""

    def perturb(self, survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        """The report of an answer, made by the survey's mechanism. Raises `ValueError` for another survey's answer."""
