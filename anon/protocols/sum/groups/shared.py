"""The protocol `groups` as both sides know it: Asplund and Froystad 2015, with additive shares and a promise for all.

Groups of members are drawn in each aggregation. The mean of a group's models is published, with the noise of each of
its receivers. All published models predict together. All rounds are letters (`anon.protocols.board`), and the draw is
in `anon.protocols.sum.groups.drawing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from anon.accounting.noisy_sums import GaussianSum, epsilon_of
from anon.errors import Malformed
from anon.ldp.epsilon import NanoEpsilon
from anon.protocols.board import Pages, page_of
from anon.protocols.charge import Charge, Measure, Unit
from anon.protocols.contract import MODEL, Layout, Place, Round
from anon.protocols.models.ensemble import longest_ensemble
from anon.protocols.sum.arranged import DELTA
from anon.protocols.sum.describe import taken, title
from anon.protocols.sum.design import unit_of
from anon.protocols.sum.groups import layout
from anon.protocols.sum.groups.drawing import KEYS, SHARES, TOLD, Group, groups, step_of, survey_of
from anon.protocols.sum.groups.layout import grouping_of, rho_of, rounds_of, weights_of, weights_survey
from anon.protocols.sum.groups.sections import GroupAveraging
from anon.protocols.sum.shared import longest_linear
from anon.protocols.sum.written import WrittenSum
from anon.protocols.words import ChanceLine, PacketKind
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.study.records import RECORD
from anon.text.sentences import Figure, Sentence, say, say_many

_STEPS: Final = ("opening values", "sharing", "telling sums")
_TENTH: Final = 10
"""Of so many members one is dishonest, in the example that consent has."""


class GroupsShared(WrittenSum):
    """See `anon.protocols.contract` and `anon.protocols.board.LettersPart`."""

    def how_many(self, proposal: Proposal) -> int:
        """One round of keys, and three for each aggregation."""
        if not isinstance(proposal.design, GroupAveraging):
            raise TypeError(f"no design of groups: {proposal.design.kind}")
        return rounds_of(proposal.design.aggregations)

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        """See `contract`. Nothing is drawn."""
        return layout.lay_out(proposal, windows)

    def check(self, study: Manifest) -> None:
        """See `contract`."""
        layout.check(study)

    def exposure(self, design: Layout) -> Charge:
        """The rho of a sum in each aggregation, with the noise of a single receiver: the others' counts for nothing."""
        grouping = grouping_of(design.part)
        if len(design.surveys) != rounds_of(grouping.aggregations):
            raise Malformed("manifest: its surveys are not those of groups; do not take part")
        weights = design.surveys[survey_of(0, TOLD)]
        condition = say(
            "at least one receiver of each of your groups keeps its shares to itself, and the aggregator neither "
            "invents members nor leaves out values to shape a draw"
        )
        rho = grouping.aggregations * rho_of(weights, grouping)
        return Charge(Measure.ZCDP, rho, Unit(unit_of(weights)), condition=condition)

    def promised(self, study: Manifest) -> NanoEpsilon:
        """See `CentralPart`."""
        return _exact_epsilon(study)

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        """One for each survey. Each aggregation is a session: who misses one of its rounds comes back in the next."""
        return tuple(
            Round(
                survey.window, "collecting", self._name(study, number), (number,), page_of(number),
                session=0 if number == KEYS else step_of(number)[0] + 1,
            )
            for number, survey in enumerate(study.surveys)
        )  # fmt: skip

    def _name(self, study: Manifest, number: int) -> str:
        if number == KEYS:
            return "telling keys"
        aggregation, step = step_of(number)
        many = grouping_of(study.part).aggregations
        return _STEPS[step] if many == 1 else f"{_STEPS[step]}, {aggregation + 1} of {many}"

    def results(self, study: Manifest) -> Mapping[Place, int]:
        """One ensemble, of a model for each group."""
        grouping = grouping_of(study.part)
        most = grouping.aggregations * (study.cohort.maximum // grouping.group)
        return {MODEL: longest_linear(study)[MODEL] + longest_ensemble(most, len(study.features))}

    def circle(self, study: Manifest, survey: Survey, writer: bytes, pages: Pages) -> tuple[bytes, ...]:
        """The receivers of the writer's group, of shares alone. A receiver writes to itself too."""
        if survey.survey == KEYS or step_of(survey.survey)[1] != SHARES:
            return ()
        found = drawn_groups(study, step_of(survey.survey)[0], pages)
        return next((group.receivers for group in found if writer in group.members), ())

    def summary(self, study: Manifest) -> Sentence:
        """See `contract`."""
        return say_many(
            "Each member fits a model to its own records. Members are drawn into groups once, and the mean of each "
            "group's models is published with noise. It takes {rounds} rounds.",
            "Each member fits a model to its own records. Members are drawn into groups {count} times, and the mean of "
            "each group's models is published with noise. It takes {rounds} rounds.",
            grouping_of(study.part).aggregations,
            rounds=len(study.surveys),
        )

    def title(self, study: Manifest, survey: Survey) -> str:
        """See `contract`."""
        if survey.survey != KEYS and step_of(survey.survey)[1] == SHARES:
            return title(study, weights_survey(study))
        return self._name(study, survey.survey)

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        """No odds, for every packet is exact: what leaves, what hides it, what is promised, and what it rests on."""
        survey, grouping = weights_survey(study), grouping_of(study.part)
        return (
            say_many(
                "Your machine fits a model to your records. Its {weights} exact weights leave once, in shares. The "
                "records do not.",
                "Your machine fits a model to your records. Its {weights} exact weights leave {count} times, in "
                "shares. The records do not.",
                grouping.aggregations,
                weights=weights_of(survey).length,
            ),
            *((taken(survey, study.records),) if study.records else ()),
            say(
                "Each time you are in a group of at least {group} members, drawn from values of all. {receivers} of "
                "them are its receivers, and each gets one share. All shares but one show nothing.",
                group=grouping.group,
                receivers=grouping.receivers,
            ),
            _promise(study),
            say(
                "Receivers are members. Say that one of {many} members is dishonest. Together they read your exact "
                "weights with a chance of about {chance}.",
                many=_TENTH,
                chance=Figure(f"{grouping.aggregations * _TENTH**-grouping.receivers:.2g}"),
            ),
            say(
                "The aggregator could invent members, or leave out values until a draw suits it. Then its helpers are "
                "the receivers of your group, and read your exact weights. Nothing shows that to you."
            ),
        )

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        """The kind that holds anything of the data. It is true always, so it has no odds and no picture."""
        shared, many = study.survey(survey_of(0, SHARES)), grouping_of(study.part).aggregations
        lines = tuple(ChanceLine(line, ()) for line in self.odds(study))
        drawn = say("one of your packets") if many == 1 else say("{count} of your packets", count=many)
        asks = say("exact numbers in shares")
        return (PacketKind(shared, (title(study, weights_survey(study)),), drawn, asks, lines, None),)


def drawn_groups(study: Manifest, aggregation: int, pages: Pages) -> tuple[Group, ...]:
    """The groups of an aggregation; none before its values are opened."""
    grouping = grouping_of(study.part)
    return groups(study.study_id, pages, aggregation, grouping.group, grouping.receivers)


@lru_cache(maxsize=64)
def _exact_epsilon(study: Manifest) -> NanoEpsilon:
    """The central epsilon of all that is published, at `DELTA`."""
    grouping, shape = grouping_of(study.part), weights_of(weights_survey(study))
    changed = shape.changed("replace-one")
    noisy = GaussianSum(shape.sensitivity_squared("replace-one"), changed, grouping.noise)
    return epsilon_of([noisy] * grouping.aggregations, DELTA)


def _promise(study: Manifest) -> Sentence:
    epsilon = Figure(f"{-(-_exact_epsilon(study) // 10**7) / 100:g}")
    if study.records is not None and study.records.unit == RECORD:
        return say(
            "Each receiver adds up the shares it was sent, and adds noise. All that is published keeps to epsilon "
            "{epsilon} for each of your records by itself, plus a chance of one in a million, if one receiver of each "
            "of your groups is honest.",
            epsilon=epsilon,
        )
    return say(
        "Each receiver adds up the shares it was sent, and adds noise. All that is published keeps to epsilon "
        "{epsilon}, plus a chance of one in a million, if one receiver of each of your groups is honest.",
        epsilon=epsilon,
    )
