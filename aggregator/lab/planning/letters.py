"""The plan of a study whose members write: windows, bytes and processor time of each round. Nothing is simulated.

The times are those of `benchmarks.letters`, on one core.
"""

from __future__ import annotations

from contextlib import suppress

from attrs import frozen

from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.rules.lengths import demand_readable
from anon.errors import Malformed
from anon.protocols.contract import documents_of
from anon.protocols.posts import layout_of_packets
from anon.protocols.registry import protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sizes import longest_body, with_members
from anon.protocols.sortition import has_board
from anon.sharing.drafts import drafted
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal


@frozen
class LetterWork:
    """Milliseconds to make a token, to check one in a batch, to seal a letter and to open one."""

    made: float
    checked: float
    sealed: float
    opened: float


COMPUTER, PHONE = LetterWork(2.1, 0.6, 0.16, 0.09), LetterWork(11.6, 6.4, 5.4, 5.5)


@frozen
class LettersRound:
    """One member's part in a round: seconds until it opens and that it lasts, bytes, milliseconds of processor time.

    `fetches`: whatever was published since the round before. Tokens and letters of all earlier pages are checked and
    opened again in each round.
    """

    name: str
    opens: int
    lasts: int
    sends: int
    fetches: int
    computer: float
    phone: float


def with_letters(proposal: Proposal) -> Manifest | None:
    """The manifest of a study file whose members write; None for every other, and for one that cannot be resolved."""
    with suppress(Malformed):
        given = {named.name: b" " for named in proposal.given}  # a plan asks for the length of no given document
        manifest = resolve(drafted(proposal), NO_KEYS, 0, given=given)
        return manifest if has_board(manifest) else None
    return None


def letters_plan(manifest: Manifest, people: int) -> tuple[LettersRound, ...]:
    """The rounds of a study in which members write, with so many members, and a last entry for what is read after them.
    Raises `Refused` for one with a page, or a board, that no member reads."""
    demand_readable(manifest)
    study, size = with_members(manifest, people), layout_of_packets(manifest).sealed_size
    rounds = protocol_of(manifest).rounds(manifest)
    planned, fresh, packets, letters = list[LettersRound](), 0, 0, 0
    for study_round in rounds:
        asked = [manifest.survey(number) for number in study_round.surveys]
        seats = sum(survey.m for survey in asked if survey.written)
        planned.append(
            LettersRound(
                study_round.name,
                study_round.window.opens - manifest.timetable.enrol_closes,
                study_round.window.closes - study_round.window.opens,
                size * len(asked),
                fresh,
                *(
                    len(asked) * work.made + seats * work.sealed + packets * work.checked + letters * work.opened
                    for work in (COMPUTER, PHONE)
                ),
            )
        )
        fresh = sum(longest_body(study, *place) for place in documents_of([study_round]))
        packets += people * sum(survey.written for survey in asked)
        letters += min(seats, people)
    last = [packets * work.checked + letters * work.opened for work in (COMPUTER, PHONE)]
    return (*planned, LettersRound("after the last", planned[-1].opens + planned[-1].lasts, 0, 0, fresh, *last))


def letters_words(planned: tuple[LettersRound, ...]) -> tuple[str, ...]:
    """All that staff should know before they ask for it."""
    return (
        "This study's members write to each other. No lab simulates it; its design stays as it is.",
        f"A member's machine must be awake in each of its {len(planned) - 1} windows.",
        "One that misses a round of letters writes none in the rest of that session.",
    )
