"""Whether to take part: a pure decision over the study, the owner's policy and the ledger, and what is shown before.

The policy can only refuse. The yes is always the owner's, and for at least the epsilon that the manifest declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from attrs import field, frozen

from anon.errors import Malformed, Refused
from anon.fingerprint import words
from anon.ldp import Mechanism, NanoEpsilon, format_epsilon
from anon.ldp.epsilon import NANO
from anon.ldp.mechanism import SCALE
from anon.ldp.subset import SubsetSelection
from anon.protocols.registry import protocol_of
from anon.study.manifest import Manifest, Survey
from anon.study.parts import Table
from peer.ledger import Ledger

ADMISSIONS = ("invite", "allow-list", "open")
SHORT_WINDOW = 3600


@frozen
class Policy:
    """What the owner allows at all. Epsilons count 1e-9; `minimum_window` is in seconds.

    `lifetime` is the one budget of this installation. `minimum_cohort` is the fewest people to hide among.
    """

    lifetime: int = 10 * NANO
    max_epsilon: int = 5 * NANO
    minimum_cohort: int = 20
    admissions: tuple[str, ...] = ADMISSIONS
    designs: tuple[str, ...] = ("one-packet", "paper")
    minimum_window: int = 0
    data_set: str = "default"

    def __attrs_post_init__(self) -> None:
        if min(self.lifetime, self.max_epsilon, self.minimum_window) < 0 or self.minimum_cohort < 2:
            raise Malformed("policy: expected amounts of 0 or more and a cohort of at least 2")
        if not set(self.admissions) <= set(ADMISSIONS):
            raise Malformed(f"policy.admissions: expected some of {', '.join(ADMISSIONS)}")


@frozen
class Consent:
    """The owner's yes to one study, up to `epsilon`, among at least `minimum_cohort` others."""

    study: bytes
    epsilon: NanoEpsilon
    minimum_cohort: int


def objections(manifest: Manifest, policy: Policy, ledger: Ledger, now: float) -> tuple[str, ...]:
    """Why the policy says no, each with what to do next; empty when the owner may be asked."""
    cost, minimum = manifest.epsilon, manifest.cohort.minimum
    found = []
    if now >= manifest.timetable.enrol_closes:
        found.append("enrolment has closed; ask for another study")
    if manifest.design not in policy.designs:
        found.append(f'the design "{manifest.design}" is not allowed; allow it in the policy, or decline')
    if manifest.cohort.admission not in policy.admissions:
        found.append(f'admission "{manifest.cohort.admission}" is not allowed; allow it in the policy, or decline')
    if cost > policy.max_epsilon:
        found.append(
            f"it costs epsilon {format_epsilon(cost)}, more than the {format_epsilon(policy.max_epsilon)} allowed for "
            f"one study; decline, or allow more: `anonml peer budget --per-study {format_epsilon(cost)}`"
        )
    left = ledger.available
    if cost > left:
        enough = format_epsilon(ledger.lifetime + cost - left)
        found.append(
            f"it costs epsilon {format_epsilon(cost)} and {format_epsilon(left)} is left; decline, or raise your "
            f"lifetime budget: `anonml peer budget --lifetime {enough}`"
        )
    if minimum < policy.minimum_cohort and manifest.cohort.maximum < policy.minimum_cohort:
        found.append(
            f"at most {manifest.cohort.maximum} can take part, fewer than the {policy.minimum_cohort} you demand; "
            f"decline, or demand fewer: `anonml peer budget --minimum-cohort {manifest.cohort.maximum}`"
        )
    if shortest_window(manifest) < policy.minimum_window:
        found.append(f"a window lasts {shortest_window(manifest)} s, less than {policy.minimum_window} s; decline")
    return tuple(found)


def decide(manifest: Manifest, policy: Policy, ledger: Ledger, approved: int, now: float) -> Consent:
    """The consent for a yes up to `approved` (1e-9). Raises `Refused` with every objection."""
    found = list(objections(manifest, policy, ledger, now))
    if approved < manifest.epsilon:
        found.append(
            f"you approved epsilon {format_epsilon(approved)} and it declares {format_epsilon(manifest.epsilon)}; "
            "approve that much, or decline"
        )
    if found:
        raise Refused("not joined: " + "; ".join(found))
    minimum = max(policy.minimum_cohort, manifest.cohort.minimum)
    return Consent(manifest.study_id, NanoEpsilon(manifest.epsilon), minimum)


def shortest_window(manifest: Manifest) -> int:
    """Seconds of the shortest sending window."""
    return min(survey.window.closes - survey.window.opens for survey in manifest.surveys)


@frozen
class Question:
    """A feature or the label as the owner sees it: its sentence and the query that computes it."""

    name: str
    sentence: str
    query: str


@frozen
class ConsentSheet:
    """Everything to know before a yes. Epsilons count 1e-9; `objections` empty means that a yes is possible.

    `address` is where the study is served to everybody, empty when only on one machine; `tables` is what the queries
    read; times are unix seconds: `collects` the first and last instant of packets.
    """

    study: bytes
    title: str
    purpose: str
    contact: str
    fingerprint: str
    address: str
    design: str
    admission: str
    minimum_cohort: int
    packets: int
    label: Question
    features: tuple[Question, ...]
    tables: tuple[Table, ...]
    odds: tuple[str, ...]
    epsilon: NanoEpsilon
    epsilon_per_packet: tuple[NanoEpsilon, ...]
    epsilon_eq6: NanoEpsilon
    budget_before: NanoEpsilon
    budget_after: NanoEpsilon
    enrol_closes: int
    collects: tuple[int, int]
    ends: int
    statements: tuple[str, ...]
    objections: tuple[str, ...] = field(default=())


def explain(manifest: Manifest, policy: Policy, ledger: Ledger, now: float) -> ConsentSheet:
    """The sheet for a manifest that passed `checks.check_manifest`."""
    study = manifest.study_id
    dearest = tuple(
        NanoEpsilon(max(manifest.surveys[row.survey].epsilon for row in slot.rows)) for slot in manifest.slots
    )
    return ConsentSheet(
        study=study,
        title=manifest.title,
        purpose=manifest.purpose.strip(),
        contact=manifest.contact,
        fingerprint=words(study),
        address=manifest.address,
        design=manifest.design,
        admission=manifest.cohort.admission,
        minimum_cohort=max(policy.minimum_cohort, manifest.cohort.minimum),
        packets=manifest.packets,
        label=Question(manifest.label.name, manifest.label.description, manifest.label.query.strip()),
        features=tuple(Question(one.name, one.description, one.query.strip()) for one in manifest.features),
        tables=manifest.tables,
        odds=odds(manifest.surveys),
        epsilon=NanoEpsilon(manifest.epsilon),
        epsilon_per_packet=dearest,
        epsilon_eq6=NanoEpsilon(manifest.epsilon_per_attribute),
        budget_before=ledger.available,
        budget_after=NanoEpsilon(max(0, ledger.available - manifest.epsilon)),
        enrol_closes=manifest.timetable.enrol_closes,
        collects=(
            min(survey.window.opens for survey in manifest.surveys),
            max(survey.window.closes for survey in manifest.surveys),
        ),
        ends=manifest.timetable.ends,
        statements=_statements(manifest, dearest, policy, ledger),
        objections=objections(manifest, policy, ledger, now),
    )


def odds(surveys: Sequence[Survey]) -> tuple[str, ...]:
    """In words, from the integer probabilities: how often each kind of packet tells the truth. One line per kind."""
    kinds = {(survey.kind == "bit", survey.mechanism, survey.m, survey.p, survey.q): survey for survey in surveys}
    return tuple(_odds_of_bit(survey) if bit else _odds_of(survey.build()) for (bit, *_), survey in kinds.items())


def _odds_of_bit(survey: Survey) -> str:
    built = survey.build()
    return (
        f"One plus or minus about one of your categories and the label: rounded at random first, then kept with "
        f"{built.p / SCALE:.1%} and turned around with {built.q / SCALE:.2%}; epsilon {format_epsilon(built.epsilon)}."
    )


def _odds_of(mechanism: Mechanism) -> str:
    true, other = mechanism.p / SCALE, mechanism.q / SCALE
    cost = f"epsilon {format_epsilon(mechanism.epsilon)}"
    if mechanism.name == "krr":
        return (
            f"One answer out of {mechanism.m}: your true one with {true:.1%}, each of the others with {other:.2%}; "
            f"{cost}."
        )
    if isinstance(mechanism, SubsetSelection):
        return (
            f"{mechanism.w} answers out of {mechanism.m}: your true one among them with {true:.1%}, each of the others "
            f"with {other:.1%}; {cost}."
        )
    return (
        f"{mechanism.m} yes-or-no marks, one per possible answer: at your true answer a yes with {true:.1%}, "
        f"at any other a yes with {other:.1%}; {cost}."
    )


def _statements(manifest: Manifest, dearest: Sequence[int], policy: Policy, ledger: Ledger) -> tuple[str, ...]:
    exposure, _delta = protocol_of(manifest).exposure(manifest)
    growth = _growth(manifest.epsilon)
    packets = f"{manifest.packets} perturbed packet{'s' if manifest.packets > 1 else ''}"
    each = ", ".join(map(format_epsilon, dearest))
    total, left = format_epsilon(manifest.epsilon), format_epsilon(max(0, ledger.available - manifest.epsilon))
    said = [
        f"You send {packets}; at most epsilon {each} each.",
        f"About your whole record: epsilon {total}; recomputed from the probabilities: {format_epsilon(exposure)}.",
        f"Whatever anyone believed about you, the odds of it move by at most {growth}, even if all packets are linked.",
        f"Per-attribute (AnonML eq. 6): {format_epsilon(manifest.epsilon_per_attribute)}. This is not the guarantee.",
        f"Your budget: {format_epsilon(ledger.available)} now, {left} with this study. What is unused returns.",
        "That you take part is visible to the aggregator. What you answer is not.",
        "Compare the fingerprint with a public place before you say yes.",
        "You can leave until enrolment closes. What was sent cannot be called back.",
    ]
    if manifest.cover.connections:
        windows = len(manifest.windows)
        said.append(
            f"Cover traffic: you make exactly {manifest.cover.connections} connections in each of {windows} sending "
            f"window{'s' if windows > 1 else ''}, at random times; those without a packet of yours carry a dummy, that "
            "says nothing about you and costs no epsilon. It widens the candidates for somebody who sees both the "
            "network and the aggregator; nothing else is claimed for it."
        )
    if manifest.cohort.minimum < policy.minimum_cohort:
        said.append(
            f"You demand at least {policy.minimum_cohort} people; this study may go on with {manifest.cohort.minimum}. "
            f"It will stop for you, at no cost, if fewer than {policy.minimum_cohort} enrol; to demand fewer: "
            f"`anonml peer budget --minimum-cohort {manifest.cohort.minimum}`, before you join."
        )
    if manifest.cohort.admission == "open":
        said.append(
            "Admission is open: anyone, the aggregator included, can enrol any number of times. Do not count on hiding "
            "among the others; the epsilon above is all that protects you."
        )
    else:
        said.append(
            "The aggregator cannot tell which packet is whose among the honest members. How many are honest, nothing "
            "here can verify."
        )
    if shortest_window(manifest) < SHORT_WINDOW:
        said.append(
            f"Packets leave within {shortest_window(manifest)} s. So short a window hides your being online less well."
        )
    return tuple(said)


def _growth(epsilon: int) -> str:
    factor = exp(epsilon / NANO)
    return f"a factor of {factor:.2g}" if factor < 1000 else "a factor of more than 1000"
