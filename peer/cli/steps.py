"""The commands by which an owner takes a step that a rule names."""

from __future__ import annotations

from anon.protocols.charge import LOCAL
from anon.text.sentences import Sentence, Term, joined
from peer.rules.advice import Advice, Limit

_COMMANDS = {
    Limit.PER_STUDY: "anonml peer budget --per-study",
    Limit.LIFETIME: "anonml peer budget --lifetime",
    Limit.MINIMUM_COHORT: "anonml peer budget --minimum-cohort",
    Limit.MINIMUM_WINDOW: "anonml peer budget --minimum-window",
}


def with_command(sentence: Sentence) -> Sentence:
    """The sentence, and in brackets the command that takes its step, if it has one."""
    step = sentence.next_step if isinstance(sentence, Advice) else None
    if step is None:
        return sentence
    which = "" if step.budget == LOCAL else f" --measure {step.budget.measure} --unit {step.budget.unit}"
    command = Term(f"(`{_COMMANDS[step.limit]} {step.value}{which}`)")
    return joined((sentence, command), " ")
