"""From proposal to manifest: everything that can be asked is resolved before anyone is asked."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from attrs import frozen

from anon.errors import Malformed
from anon.ldp import Release as Exposure
from anon.ldp import per_attribute, record_level
from anon.protocols.histogram.design import Windows, binning_rounds, lay_out
from anon.study.manifest import VERSION, Manifest, Slot, Survey, Timetable, Window, most_in_a_window
from anon.study.proposal import Proposal


@frozen
class StudyKeys:
    """The public keys of one study and the commitment to its hidden random value; 32, 32, 96 and 32 bytes."""

    aggregator_key: bytes
    sealing_key: bytes
    credential_key: bytes
    seed_commitment: bytes


def resolve(
    proposal: Proposal,
    keys: StudyKeys,
    now: int,
    randbelow: Callable[[int], int] = secrets.randbelow,
    address: str = "",
) -> Manifest:
    """The manifest of a proposal published at `now` (unix seconds), served at the onion address `address`, if any.

    Raises `Malformed` for a design that cannot be.
    """
    timetable, windows = _timetable(proposal, now)
    design = lay_out(proposal, windows, randbelow)
    most = most_in_a_window(design.surveys, design.slots)
    if 0 < proposal.cover.connections < most:
        raise Malformed(
            f"study.toml: cover.connections: expected at least {most}, the most packets that one peer has in a window, "
            f"got {proposal.cover.connections}"
        )
    return Manifest(
        version=VERSION,
        title=proposal.title,
        purpose=proposal.purpose,
        contact=proposal.contact,
        design=proposal.design.kind,
        tables=proposal.tables,
        label=proposal.label,
        features=proposal.features,
        surveys=design.surveys,
        slots=design.slots,
        epsilon=total_epsilon(design.surveys, design.slots),
        epsilon_per_attribute=attribute_epsilon(design.surveys, design.slots),
        timetable=timetable,
        cohort=proposal.cohort,
        learning=proposal.learning,
        release=proposal.release,
        aggregator_key=keys.aggregator_key,
        sealing_key=keys.sealing_key,
        credential_key=keys.credential_key,
        seed_commitment=keys.seed_commitment,
        report_size=max(survey.build().report_size for survey in design.surveys),
        cover=proposal.cover,
        address=address,
    )


def total_epsilon(surveys: tuple[Survey, ...], slots: tuple[Slot, ...]) -> int:
    """Record-level epsilon in 1e-9: the dearest row of every slot, summed (design section 4)."""
    return record_level([[surveys[row.survey].epsilon for row in slot.rows] for slot in slots])


def attribute_epsilon(surveys: tuple[Survey, ...], slots: tuple[Slot, ...]) -> int:
    """The paper's eq. 6 in 1e-9, shown only as "per-attribute (AnonML eq. 6)", never as the guarantee."""
    return per_attribute(
        [
            [
                Exposure(
                    surveys[row.survey].features, surveys[row.survey].asks_label, surveys[row.survey].epsilon
                )
                for row in slot.rows
            ]
            for slot in slots
        ]
    )


def _timetable(proposal: Proposal, now: int) -> tuple[Timetable, Windows]:
    schedule = proposal.schedule
    closes = now + schedule.enrol
    settled = closes + schedule.settle
    rounds = binning_rounds(proposal)
    binning = _rounds(settled, schedule.binning, schedule.settle, rounds)
    opens = settled + (schedule.binning + schedule.settle if rounds else 0)
    collect = Window(opens, opens + schedule.collect)
    shortest = min(window.closes - window.opens for window in (*binning, collect))
    margin = schedule.margin or max(1, min(300, shortest // 10))
    if 2 * margin >= shortest:
        raise Malformed(
            f"schedule.margin: expected less than half of the shortest window of {shortest} s, got {margin} s"
        )
    table = Timetable(now, closes, settled, collect.closes + schedule.settle, margin)
    return table, Windows(binning, collect)


def _rounds(start: int, length: int, settle: int, rounds: int) -> tuple[Window, ...]:
    if rounds == 0:
        return ()
    if rounds == 1:
        return (Window(start, start + length),)
    turn = length // rounds
    gap = min(settle, turn // 4)
    if gap < 1:
        raise Malformed(f"schedule.binning: expected at least 4 seconds for each of {rounds} rounds, got {length} s")
    return tuple(Window(start + k * turn, start + (k + 1) * turn - gap) for k in range(rounds))
