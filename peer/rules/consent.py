"""Taking part: a pure decision over the study, the owner's policy and the ledger, and the sheet that is shown before.

1. `explain` makes the sheet that the owner reads (`ConsentSheet`), from a manifest that passed
   `peer.rules.checks.check_manifest`.
2. `objections` lists why the owner's limits (`Policy`) refuse the study. With one of them no yes is possible.
3. The yes is always the owner's; the policy can only refuse. `decide` makes a `Consent` of it. That names the study,
   the epsilon that its manifest declares, and the fewest people in the roster. A study's id is its manifest's hash.
4. `peer.app.PeerApp.join` stores a yes as `peer.store.records.Joining`: reservation, manifest and enrolment, in one
   transaction. Within it `peer.store.store.Store.join` has `decide` asked once more.
5. Before anything of the data leaves, `peer.rules.bucket_checks.check_membership` holds the study to its consent.
   Epsilon may not be above what was consented, nor the roster smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from anon.errors import Malformed, Refused
from anon.ldp import NanoEpsilon, format_epsilon
from anon.protocols.charge import LOCAL, USUAL_LIMITS, Budget, Charge
from anon.protocols.consent_words import among_few, declared, to_check
from anon.protocols.cost_words import Amount, enough, epsilon_of
from anon.protocols.names import expectation
from anon.protocols.registry import charge_of, exposure_of, protocol_of
from anon.protocols.tellers import tellers_of
from anon.study.features import USUAL_COHORT, Table
from anon.study.manifest import Manifest
from anon.study.texts import faults_of
from anon.study.translations import StudyText, wording
from anon.text.foreign import Quoted
from anon.text.sentences import NOTHING, Figure, Sentence, joined, say, say_many
from anon.transparency.fingerprint import words
from anon.values import frozen
from anon.wire.addresses import is_loopback
from peer.rules.advice import Advice, Limit, NextStep
from peer.rules.durations import text_of
from peer.rules.given import about_given
from peer.rules.ledger import Ledger
from peer.rules.letters_words import about_letters, too_long_board
from peer.rules.limits import SAFE, BudgetLimit, demand_limits
from peer.rules.promise import approved_less, cost_statements, not_left, too_dear
from peer.rules.tellers import KnownTellers, NamedTeller, named_tellers, other_words

EVERY = "*"
"""In place of the designs that a policy allows: all that the program knows, also those that a later one will."""
ADMISSIONS = ("invite", "allow-list", "open")
SHORT_WINDOW = 3600


@frozen
class Policy:
    """The owner's limits. Epsilons count 1e-9.

    `minimum_window` is the shortest window, in seconds, that is accepted of a study served beyond this machine: in a
    shorter one a slow moment of this machine would show. At least half of a window must lie between its clock margins.

    `lifetime` and `max_epsilon` limit the local budget, over all studies and for one; `limits` those of other measures.
    `minimum_cohort` is the fewest people to hide among.
    """

    lifetime: int = USUAL_LIMITS[LOCAL][0]
    max_epsilon: int = USUAL_LIMITS[LOCAL][1]
    minimum_cohort: int = USUAL_COHORT
    admissions: tuple[str, ...] = ADMISSIONS
    designs: tuple[str, ...] = (EVERY,)
    minimum_window: int = 600
    data_set: str = "default"
    limits: tuple[BudgetLimit, ...] = SAFE

    def __attrs_post_init__(self) -> None:
        if min(self.lifetime, self.max_epsilon, self.minimum_window) < 0 or self.minimum_cohort < 2:
            raise Malformed(say("policy: expected amounts of 0 or more and a cohort of at least 2"))
        if not set(self.admissions) <= set(ADMISSIONS):
            raise Malformed(f"policy.admissions: expected some of {', '.join(ADMISSIONS)}")
        demand_limits(self.limits)

    def limit(self, budget: Budget) -> BudgetLimit:
        """The limits of a budget; 0 where the owner set none."""
        if budget == LOCAL:
            return BudgetLimit(budget.measure, budget.unit, self.lifetime, self.max_epsilon)
        set_here = (limit for limit in self.limits if limit.budget == budget)
        return next(set_here, BudgetLimit(budget.measure, budget.unit, 0, 0))

    def lifetimes(self) -> dict[Budget, int]:
        """The lifetime limit of every budget beside the local one, as a ledger takes them."""
        return {limit.budget: limit.lifetime for limit in self.limits}


@frozen
class Consent:
    """The owner's yes to one study, up to its `charge`, in a roster of at least `minimum_cohort` with the owner."""

    study: bytes
    charge: Charge
    minimum_cohort: int

    @property
    def epsilon(self) -> NanoEpsilon:
        """The amount of the charge (1e-9)."""
        return NanoEpsilon(self.charge.amount)


def objections(
    manifest: Manifest, policy: Policy, ledger: Ledger, now: float, address: str = ""
) -> tuple[Advice, ...]:
    """Why the policy says no, each with what to do next; empty when the owner may be asked.

    `address` is where the study is spoken to, if not where its manifest says: a loopback link stays on this machine.
    """
    charge, minimum = charge_of(manifest), manifest.cohort.minimum
    budget, cost = charge.budget, charge.amount
    reasons = [Advice(say("{fault}; decline, and tell who asks", fault=fault)) for fault in faults_of(manifest)]
    if now >= manifest.timetable.enrol_closes:
        reasons.append(Advice(say("enrolment has closed; ask for another study")))
    if not {manifest.design, EVERY} & {*policy.designs}:
        design = Quoted(manifest.design)
        reasons.append(
            Advice(say('the design {design} is not allowed; allow it in the policy, or decline', design=design))
        )
    if manifest.cohort.admission not in policy.admissions:
        admission = Quoted(manifest.cohort.admission)
        reasons.append(
            Advice(say('admission {kind} is not allowed; allow it in the policy, or decline', kind=admission))
        )
    whole, most = policy.limit(budget).lifetime, policy.limit(budget).per_study
    if cost > most:
        reasons.append(
            Advice(too_dear(budget, cost, most, whole), NextStep(Limit.PER_STUDY, _written(budget, most, cost), budget))
        )
    left = ledger.available_of(budget)
    if cost > left:
        raised = _written(budget, whole, whole + cost - left)
        reasons.append(Advice(not_left(budget, cost, left, whole), NextStep(Limit.LIFETIME, raised, budget)))
    if minimum < policy.minimum_cohort and manifest.cohort.maximum < policy.minimum_cohort:
        too_few = say(
            "at most {most} can take part, fewer than the {demanded} you demand; decline, or demand fewer",
            most=manifest.cohort.maximum,
            demanded=policy.minimum_cohort,
        )
        reasons.append(Advice(too_few, NextStep(Limit.MINIMUM_COHORT, str(manifest.cohort.maximum))))
    reasons += map(Advice, too_long_board(manifest))
    shortest = shortest_window(manifest)
    spoken_to = address or next(iter(manifest.addresses), "")
    if spoken_to and not is_loopback(spoken_to):
        if shortest < policy.minimum_window:
            too_short = say(
                "a window lasts {length}, less than the {least} you demand; decline, or allow shorter ones",
                length=text_of(shortest),
                least=text_of(policy.minimum_window),
            )
            reasons.append(Advice(too_short, NextStep(Limit.MINIMUM_WINDOW, text_of(shortest))))
        elif 2 * (sending := time_to_send(manifest)) < policy.minimum_window:
            too_narrow = say(
                "a window lasts {length}, and what is kept free at its ends leaves {sending} to send in, less than "
                "half of the {least} you demand; decline, or allow shorter ones",
                length=text_of(shortest),
                sending=text_of(sending),
                least=text_of(policy.minimum_window),
            )
            reasons.append(Advice(too_narrow, NextStep(Limit.MINIMUM_WINDOW, text_of(2 * sending))))
    return tuple(reasons)


def _written(budget: Budget, known: int, amount: int) -> Figure:
    """The limit that allows this amount, as an owner writes it."""
    return format_epsilon(enough(budget, known, amount))


def decide(
    manifest: Manifest, policy: Policy, ledger: Ledger, approved: int, now: float, address: str = ""
) -> Consent:
    """The consent to what the manifest declares, if the owner approved that much (1e-9).

    Raises `Refused` with every objection.

    >>> from importlib.resources import files
    >>> from anon.ldp import NANO
    >>> from anon.protocols.resolve import StudyKeys, resolve
    >>> from peer.protocols.installed import PROTOCOLS
    >>> census = PROTOCOLS.load_proposal(files("examples.census") / "study.toml")
    >>> manifest = resolve(census, StudyKeys(bytes(32), bytes(1216), bytes(96), bytes(32)), now=0)
    >>> decide(manifest, Policy(), Ledger(10 * NANO), approved=2 * NANO, now=0).epsilon
    2000000000
    >>> decide(manifest, Policy(max_epsilon=NANO), Ledger(10 * NANO), approved=2 * NANO, now=0)
    Traceback (most recent call last):
    anon.errors.Refused: not joined: it costs epsilon 2, more than the 1 allowed for one study; decline, or allow more
    """
    reasons: list[Sentence] = list(objections(manifest, policy, ledger, now, address))
    if approved < manifest.epsilon:
        held = Amount(charge_of(manifest).budget, approved, manifest)
        reasons.append(approved_less(held.epsilon, epsilon_of(manifest)))
    if reasons:
        raise Refused(say("not joined: {reasons}", reasons=joined(reasons)))
    minimum = max(policy.minimum_cohort, manifest.cohort.minimum)
    return Consent(manifest.study_id, charge_of(manifest), minimum)


def shortest_window(manifest: Manifest) -> int:
    """Seconds of the shortest sending window."""
    return min(survey.window.closes - survey.window.opens for survey in manifest.surveys)


def time_to_send(manifest: Manifest) -> int:
    """Seconds of the shortest sending window in which packets leave: without the clock margins at its ends."""
    return shortest_window(manifest) - 2 * manifest.timetable.margin


def is_short(manifest: Manifest) -> bool:
    """True if the consent screen warns of the time in which packets leave."""
    return shortest_window(manifest) < SHORT_WINDOW or 2 * time_to_send(manifest) < SHORT_WINDOW


@frozen
class ConsentQuestion:
    """A feature or the label as the owner sees it: its sentence and the query that computes it.

    `expects`: the direction that staff expect of a feature, in words; empty without one.
    """

    name: str
    sentence: StudyText
    query: str
    expects: Sentence = NOTHING


@frozen
class ConsentSheet:
    """Everything to know before a yes. Amounts count 1e-9; `objections` empty means that a yes is possible.

    `charge` is the whole cost, `cost` the sentences about it and `epsilon` its amount; the two budgets are those of its
    measure and unit.

    `addresses` are where the study is served to everybody, none when only on one machine; `data_source` says where the
    owner's file comes from, empty where staff did not say; `tables` is what the queries read; times are unix seconds:
    `collects` the first and last instant of packets.
    """

    study: bytes
    title: StudyText
    purpose: StudyText
    contact: str
    data_source: StudyText
    fingerprint: str
    addresses: tuple[str, ...]
    design: str
    admission: str
    minimum_cohort: int
    packets: int
    tellers: tuple[NamedTeller, ...]
    label: ConsentQuestion
    features: tuple[ConsentQuestion, ...]
    tables: tuple[Table, ...]
    summary: Sentence
    odds: tuple[Sentence, ...]
    charge: Charge
    cost: tuple[Sentence, ...]
    epsilon: NanoEpsilon
    epsilon_per_packet: tuple[NanoEpsilon, ...]
    epsilon_eq6: NanoEpsilon
    budget_before: NanoEpsilon
    budget_after: NanoEpsilon
    enrol_closes: int
    collects: tuple[int, int]
    ends: int
    statements: tuple[Sentence, ...]
    manifest: Manifest = field(repr=False)
    objections: tuple[Advice, ...] = field(default=())


def explain(
    manifest: Manifest,
    policy: Policy,
    ledger: Ledger,
    now: float,
    address: str = "",
    known: KnownTellers | None = None,
    language: str = "",
) -> ConsentSheet:
    """The sheet for a manifest that passed `checks.check_manifest`. `known`: the tellers of the owner's studies.
    `language`: the owner's, in which the study's own texts are told where it has them."""
    told = wording(manifest, language)
    study, charge = manifest.study_id, charge_of(manifest)
    left = NanoEpsilon(ledger.available_of(charge.budget))
    dearest = tuple(
        NanoEpsilon(max(manifest.surveys[row.survey].epsilon for row in slot.rows)) for slot in manifest.slots
    )
    cost = cost_statements(manifest, charge, exposure_of(manifest), dearest, left)
    return ConsentSheet(
        study=study,
        title=told.title,
        purpose=told.purpose,
        contact=manifest.contact,
        data_source=told.data_source,
        fingerprint=words(study),
        addresses=manifest.addresses,
        design=manifest.design,
        admission=manifest.cohort.admission,
        minimum_cohort=max(policy.minimum_cohort, manifest.cohort.minimum),
        packets=manifest.packets,
        tellers=(tellers := named_tellers(manifest, known or {})),
        label=ConsentQuestion(manifest.label.name, told.words[manifest.label.name], manifest.label.query.strip()),
        features=tuple(
            ConsentQuestion(
                feature.name, told.words[feature.name], feature.query.strip(), expectation(feature, manifest.label.name)
            )
            for feature in manifest.features
        ),
        tables=manifest.tables,
        summary=protocol_of(manifest).summary(manifest),
        odds=(*protocol_of(manifest).odds(manifest), *declared(manifest)),
        charge=charge,
        cost=cost,
        epsilon=NanoEpsilon(charge.amount),
        epsilon_per_packet=dearest,
        epsilon_eq6=NanoEpsilon(manifest.epsilon_per_attribute),
        budget_before=left,
        budget_after=NanoEpsilon(max(0, left - charge.amount)),
        enrol_closes=manifest.timetable.enrol_closes,
        collects=(
            min(survey.window.opens for survey in manifest.surveys),
            max(survey.window.closes for survey in manifest.surveys),
        ),
        ends=manifest.timetable.ends,
        statements=_statements(manifest, cost, policy, tellers),
        manifest=manifest,
        objections=objections(manifest, policy, ledger, now, address),
    )


def trust(manifest: Manifest, tellers: Sequence[NamedTeller]) -> tuple[Sentence, ...]:
    """The sentences about the tellers, with a warning for each known name that has other words."""
    arrangement = tellers_of(manifest)
    if arrangement is None:
        return ()
    return (*to_check(arrangement.has_spare), *(other_words(teller) for teller in tellers if teller.earlier))


def _statements(
    manifest: Manifest, cost: Sequence[Sentence], policy: Policy, tellers: Sequence[NamedTeller]
) -> tuple[Sentence, ...]:
    lines = [
        *cost,
        *trust(manifest, tellers),
        *about_letters(manifest),
        *about_given(manifest),
        say("Compare the fingerprint with a public place before you say yes."),
        say("Until enrolment closes you can leave and are struck off. Later you can stop, and nothing more is sent."),
        say("A packet that was sent cannot be called back."),
    ]
    if any(feature.expects for feature in manifest.features):
        lines.append(
            say(
                "Staff wrote down what they expect of some features before anybody answered. That says nothing about "
                "you and costs you nothing. The results lean on it where answers say little, or say if it is true."
            )
        )
    if manifest.cover.connections:
        lines.append(
            say(
                "Cover traffic: you make exactly {connections} connections in each of {windows}, at random times; "
                "those without a packet of yours carry a dummy, that says nothing about you and costs no epsilon. It "
                "widens the candidates for somebody who sees both the network and the aggregator; nothing else is "
                "claimed for it.",
                connections=manifest.cover.connections,
                windows=say_many("{count} sending window", "{count} sending windows", len(manifest.windows)),
            )
        )
    if manifest.cohort.minimum < policy.minimum_cohort:
        fewer = say(
            "You demand at least {demanded} people; this study may go on with {fewest}. It will stop for you, at no "
            "cost, if fewer than {demanded} enrol. To demand fewer, change that limit before you join.",
            demanded=policy.minimum_cohort,
            fewest=manifest.cohort.minimum,
        )
        lines.append(Advice(fewer, NextStep(Limit.MINIMUM_COHORT, str(manifest.cohort.minimum))))
    lines += among_few(max(policy.minimum_cohort, manifest.cohort.minimum), manifest.cohort.admission)
    if manifest.cohort.admission == "open":
        lines.append(
            say(
                "Admission is open: anyone, the aggregator included, can enrol any number of times. Do not count on "
                "hiding among the others; the epsilon above is all that protects you."
            )
        )
    else:
        lines.append(
            say(
                "The aggregator cannot tell which packet is whose among the honest members. How many are honest, "
                "nothing here can verify."
            )
        )
    if is_short(manifest):
        lines.append(
            say(
                "Packets leave within {seconds} s. So short a window hides your being online less well.",
                seconds=time_to_send(manifest),
            )
        )
    return tuple(lines)
