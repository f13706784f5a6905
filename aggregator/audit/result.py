"""The outcome of an audit, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import field, frozen

from anon.transparency.fingerprint import words

UNSEEN = (
    "no audit sees packets that were left out (each peer finds its own), invented members, when packets came, or "
    "tellers that show each other their shares"
)


class Verdict(Enum):
    """The three levels of an audit: its word for programs, and the code with which the command ends."""

    ALL_CHECKED = "all-checked", 0
    NOT_ALL_CHECKED = "not-all-checked", 9
    FINDINGS = "findings", 1

    def __init__(self, word: str, exit_code: int) -> None:
        self.word = word
        self.exit_code = exit_code


@frozen
class Finding:
    """Something published that does not hold. `document`: its kind and part."""

    document: str
    fault: str


@frozen
class AuditResult:
    """The checks that were made, and their findings. Under `Verdict.ALL_CHECKED` everything published fits together.

    `report`: the page that the documents give, "" where they give none; `report_checked`: the published one is the same
    but for counts of refusals, which only the aggregator knows. `pinned`: the key was known from elsewhere.
    `not_checked`: files and documents that were compared with nothing, such as a report in other words. `not_summed`:
    by survey, packets of its transcript that the tellers' sum leaves out. `unsummed`: the reason for which the study
    ended without a sum; empty where it did not.

    A study without findings may still not be checked to the last file:

    >>> result = AuditResult(bytes(32), 20, 20, model_checked=True, findings=(), not_checked=("report.html",))
    >>> result.ok, result.verdict.word, result.verdict.exit_code
    (True, 'not-all-checked', 9)
    """

    study: bytes
    enrolled: int
    packets: int
    model_checked: bool
    findings: tuple[Finding, ...]
    report_checked: bool = False
    report: str = field(default="", repr=False)
    pinned: bool = False
    not_checked: tuple[str, ...] = ()
    not_summed: Mapping[int, int] = field(factory=dict)
    unsummed: str = ""

    @property
    def ok(self) -> bool:
        """True if nothing was found, whether or not everything was checked."""
        return not self.findings

    @property
    def verdict(self) -> Verdict:
        """The level: findings before anything else."""
        if self.findings:
            return Verdict.FINDINGS
        return Verdict.NOT_ALL_CHECKED if self.not_checked else Verdict.ALL_CHECKED

    def figures(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "study": self.study.hex(),
            "verdict": self.verdict.word,
            "enrolled": self.enrolled,
            "packets": self.packets,
            "model_checked": self.model_checked,
            "report_checked": self.report_checked,
            "key_checked": self.pinned,
            "not_checked": list(self.not_checked),
            "not_summed": {str(survey): count for survey, count in self.not_summed.items()},
            "unsummed": self.unsummed,
            "findings": [{"document": finding.document, "fault": finding.fault} for finding in self.findings],
        }

    def lines(self) -> list[str]:
        """For people."""
        model = "results recomputed" if self.model_checked else "no results to recompute"
        model += ", report made again" if self.report_checked else ""
        head = f"study {words(self.study)}: {self.enrolled} enrolled, {self.packets} packets verified, {model}"
        lines = [f"{finding.document}: {finding.fault}" for finding in self.findings]
        lines = [head, *lines, self._in_words()]
        lines += [f"not checked: {name}" for name in self.not_checked]
        lines += [f"the study ended without a sum: {self.unsummed}"] if self.unsummed else []
        lines += [_not_summed(survey, count) for survey, count in self.not_summed.items() if count]
        return [*lines, *self._beyond()] if self.ok else lines

    def _in_words(self) -> str:
        faults, left = len(self.findings), len(self.not_checked)
        if self.verdict is Verdict.FINDINGS:
            return f"{faults} fault{'' if faults == 1 else 's'}"
        if self.verdict is Verdict.NOT_ALL_CHECKED:
            return f"no fault in what was checked; {left} thing{' was' if left == 1 else 's were'} not checked"
        return "everything published fits together"

    def _beyond(self) -> list[str]:
        """The limits of a check that found nothing."""
        lines = ["compare the words above with a public place: another study of the same name fits together as well"]
        if not self.pinned:
            lines.append("the key was taken from what was checked; --key KEY checks it, as an invite link has it")
        if self.report_checked:
            lines.append("the report's counts of refusals are the aggregator's word")
        return [*lines, UNSEEN]


def _not_summed(survey: int, count: int) -> str:
    packets = "1 packet of its transcript is" if count == 1 else f"{count} packets of its transcript are"
    return f"survey {survey}: {packets} not in the sum; a teller refused them, or the aggregator left them out"
