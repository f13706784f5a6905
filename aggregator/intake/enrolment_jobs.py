"""The heavy part of enrolment, as a plain function on bytes that runs in worker processes. It knows no packet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from aggregator.rules.enrol import Applicant, open_enrolment
from aggregator.rules.refusal import PacketRefused
from aggregator.rules.unseal import StudyOpener
from anon.credential import open_commitment
from anon.errors import AnonmlError


def open_enrolments(
    secret: bytes, study: bytes, packets: int, posts: Sequence[bytes]
) -> list[Applicant | str]:
    """For each sealed post the applicant inside, signature and commitment proven, or the word that refuses it.

    `secret` is that of the study's sealing key (`StudyOpener`).
    """
    opener = _opener(secret)
    return [_applicant(post, opener, study, packets) for post in posts]


def _applicant(post: bytes, opener: StudyOpener, study: bytes, packets: int) -> Applicant | str:
    try:
        applicant = open_enrolment(post, opener, study, packets)
        open_commitment(applicant.enrolment.commitment, packets)
    except PacketRefused as turned:
        return turned.word
    except AnonmlError:
        return "rejected-proof"
    return applicant


@lru_cache(maxsize=4)
def _opener(secret: bytes) -> StudyOpener:
    return StudyOpener(secret)
