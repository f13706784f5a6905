"""The cost of a study's packets for a member, as the peer's receipt and the aggregator's report both state it.

One cost has three statements, which are never added to one another. The first is the local epsilon of each packet. The
second is their sum, which is the guarantee. The third is the central epsilon after anonymous delivery, which holds
under conditions that nothing here can check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context
from functools import lru_cache
from typing import Any, Final

from anon.accounting.central import CONDITIONS, DELTA, Central, Rows, central, local_epsilon, slot_loss, solve
from anon.accounting.privacy_loss import compose
from anon.ldp import Mechanism, NanoEpsilon, build, format_epsilon
from anon.study.manifest import Manifest, Survey
from anon.text.sentences import Figure, Ours, attributed, joined, say
from anon.transparency import buckets
from anon.transparency.bucketed import members_signed, packets_signed
from anon.transparency.documents import SignedHead, find
from anon.values import frozen

SHARES: Final = ((say("all"), 1), (say("half"), 2), (say("a tenth"), 10))
"""Of how many of the packets the central epsilon is stated: in words, and what their number is divided by."""

ACCEPTED, ENROLLED = say("accepted packets"), say("enrolled members")


@frozen
class Batch:
    """For each slot, how many packets hide one another; `known_from` says what was counted."""

    counts: tuple[int, ...]
    known_from: str


@frozen
class Accounting:
    """The local nano-epsilon of each packet at its slot's dearest row, and their sum. Beside them stands the epsilon of
    the same packets at `DELTA`, by their privacy-loss distributions. The central one is stated for each of `SHARES`.
    There is no central one where `unclaimed` says why: admission is open, or members write texts.
    """

    local: tuple[int, ...]
    record: int
    record_at_delta: float
    batch: Batch
    central: tuple[Central, ...]
    unclaimed: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def account(manifest: Manifest, batch: Batch) -> Accounting:
    """The accounting of a study in which so many packets hide one another, from its integer probabilities.

    Takes from a tenth of a second to some seconds, so the last ones are kept: a page that is open asks again and again.
    """
    slots = slot_rows(manifest)
    local = tuple(local_epsilon(rows) for rows in slots)
    record, total = sum(local), compose([slot_loss(rows) for rows in slots])
    at_delta = min(solve(total.delta, DELTA, record / 1e9), record / 1e9)
    unclaimed = tuple(_unclaimed(manifest))
    parts = [] if unclaimed else [part for _, part in SHARES]
    bounds = [central(slots, [count // part for count in batch.counts], record) for part in parts]
    return Accounting(local, record, at_delta, batch, tuple(bounds), unclaimed)


def _unclaimed(manifest: Manifest) -> Iterator[str]:
    if manifest.cohort.admission == "open":
        yield say("Admission was open to anyone: no central epsilon is claimed.")
    # How well texts hide among others is not known: of a random response it is, and that is no bound for them.
    if any(survey.written for survey in manifest.surveys):
        yield say("Members wrote texts: no central epsilon is claimed.")


def slot_rows(manifest: Manifest) -> list[Rows]:
    """For each slot the mechanisms of its surveys with their weights. In place of a text that stands on the record is a
    random response of its epsilon, which gives away as much (Kairouz, Oh, Viswanath 2015, theorem 3.4). One that stands
    on no record has no row."""
    asked = [[(manifest.survey(row.survey), row.weight) for row in slot.rows] for slot in manifest.slots]
    costly = [rows for rows in asked if rows[0][0].epsilon or not rows[0][0].written]
    return [[(_mechanism(survey), weight) for survey, weight in rows] for rows in costly]


def _mechanism(survey: Survey) -> Mechanism:
    return build("krr", 2, NanoEpsilon(survey.epsilon)) if survey.written else survey.build()


def batch_of_reports(manifest: Manifest, accepted: Sequence[int]) -> Batch:
    """From the number of accepted packets of each survey."""
    return Batch(tuple(sum(accepted[row.survey] for row in slot.rows) for slot in manifest.slots), ACCEPTED)


def batch_of_chain(manifest: Manifest, chain: Sequence[SignedHead]) -> Batch | None:
    """The batch by the signed heads. It is the accepted packets once every slot's transcript is published. Until then
    it is the enrolled members, of whom each sends one packet at most. None before the roster. Lengths suffice: entries
    have one size. Heads of several buckets say only that at least so many enrolled, which every peer checks."""
    if find(chain, "roster") is None:
        return None
    members, packets = members_signed(chain), packets_signed(chain)
    slots = [slot.slot for slot in manifest.slots]
    if members is None:
        return Batch((buckets.THRESHOLD,) * len(slots), ENROLLED)
    if packets.keys() >= {*slots}:
        return Batch(tuple(packets[slot] for slot in slots), ACCEPTED)
    return Batch((members,) * len(slots), ENROLLED)


def in_words(accounting: Accounting) -> tuple[str, ...]:
    """The statements, for people: cost, then the central figures and what they rest on."""
    each, total = joined(map(format_epsilon, accounting.local), ", "), format_epsilon(accounting.record)
    lines: list[str] = [
        say(
            "Local epsilon of each packet: {each}. It holds whoever sees the packet and whatever they know.",
            each=each,
        ),
        say("Record-level sum: {total}. This is the guarantee, also if all packets are linked.", total=total),
    ]
    if len(accounting.local) > 1:
        lines.append(
            say(
                "Together the packets have epsilon {lost} at a delta of one in a million ({delta}), also if all are "
                "linked.",
                lost=rounded_up(accounting.record_at_delta),
                delta=Figure(f"{DELTA:f}"),
            )
        )
    if not accounting.central:
        return (*lines, *accounting.unclaimed)
    counts = [Figure(str(count)) for count in sorted(set(accounting.batch.counts))]
    lines.append(
        say(
            "After anonymous delivery, central epsilon at a delta of one in a million ({delta}), replace-one, {counts} "
            "{known_from}:",
            delta=Figure(f"{DELTA:f}"),
            counts=joined(counts, ", "),
            known_from=attributed(accounting.batch.known_from),
        )
    )
    lines += [
        say("  {share} of them honest: {epsilon}.", share=words, epsilon=_central(central))
        for (words, _), central in zip(SHARES, accounting.central, strict=True)
    ]
    lines.append(
        say("  none of them honest: {epsilon} (the local epsilon).", epsilon=format_epsilon(accounting.record))
    )
    return (*lines, say("That holds only if {conditions}.", conditions=joined(CONDITIONS)))


def for_owner(accounting: Accounting) -> tuple[str, ...]:
    """The same, with one sentence in place of central figures that all are the local epsilon."""
    lines = in_words(accounting)
    if not accounting.central or any(bound.amplified for bound in accounting.central):
        return lines
    alone = lines[: 2 + (len(accounting.local) > 1)]
    return (*alone, say("Hiding among the others adds nothing here: they are too few. The local epsilon stands."))


def _central(found: Central) -> Ours:
    if found.amplified:
        return rounded_up(found.epsilon)
    return say("{epsilon} (the local epsilon: too few to hide among)", epsilon=rounded_up(found.epsilon))


def rounded_up(epsilon: float) -> Figure:
    """Four significant digits, never less than it is."""
    context = Context(prec=4, rounding=ROUND_CEILING)
    return Figure(f"{context.create_decimal_from_float(epsilon).normalize():f}")


def as_json(accounting: Accounting) -> dict[str, Any]:
    """The same for programs."""
    return {
        "local": [epsilon / 1e9 for epsilon in accounting.local],
        "record_level": accounting.record / 1e9,
        "record_level_at_delta": accounting.record_at_delta,
        "delta": DELTA,
        "reports": list(accounting.batch.counts),
        "reports_known_from": accounting.batch.known_from,
        "central": [
            {"honest": words, "reports": list(central.honest), "epsilon": central.epsilon}
            for (words, _), central in zip(SHARES, accounting.central, strict=False)
        ],
        "conditions": list(CONDITIONS) if accounting.central else [],
    }
