"""From proposal to manifest: everything that can be asked is resolved before anyone is asked."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping

from attrs import evolve

from anon.errors import Malformed
from anon.protocols.contract import SharedPart
from anon.protocols.registry import carrying, parts_of
from anon.study.designs import most_in_a_window
from anon.study.features import USUAL_MOST
from anon.study.given import NONE_GIVEN, resolved
from anon.study.manifest import VERSION, Manifest, Timetable, Window
from anon.study.proposal import Proposal
from anon.study.translations import in_order
from anon.values import frozen


@frozen
class StudyKeys:
    """The public keys of one study and the commitment to its hidden random value; 32, 1216, 96 and 32 bytes."""

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
    given: Mapping[str, bytes] = NONE_GIVEN,
) -> Manifest:
    """The manifest of a proposal published at `now` (unix seconds), served at the onion address `address`, if any, or
    at several, as `Manifest.address` spells them. `given`: the contents of its public documents, by name.

    Raises `Malformed` for a design that cannot be.

    >>> from importlib.resources import files
    >>> from anon.protocols.installed import PROTOCOLS
    >>> census = PROTOCOLS.load_proposal(files("examples.census") / "study.toml")
    >>> manifest = resolve(census, StudyKeys(bytes(32), bytes(1216), bytes(96), bytes(32)), now=0)
    >>> manifest.epsilon, len(manifest.surveys), PROTOCOLS.manifest(manifest.to_bytes()) == manifest
    (2000000000, 13, True)
    """
    proposal = _with_maximum(proposal)
    parts = parts_of(proposal)
    protocol = parts.shared
    timetable, windows = _timetable(protocol, proposal, now)
    design = protocol.lay_out(proposal, windows, randbelow)
    most = most_in_a_window(design.surveys, design.slots)
    if 0 < proposal.cover.connections < most:
        raise Malformed(
            f"study.toml: cover.connections: expected at least {most}, the most packets that one peer has in a window, "
            f"got {proposal.cover.connections}"
        )
    manifest = Manifest(
        version=VERSION,
        title=proposal.title,
        purpose=proposal.purpose,
        data_source=proposal.data_source.strip(),
        contact=proposal.contact,
        design=proposal.design.kind,
        tables=proposal.tables,
        label=proposal.label,
        features=proposal.features,
        surveys=design.surveys,
        slots=design.slots,
        epsilon=protocol.exposure(design).replacing().amount,
        epsilon_per_attribute=protocol.per_attribute(design),
        timetable=timetable,
        cohort=proposal.cohort,
        learning=proposal.learning,
        release=proposal.release,
        aggregator_key=keys.aggregator_key,
        sealing_key=keys.sealing_key,
        credential_key=keys.credential_key,
        seed_commitment=keys.seed_commitment,
        report_size=max(survey.report_size for survey in design.surveys),
        cover=proposal.cover,
        address=address,
        protocol=protocol.name,
        part=design.part,
        records=proposal.many,
        language=proposal.language,
        texts=in_order(proposal.texts),
        given=resolved(proposal.given, given),
    )
    return carrying(manifest, parts)


def _with_maximum(proposal: Proposal) -> Proposal:
    """The same with the usual maximum where it names none, for `prepare` of `aggregator.study.publish` to lower."""
    cohort = proposal.cohort
    return evolve(proposal, cohort=evolve(cohort, maximum=cohort.maximum or max(cohort.minimum, USUAL_MOST)))


def _timetable(protocol: SharedPart, proposal: Proposal, now: int) -> tuple[Timetable, tuple[Window, ...]]:
    schedule = proposal.schedule
    closes = now + schedule.enrol
    settled = closes + schedule.settle
    windows = protocol.windows(proposal, settled)
    shortest = min(window.closes - window.opens for window in windows)
    margin = schedule.margin or max(1, min(300, shortest // 10))
    if 2 * margin >= shortest:
        raise Malformed(
            f"schedule.margin: expected less than half of the shortest window of {shortest} s, got {margin} s"
        )
    return Timetable(now, closes, settled, windows[-1].closes + schedule.settle, margin), windows
