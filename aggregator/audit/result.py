"""The outcome of an audit, for programs and for people."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from anon.transparency.fingerprint import words

UNSEEN = (
    "no audit sees packets that were left out (each peer finds its own), invented members, or when packets came"
)


@frozen
class Finding:
    """Something published that does not hold. `document`: its kind and part."""

    document: str
    fault: str


@frozen
class AuditResult:
    """The checks that were made, and their findings. Without findings everything published fits together.

    `report`: the page that the documents give, "" where they give none; `report_checked`: the published one is the same
    but for counts of refusals, which only the aggregator knows. `pinned`: the key was known from elsewhere.
    `not_checked`: files that were compared with nothing.
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

    @property
    def ok(self) -> bool:
        """True if nothing was found."""
        return not self.findings

    def figures(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "study": self.study.hex(),
            "ok": self.ok,
            "enrolled": self.enrolled,
            "packets": self.packets,
            "model_checked": self.model_checked,
            "report_checked": self.report_checked,
            "key_checked": self.pinned,
            "not_checked": list(self.not_checked),
            "findings": [{"document": finding.document, "fault": finding.fault} for finding in self.findings],
        }

    def lines(self) -> list[str]:
        """For people."""
        model = "model recomputed" if self.model_checked else "no model to recompute"
        model += ", report made again" if self.report_checked else ""
        head = f"study {words(self.study)}: {self.enrolled} enrolled, {self.packets} packets verified, {model}"
        lines = [f"{finding.document}: {finding.fault}" for finding in self.findings]
        faults = f"{len(lines)} fault{'' if len(lines) == 1 else 's'}"
        lines = [head, *lines, "everything published fits together" if self.ok else faults]
        lines += [f"not checked: {name}" for name in self.not_checked]
        return [*lines, *self._beyond()] if self.ok else lines

    def _beyond(self) -> list[str]:
        """The limits of a check that found nothing."""
        lines = ["compare the words above with a public place: another study of the same name fits together as well"]
        if not self.pinned:
            lines.append("the key was taken from what was checked; --key KEY checks it, as an invite link has it")
        if self.report_checked:
            lines.append("the report's counts of refusals are the aggregator's word")
        return [*lines, UNSEEN]
