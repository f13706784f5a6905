"""The study editor: what a study file's text would ask and cost, or every fault in it by its key."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from importlib import resources

from attrs import evolve, field, frozen

from aggregator.desk.drafts import LONGEST
from aggregator.lab.planning.outlook import BeliefOutlook, Outlook, outlook_of
from aggregator.lab.sample_file import as_file
from aggregator.protocols.installed import PROTOCOLS
from aggregator.study.expected import expected_of
from aggregator.study.publish import prepare
from aggregator.study.suggested_cuts import suggested_cuts
from anon.errors import AnonmlError
from anon.ldp import format_epsilon
from anon.protocols.cost_words import cost_in_words, promise_in_words
from anon.protocols.registry import charge_of, protocol_of
from anon.sharing.drafts import drafted
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal
from anon.study.translations import untranslated


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
class LintResult:
    """A text's faults, one line each; without any, what would be published now. `people`: how many are expected, where
    that is not the minimum. `sample`: last year's people as the text of a CSV file, where one was given."""

    faults: tuple[str, ...]
    proposal: Proposal | None = None
    manifest: Manifest | None = None
    outlook: Outlook | BeliefOutlook | None = None
    people: int | None = None
    sample: str = field(default="", repr=False)

    @property
    def ok(self) -> bool:
        """True if it can be published."""
        return self.manifest is not None

    @property
    def cost(self) -> str:
        """A member's cost, with the name of its measure."""
        return cost_in_words(self.manifest) if self.manifest else ""

    @property
    def promise(self) -> str:
        """The meaning of the cost."""
        return promise_in_words(self.manifest) if self.manifest else ""

    @property
    def symbol(self) -> str:
        """The name of the cost's amount."""
        return charge_of(self.manifest).budget.symbol if self.manifest else ""

    @property
    def expected(self) -> tuple[str, ...]:
        """The directions that the file declares, in words."""
        return expected_of(self.manifest) if self.manifest else ()

    @property
    def untranslated(self) -> tuple[str, ...]:
        """The texts that a further language of the file lacks, as lint says them."""
        return untranslated(self.manifest) if self.manifest else ()

    @property
    def suggested(self) -> tuple[str, ...]:
        """Cuts that staff may declare where a small group would have to look for them, and why, as lint says them."""
        return suggested_cuts(self.manifest, self.people) if self.manifest else ()

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


def with_outlook(linted: LintResult) -> LintResult:
    """The same with the outlook of the group that is expected, or of the smallest, which takes some seconds."""
    if linted.proposal is None or linted.manifest is None:
        return linted
    if linted.sample:
        with suppress(AnonmlError), as_file(linted.sample) as file:  # of a file that does not fit people are made up
            return evolve(linted, outlook=outlook_of(linted.proposal, linted.manifest, linted.people, file))
    return evolve(linted, outlook=outlook_of(linted.proposal, linted.manifest, linted.people))


def lint_text(text: str) -> LintResult:
    """Everything that `anonml study lint` looks at. Never raises for a text; nothing is stored."""
    if len(text) > LONGEST:
        return LintResult((f"the file is longer than {LONGEST // 1024} KiB",))
    try:
        proposal = PROTOCOLS.proposal(text)
        manifest, _ = prepare(drafted(proposal), bytes(32), time.time(), secrets.token_bytes, secrets.randbelow)
    except AnonmlError as fault:
        return LintResult(tuple(str(fault).splitlines()))
    return LintResult((), proposal, manifest)


def example() -> str:
    """The commented study file to begin from."""
    return resources.files("aggregator.study").joinpath("study.toml").read_text("utf-8")
