"""The plan of a study whose members write, or are parties: windows, bytes and processor time of each round.

Nothing is simulated: no made-up people hold what parties do. The times are those of `benchmarks.letters`, and for a
party's own model and proof the most that its study allows, on one core.
"""

from __future__ import annotations

from contextlib import suppress

from attrs import evolve, frozen

from aggregator.lab.simulation.linear_sums import is_linear, summed_survey
from aggregator.lab.simulation.parties import grouped_in, has_parties, weight_noise
from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.rules.lengths import demand_readable
from anon.errors import Malformed
from anon.protocols.contract import documents_of
from anon.protocols.posts import layout_of_packets
from anon.protocols.registry import protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sizes import longest_body, with_members
from anon.protocols.sortition import has_board
from anon.protocols.sum.design import circuit_of, summed_of
from anon.protocols.sum.parties import classifier_of
from anon.protocols.sum.sections import LOCAL_STRENGTH
from anon.protocols.vectors.averaging import AveragedWeights
from anon.protocols.vectors.logistic import steps_for
from anon.protocols.vectors.transfer import TransferredVotes
from anon.sharing.drafts import drafted
from anon.study.manifest import Manifest, Survey
from anon.study.proposal import Proposal
from anon.vdaf.circuits import Ball


@frozen
class LetterWork:
    """Milliseconds to make a token, to check one in a batch, to seal a letter and to open one."""

    made: float
    checked: float
    sealed: float
    opened: float


_MULTIPLIED, _FEW, _PROVED = 7.5e-5, 8, 0.037
"""Milliseconds of plain Python for a multiplication, how many of them a product or a gradient's entry takes, and
milliseconds for a bit of a proof."""
_FORECAST = (
    "Its design stays as it is, and no score is forecast: made-up people say nothing of parties. With data of your "
    "own, `anonml simulate STUDY.toml --data FILE.csv` forecasts it; --person COLUMN names the party of each row."
)
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


def with_rounds(proposal: Proposal, epsilon: float) -> Manifest | None:
    """The manifest of a study file whose members write, or are parties, at this epsilon; None for every other. Raises
    `Malformed` for parties' that cannot be resolved."""
    given = {named.name: b" " for named in proposal.given}  # a plan asks for the length of no given document
    if has_parties(proposal):
        design = evolve(proposal.design, epsilon=epsilon)  # type: ignore[call-arg]
        return resolve(drafted(evolve(proposal, design=design)), NO_KEYS, 0, given=given)
    with suppress(Malformed):
        manifest = resolve(drafted(proposal), NO_KEYS, 0, given=given)
        return manifest if has_board(manifest) else None
    return None


def letters_plan(manifest: Manifest, people: int) -> tuple[LettersRound, ...]:
    """The rounds of a study of `with_rounds`, with so many members, and a last entry for what is read after them.
    Raises `Refused` for one with a page, or a board, that no member reads."""
    demand_readable(manifest)
    study, size = with_members(manifest, people), layout_of_packets(manifest).sealed_size
    rounds = protocol_of(manifest).rounds(manifest)
    planned, fresh, packets, letters = list[LettersRound](), 0, 0, 0
    for study_round in rounds:
        asked = [manifest.survey(number) for number in study_round.surveys]
        seats = sum(survey.m for survey in asked if survey.written)
        own = sum(_own_work(manifest, survey) for survey in asked)
        planned.append(
            LettersRound(
                study_round.name,
                study_round.window.opens - manifest.timetable.enrol_closes,
                study_round.window.closes - study_round.window.opens,
                size * len(asked),
                fresh,
                *(
                    len(asked) * work.made + seats * work.sealed + packets * work.checked + letters * work.opened + own
                    for work in (COMPUTER, PHONE)
                ),
            )
        )
        fresh = sum(longest_body(study, *place) for place in documents_of([study_round]))
        packets += people * sum(survey.written for survey in asked)
        letters += min(seats, people)
    last = [packets * work.checked + letters * work.opened for work in (COMPUTER, PHONE)]
    return (*planned, LettersRound("after the last", planned[-1].opens + planned[-1].lasts, 0, 0, fresh, *last))


def _own_work(study: Manifest, survey: Survey) -> float:
    """Milliseconds of plain Python for a member's vector from the most records, and for the proof of it."""
    asked = summed_survey(study)
    if asked is None or survey.kind != asked.kind:
        return 0.0
    shape, (_, circuit) = summed_of(study, survey), circuit_of(survey)
    each = _FEW
    if isinstance(shape, AveragedWeights):
        each = 2 * steps_for(shape.strength)
    elif isinstance(shape, TransferredVotes):
        each = 2 * steps_for(LOCAL_STRENGTH) if classifier_of(survey) == "logistic" else shape.public
    proved = circuit.size * circuit.bits if isinstance(circuit, Ball) and not survey.written else 0
    return (study.records.most if study.records else 1) * shape.length * each * _MULTIPLIED + proved * _PROVED


def letters_words(manifest: Manifest, planned: tuple[LettersRound, ...], people: int) -> tuple[str, ...]:
    """All that staff should know before they ask for it."""
    words = []
    if has_board(manifest):
        words.append(f"A member's machine must be awake in each of its {len(planned) - 1} windows.")
        words.append("One that misses a round of letters writes none in the rest of that session.")
    if manifest.protocol == "oblivious":
        words.append("Keys and comparisons of oblivious averaging come on top of these times.")
    if not is_linear(manifest):
        return ("This study's members write to each other. No lab simulates it; its design stays as it is.", *words)
    if (noise := weight_noise(manifest, people)) is not None:
        grouping = grouped_in(manifest)
        where = f"In a group of {grouping.group}" if grouping else f"With {people:,} members"
        words.append(f"{where} the noise in each mean weight has a standard deviation of {noise:.3g}.")
    return (*words, _FORECAST)
