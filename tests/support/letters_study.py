"""The study of the toy `letters`: its file, and manifests of any size that nobody published."""

from __future__ import annotations

from attrs import evolve

from anon.protocols.resolve import StudyKeys, resolve
from anon.study.manifest import Manifest, Survey
from anon.study.proposal import Proposal
from anon.study.slots import Row
from tests.support import letters
from tests.support.protocols import with_toy

PROTOCOLS = with_toy(letters.PROTOCOL)
KEYS = StudyKeys(bytes(32), bytes(1216), bytes(96), bytes(32))
STUDY = """
version = 1
title = "Who is tired"
purpose = "To count exactly, and to see no single answer."
contact = "nobody@example.org"
[tables]
person = ["age", "cups", "tired"]
[label]
name = "tired"
description = "You are tired."
query = "SELECT tired FROM person"
positive = [1]
negative = [0]
missing = "negative"
[[features]]
name = "age"
kind = "numeric"
description = "Your age."
query = "SELECT age FROM person"
missing = 0
range = [0, 80]
cuts = [40]
[design]
kind = "letters"
least = 3
[schedule]
enrol = "60m"
settle = "20m"
collect = "60m"
[cohort]
minimum = 3
maximum = 8
admission = "invite"
"""


def proposed(maximum: int = 8) -> Proposal:
    """The study file, for so many."""
    return PROTOCOLS.proposal(STUDY.replace("maximum = 8", f"maximum = {maximum}"))


def resolved(maximum: int = 8) -> Manifest:
    """Its manifest."""
    return resolve(proposed(maximum), KEYS, now=0)


def asking(manifest: Manifest, *surveys: Survey) -> Manifest:
    """The same, which asks these alone."""
    asked = tuple(evolve(survey, survey=at) for at, survey in enumerate(surveys))
    slots = tuple(
        evolve(manifest.slots[survey.survey], slot=at, rows=(Row(at, 1),)) for at, survey in enumerate(surveys)
    )
    size = max(survey.report_size for survey in asked)
    return evolve(manifest, surveys=asked, slots=slots, report_size=size)
