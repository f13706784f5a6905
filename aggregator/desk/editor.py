"""The study editor: what a study file's text would ask and cost, or every fault in it by its key."""

from __future__ import annotations

import secrets
import time
from importlib import resources
from pathlib import Path

from attrs import evolve, frozen

from aggregator.lab.planning.outlook import Outlook, outlook_of
from aggregator.study.publish import prepare
from anon.errors import AnonmlError
from anon.ldp import format_epsilon
from anon.protocols.registry import protocol_of
from anon.storage.private_files import write_private
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal, parse_proposal

LONGEST_TEXT = 256 * 1024
_DRAFT = "draft.toml"


@frozen
class DraftRequest:
    """One row of what the study would ask."""

    survey: int
    title: str
    mechanism: str
    m: int
    epsilon: str
    share: str


@frozen
class Linted:
    """A text's faults, one line each; without any, what would be published now."""

    faults: tuple[str, ...]
    proposal: Proposal | None = None
    manifest: Manifest | None = None
    outlook: Outlook | None = None

    @property
    def ok(self) -> bool:
        """True if it can be published."""
        return self.manifest is not None

    @property
    def epsilon(self) -> str:
        """The record-level epsilon."""
        return format_epsilon(self.manifest.epsilon) if self.manifest else ""

    @property
    def asks(self) -> tuple[DraftRequest, ...]:
        """Every survey with its mechanism, cost and share of its slot."""
        if self.manifest is None:
            return ()
        rows, protocol = [], protocol_of(self.manifest)
        for slot in self.manifest.slots:
            for row in slot.rows:
                survey = self.manifest.survey(row.survey)
                share = f"{row.weight / slot.total:.1%}"
                cost = format_epsilon(survey.epsilon)
                rows.append(
                    DraftRequest(
                        survey.survey, protocol.title(self.manifest, survey), survey.mechanism, survey.m, cost, share
                    )
                )
        return tuple(rows)


def with_outlook(linted: Linted) -> Linted:
    """The same with the outlook of its smallest group, which takes some seconds."""
    if linted.proposal is None or linted.manifest is None:
        return linted
    return evolve(linted, outlook=outlook_of(linted.proposal, linted.manifest))


def lint_text(text: str) -> Linted:
    """Everything that `anonml study lint` looks at. Never raises for a text; nothing is stored."""
    if len(text) > LONGEST_TEXT:
        return Linted((f"the file is longer than {LONGEST_TEXT // 1024} KiB",))
    try:
        proposal = parse_proposal(text)
        manifest, _ = prepare(proposal, bytes(32), time.time(), secrets.token_bytes, secrets.randbelow)
    except AnonmlError as fault:
        return Linted(tuple(str(fault).splitlines()))
    return Linted((), proposal, manifest)


def draft(home: Path) -> str:
    """The text that was last checked here, or the commented example."""
    kept = home / _DRAFT
    if kept.is_file():
        return kept.read_text("utf-8")
    return resources.files("aggregator.cli").joinpath("study.toml").read_text("utf-8")


def keep_draft(home: Path, text: str) -> None:
    """Keep a text for the next visit."""
    if len(text) <= LONGEST_TEXT:
        write_private(home / _DRAFT, text.encode("utf-8", "replace"))


def forget_draft(home: Path) -> None:
    """The study is published; the next one starts from the example."""
    (home / _DRAFT).unlink(missing_ok=True)
