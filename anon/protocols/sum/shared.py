"""The protocol `sum` as both sides know it: what a study of it must satisfy, exposes and says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise

from anon.crypto.sealing import OVERHEAD
from anon.errors import Malformed
from anon.ldp import NanoEpsilon
from anon.protocols.charge import Charge, Measure, Unit
from anon.protocols.contract import MODEL, ROWS, Layout, Place, Result, Round
from anon.protocols.models.rows import longest_rows
from anon.protocols.sum import arranged, describe
from anon.protocols.sum.design import MARGINALS, is_of_declared, sum_of, summed_of, unit_of
from anon.protocols.sum.parties import GIVEN
from anon.protocols.sum.rule import SCORES, enough_for
from anon.protocols.sum.standing import arrangement_of, place_of
from anon.protocols.vectors.transfer import TransferredVotes, public_rows
from anon.protocols.words import PacketKind
from anon.sharing.arrangement import Arrangement, TellerEntry, parse_arrangement
from anon.sharing.round_document import longest_round_sums
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import LONGEST_NAME, Proposal
from anon.text.foreign import fault
from anon.text.sentences import Sentence

_NUMBER, _TEXT = 32, 6
"""Characters of the longest float in JSON with its comma; bytes that JSON may make of one byte of a text."""


class SumShared:
    """Exact vectors, whose sums the study's tellers publish with noise (Prio3 and the discrete Gaussian). See
    `contract`."""

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        """One for each round, as long as `schedule.collect` and `schedule.settle` apart."""
        length, turn = proposal.schedule.collect, proposal.schedule.collect + proposal.schedule.settle
        starts = (settled + number * turn for number in range(arranged.rounds_of(proposal)))
        return tuple(Window(start, start + length) for start in starts)

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        """See `contract`. Nothing is drawn."""
        return arranged.lay_out(proposal, windows)

    def check(self, study: Manifest) -> None:
        """The tellers add up what the surveys say, under proofs of just that, with the noise that the cost declares."""
        with _declining():
            arrangement = arrangement_of(study)
            _demand_surveys(study)
            for teller in arrangement.tellers:
                _demand_words(teller)
            if arrangement.minimum != (fewest := arranged.fewest(study.cohort)):
                raise Malformed(f"a sum needs {arrangement.minimum} members, expected {fewest}")
            _demand_sums(study, arrangement)

    def exposure(self, design: Layout) -> Charge:
        """The rho of all sums, each with the noise of a single teller: the others' counts for nothing. With a spare a
        round counts twice, because two pairs can complete it where one teller breaks its word. See `roles`."""
        with _declining():
            arrangement = parse_arrangement(design.part)
            rho = arranged.cost_of(design.surveys, arrangement)
            units = {unit_of(survey) for survey in design.surveys}
            if len(units) != 1:
                raise Malformed("expected sums that all promise about a person, or all about a record")
        return Charge(Measure.ZCDP, rho, Unit(units.pop()), condition=describe.condition(arrangement))

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        """There is no such figure: the whole amount."""
        return NanoEpsilon(self.exposure(design).amount)

    def promised(self, study: Manifest) -> NanoEpsilon:
        """See `CentralPart`."""
        return describe.exact_epsilon(study)

    def enough(self, study: Manifest) -> int | None:
        """See `DeclaredPart`."""
        if study.surveys[0].kind != SCORES:
            return None
        arrangement = arrangement_of(study)
        return enough_for(study, arrangement.sums[0].sigma_squared * arrangement.summing)

    def arrangement(self, study: Manifest) -> Arrangement:
        """See `contract`."""
        return arrangement_of(study)

    def check_given(self, study: Manifest, given: Mapping[Place, bytes]) -> None:
        """See `contract`: public rows are as many as the study says, with a number for each feature."""
        votes = summed_of(study, study.surveys[0])
        if isinstance(votes, TransferredVotes):
            public_rows(votes, given.get(GIVEN, b""))

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        """See `contract`."""
        return tuple(size + OVERHEAD for size in arrangement_of(study).layout(study.packets).shares)

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        """One for each survey."""
        most = len(study.surveys)
        names = ["collection"] if most == 1 else [f"round {survey.round + 1} of {most}" for survey in study.surveys]
        return tuple(
            Round(survey.window, "collecting", name, (survey.survey,), place_of(survey.round))
            for survey, name in zip(study.surveys, names, strict=True)
        )

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        """The sums of each round."""
        arrangement, most = arrangement_of(study), study.cohort.maximum
        return {
            place_of(one.round): longest_round_sums(arrangement, one.round, most) for one in arrangement.sums
        }

    def results(self, study: Manifest) -> Mapping[Place, int]:
        """One model, of tables or linear, whose texts are the manifest's. Tables hold three numbers for each cell of a
        feature, and cuts; a linear model has four for each column. Of `marginals` there are rows as well."""
        cells = sum(feature.cardinality for feature in study.features)
        found = {MODEL: longest_linear(study)[MODEL] + _NUMBER * 5 * cells}
        if study.surveys[0].kind == MARGINALS:
            found[ROWS] = longest_rows(study.features, len(study.to_bytes()), study.surveys[0].parameters[0])
        return found

    def summary(self, study: Manifest) -> Sentence:
        """See `contract`."""
        return describe.summary(study)

    def title(self, study: Manifest, survey: Survey) -> str:
        """See `contract`."""
        return describe.title(study, survey)

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        """No odds, for every packet is exact: what leaves, to whom, what is promised, and what it rests on."""
        return describe.odds(study)

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        """See `contract`."""
        return describe.packet_kinds(study)

    def read_result(self, text_untrusted: str) -> Result:
        """None: neither tables nor the linear form name a protocol, so that any program predicts from them."""
        raise Malformed("model: neither tables nor the linear form name a protocol; fetch it again")


def longest_linear(study: Manifest) -> dict[Place, int]:
    """The bytes of a linear model's longest body, whose texts are the manifest's."""
    return {MODEL: _TEXT * len(study.to_bytes()) + _NUMBER * 16 * (len(study.features) + 2)}


@contextmanager
def _declining() -> Iterator[None]:
    """A fault of the manifest, with the next step."""
    try:
        yield
    except Malformed as fault:
        raise Malformed(f"manifest: {fault}; do not take part") from None


def _demand_surveys(study: Manifest) -> None:
    if not all(survey.exact for survey in study.surveys):
        raise Malformed("a study of sums has exact surveys alone")
    if [slot.rows[0].survey for slot in study.slots] != [survey.survey for survey in study.surveys]:
        raise Malformed("expected the survey of each slot in the slots' order")
    if [survey.round for survey in study.surveys] != [*range(len(study.surveys))]:
        raise Malformed("expected the rounds in order, one survey each")
    if any(one.window.closes >= other.window.opens for one, other in pairwise(study.surveys)):
        raise Malformed("a round opens before the one before it has closed")
    for survey in study.surveys:
        if not is_of_declared(survey, study.records):
            raise Malformed(f"survey {survey.survey} takes other records of a member than the study says")
        summed_of(study, survey)


def _demand_words(teller: TellerEntry) -> None:
    """The owner reads them."""
    if len(teller.name) > LONGEST_NAME or not teller.name.strip() or fault(teller.name):
        raise Malformed(f"a teller's name is not one line of {LONGEST_NAME} plain characters")


def _demand_sums(study: Manifest, arrangement: Arrangement) -> None:
    size, most_sums = arrangement.public_size, arrangement.most_sums
    for slot, (survey, one) in enumerate(zip(study.surveys, arrangement.sums, strict=True)):
        if one != sum_of(survey, slot, one.sigma_squared):
            raise Malformed(f"the tellers would add up something else than survey {survey.survey} says")
        if survey.epsilon != arranged.rho_of(survey, one.sigma_squared, most_sums):
            raise Malformed(f"survey {survey.survey} declares other noise than the tellers would add")
        if survey.size != size:
            raise Malformed(f"survey {survey.survey} has packets of another size")
