"""The commands by which an owner takes a step that a rule names."""

from __future__ import annotations

from anon.protocols.charge import LOCAL
from peer.rules.advice import Advice, Limit

_COMMANDS = {
    Limit.PER_STUDY: "anonml peer budget --per-study",
    Limit.LIFETIME: "anonml peer budget --lifetime",
    Limit.MINIMUM_COHORT: "anonml peer budget --minimum-cohort",
    Limit.MINIMUM_WINDOW: "anonml peer budget --minimum-window",
}


def with_command(sentence: str) -> str:
    """The sentence, and in brackets the command that takes its step, if it has one."""
    step = sentence.next_step if isinstance(sentence, Advice) else None
    if step is None:
        return sentence
    which = "" if step.budget == LOCAL else f" --measure {step.budget.measure} --unit {step.budget.unit}"
    return f"{sentence} (`{_COMMANDS[step.limit]} {step.value}{which}`)"
