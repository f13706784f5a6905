"""The pages' words about a study: where it stands, its windows, its costs. Plain values for the templates."""

from __future__ import annotations

from collections.abc import Sequence

from anon.protocols.categories import feature_category, is_clamped, is_missing, is_missing_label
from anon.protocols.charge import LOCAL, Budget
from anon.protocols.contract import Record
from anon.protocols.cost_words import Amount, in_epsilon
from anon.protocols.names import category_alone
from anon.study.features import Feature
from anon.study.manifest import Manifest, Window
from anon.text.sentences import Figure, Sentence, joined, say
from anon.values import frozen
from anon.wire.replies import ACCEPTED
from anon.wire.reply_sentences import reply_sentence
from peer.data.snapshot import Snapshot
from peer.rules.ledger import Entry, Ledger
from peer.rules.lifecycle import LAST, State
from peer.rules.limits import BudgetLimit
from peer.rules.packet_lifecycle import Status
from peer.rules.promise import budget_name
from peer.store.records import OutboxEntry, Study
from peer.store.summaries import Part, StudyStatus

STATES = {
    State.CONSENTED: (say("Enrolling"), say(
        "You said yes. Your enrolment leaves as soon as the aggregator can be reached.",
    )),
    State.ENROLLED: (say("Enrolled"), say(
        "The aggregator has your enrolment. Now everybody waits until enrolment closes.",
    )),
    State.CHECKED: (say("Sending"), say("All checks passed. Your packets leave at random times within their windows.")),
    State.SENT: (say("Sent"), say(
        "Nothing more of yours will leave. This program waits to find your packet in the transcript.",
    )),
    State.LEAVING: (say("Leaving"), say("You left. The aggregator is being told; nothing else is sent.")),
    State.FINISHED: (say("Finished"), say("This study is over for you.")),
    State.ABANDONED: (say("Ended early"), say("Nothing was sent, and your budget is back.")),
    State.WITHDRAWN: (say("Left"), say("You left this study. Nothing more is sent.")),
    State.REFUSED: (say("Not admitted"), say(
        "The aggregator did not admit you. Nothing was sent, and your budget is back.",
    )),
    State.STOPPED: (say("Stopped"), say(
        "This program stopped the study, because a check failed. Nothing more is sent.",
    )),
}
"""State -> a word and a sentence."""

STATUSES = {
    Status.QUEUED: say("waits for its time"),
    Status.DELIVERED: say("delivered"),
    Status.INCLUDED: say("delivered, and found in the published transcript"),
    Status.NOT_INCLUDED: say("acknowledged, but not in the published transcript"),
    Status.REFUSED: say("refused by the aggregator"),
    Status.GIVEN_UP: say("given up; its charge stays"),
    Status.MISSED: say("missed; nothing was charged"),
    Status.STOPPED: say("stopped; its charge stays"),
}


@frozen
class Sending:
    """A sending window, how many packets of the owner's lie in it as far as is known, and what became of them."""

    window: Window
    over: bool
    said: str


def sendings(study: Study, outbox: Sequence[OutboxEntry], now: float) -> tuple[Sending, ...]:
    """Every window of a study that concerns its owner: all of them until the draw, then the drawn ones. Never what is
    sent in them, nor the instant within."""
    if study.state in LAST or study.refused:
        return ()
    manifest = study.manifest
    if not study.draws:
        said = say("which of these windows is yours is drawn at random after enrolment closes")
        if len(manifest.windows) == 1:
            said = say("all that you send leaves within it, at random times")
        return tuple(
            Sending(window, now >= window.closes, said)
            for window in manifest.windows
        )
    decided = {queued.slot: queued for queued in outbox}
    found: dict[Window, list[Sentence]] = {}
    for slot, survey in enumerate(study.draws):
        packet = decided.get(slot)
        words = STATUSES[packet.status] if packet is not None else say("is made when what it needs is published")
        found.setdefault(manifest.survey(survey).window, []).append(say(
            "packet {slot} {words}",
            slot=slot + 1,
            words=words,
        ))
    windows = sorted(found, key=lambda window: (window.opens, window.closes))
    return tuple(Sending(window, now >= window.closes, joined(found[window])) for window in windows)


@frozen
class BudgetMeter:
    """A share of the lifetime budget: spent, reserved and left. All count 1e-9 and add up to `whole`, unless the
    lifetime was lowered below what is held."""

    name: str
    spent: int
    reserved: int
    available: int
    whole: int


def meter(ledger: Ledger, budget: Budget = LOCAL) -> BudgetMeter:
    """A whole budget as the ledger has it."""
    return _meter(say("in all"), ledger, budget, [entry for entry in ledger.entries if entry.budget == budget])


def meters_by_data_set(ledger: Ledger) -> tuple[BudgetMeter, ...]:
    """One of the local budget for each data set that a study read. Views: what is left is left for all together."""
    entries = [entry for entry in ledger.entries if entry.budget == LOCAL]
    names = sorted({entry.data_set for entry in entries})
    return tuple(_meter(name, ledger, LOCAL, [entry for entry in entries if entry.data_set == name]) for name in names)


def _meter(name: str, ledger: Ledger, budget: Budget, entries: Sequence[Entry]) -> BudgetMeter:
    spent, reserved = sum(entry.spent for entry in entries), sum(entry.reserved for entry in entries)
    whole = max(ledger.lifetime_of(budget), ledger.held_of(budget))
    return BudgetMeter(name, spent, reserved, ledger.available_of(budget), whole)


@frozen
class OtherBudget:
    """A budget beside the local one, as the page of the budget shows it."""

    name: str
    limit: BudgetLimit
    meter: BudgetMeter
    parts: tuple[Part, ...]

    @property
    def most(self) -> int:
        """The limit of all studies together as an epsilon (1e-9)."""
        return in_epsilon(self.limit.budget, self.limit.lifetime)

    @property
    def most_of_one(self) -> int:
        """The limit of one study as an epsilon (1e-9)."""
        return in_epsilon(self.limit.budget, self.limit.per_study)


def other_budgets(ledger: Ledger, limits: Sequence[BudgetLimit], held: Sequence[Part]) -> tuple[OtherBudget, ...]:
    """One for each of these limits. `held`: all parts of all budgets."""
    return tuple(
        OtherBudget(
            budget_name(limit.budget),
            limit,
            meter(ledger, limit.budget),
            tuple(part for part in held if part.entry.budget == limit.budget),
        )
        for limit in limits
    )


def earlier_studies(held: Sequence[Part], aggregator: bytes, study: bytes) -> tuple[Part, ...]:
    """The cost of this aggregator's other studies."""
    entries = ((part, part.entry) for part in held)
    return tuple(part for part, entry in entries if entry.aggregator == aggregator and entry.study != study)


@frozen
class OwnAnswer:
    """A feature, the owner's value and what it counts as. For the owner's eyes alone."""

    name: str
    value: str
    counts_as: str
    missing: bool
    """The study's rule for missing values decides."""


def own_answers(manifest: Manifest, record: Snapshot) -> tuple[OwnAnswer, ...]:
    """The owner's values as the study's queries find them now, and their categories where cuts are known. Of many
    records, how many have a value, and how many of these are moved to an end of the range."""
    if manifest.records is not None:
        return tuple(_of_records(asked, record.record.rows) for asked in manifest.features)
    found = []
    for feature in manifest.features:
        value = record.values.get(feature.name)
        if feature.binned_privately:
            counted: str = say("decided when the cut points are published")
        else:
            counted = category_alone(feature, feature_category(feature, value, feature.cuts))
        found.append(OwnAnswer(feature.name, _shown(value), counted, is_missing(feature, value)))
    return tuple(found)


def own_label(manifest: Manifest, record: Snapshot, category: int) -> OwnAnswer:
    """The same of the label, whose category (0 or 1) is given."""
    if manifest.records is not None:
        gone = [is_missing_label(manifest.label, row.label) for row in record.record.rows]
        return _of_many(manifest.label.name, gone)
    missing = is_missing_label(manifest.label, record.label)
    return OwnAnswer(manifest.label.name, _shown(record.label), say("yes") if category else say("no"), missing)


def _of_records(asked: Feature, rows: Sequence[Record]) -> OwnAnswer:
    values = [row.values.get(asked.name) for row in rows]
    beyond = sum(is_clamped(asked, value) for value in values)
    return _of_many(asked.name, [is_missing(asked, value) for value in values], beyond)


def _of_many(name: str, missing: list[bool], beyond: int = 0) -> OwnAnswer:
    known, value = missing.count(False), say("nothing found")
    if beyond:
        value = say(
            "in {known} of {all} records; {beyond} beyond the range, which count as its end",
            known=known, all=len(missing), beyond=beyond,
        )  # fmt: skip
    elif missing:
        value = say("in {known} of {all} records", known=known, all=len(missing))
    return OwnAnswer(name, value, "", not known)


def _shown(value: float | str | None) -> str:
    if value is None:
        return say("nothing found")
    return value if isinstance(value, str) else Figure(f"{value:g}")


@frozen
class ReceiptLine:
    """One packet's receipt."""

    title: str
    packet: int
    cost: Amount
    status: str
    word: str


def receipt_line(status: StudyStatus, packet: OutboxEntry) -> ReceiptLine:
    """A slot's receipt in words."""
    word = reply_sentence(packet.word) if packet.word not in ("", ACCEPTED) else ""
    cost = status.held(packet.epsilon)
    return ReceiptLine(status.title, packet.slot + 1, cost, STATUSES[packet.status], word)
