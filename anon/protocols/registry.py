"""The protocols that a program knows, and the check that every study passes whatever its protocol.

A program composes its `Protocols` once, of the parts that its side has (`anon.protocols.installed`,
`peer.protocols.installed`, `aggregator.protocols.installed`), and hands them to everything that reads study files or
manifests. A proposal or a manifest read by them carries the parts of its protocol. Nothing is registered, and nothing
is looked up by a name but here.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from attrs import evolve

from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.errors import InvalidValue, Malformed, because
from anon.protocols.charge import Charge, Measure
from anon.protocols.contract import Layout, Result, SharedPart
from anon.protocols.models.published import PublishedModel
from anon.protocols.sortition import has_letters, keys_survey
from anon.study.designs import Design
from anon.study.manifest import Manifest, parse_manifest
from anon.study.proposal import DesignSection, Proposal, parse_proposal, read_study_file
from anon.study.structuring import kind_of
from anon.text.foreign import escaped, whole_place
from anon.text.sentences import say
from anon.values import frozen
from anon.wire.strict_json import text_of


@frozen
class ProtocolParts:
    """A protocol as one value: its shared part, and the parts of the sides that the program has.

    `peer` is a `peer.protocols.contract.PeerPart`, and `aggregator` an `aggregator.protocols.contract.AggregatorPart`;
    None where the program is no such side.
    """

    shared: SharedPart
    peer: object = None
    aggregator: object = None


@frozen
class Protocols:
    """The protocols of a program. The order is that in which designs are told."""

    known: tuple[ProtocolParts, ...]

    @cached_property
    def designs(self) -> Mapping[str, Design]:
        """Every design by its kind. The code of one that is loaded late is loaded when it is asked for."""
        maps: Any = [parts.shared.designs for parts in reversed(self.known)]  # which nobody changes
        return ChainMap(*maps)

    @cached_property
    def _by_design(self) -> dict[str, ProtocolParts]:
        return {kind: parts for parts in self.known for kind in parts.shared.designs}

    def proposal(self, text: str, what: str = "study.toml") -> Proposal:
        """A validated proposal from the text of a study file. Raises `Malformed`, one line per fault, each with its
        key.

        >>> from anon.protocols.installed import PROTOCOLS
        >>> PROTOCOLS.proposal("version = 1")
        Traceback (most recent call last):
        anon.errors.Malformed: study.toml.title: required, but missing...
        """
        sections = {kind: design.section for kind, design in self.designs.items()}
        return self.proposed(parse_proposal(text, sections, what), what)

    def proposed(self, proposal: Proposal, what: str = "study.toml") -> Proposal:
        """The same, which carries the parts of its design's protocol. Raises `Malformed` where it names another
        protocol."""
        parts = self._by_design[proposal.design.kind]
        if proposal.protocol not in ("", parts.shared.name):
            raise Malformed(f"{what}: protocol: the design {proposal.design.kind} is of {parts.shared.name}")
        return evolve(proposal, parts=parts)

    def load_proposal(self, path: Path) -> Proposal:
        """`proposal` of a file. Raises `Malformed` when it cannot be read.

        >>> from importlib.resources import files
        >>> from anon.protocols.installed import PROTOCOLS
        >>> census = PROTOCOLS.load_proposal(files("examples.census") / "study.toml")
        >>> census.design.kind, len(census.features), census.label.positive
        ('one-packet', 11, ('>50K',))
        """
        return self.proposal(read_study_file(path), path.name)

    def manifest(self, data_untrusted: bytes) -> Manifest:
        """A manifest from its canonical bytes, of a protocol that the program knows and of its design's form. Raises
        `Malformed`."""
        return self.carried(parse_manifest(data_untrusted))

    def carried(self, manifest: Manifest) -> Manifest:
        """The same, which carries the parts of its protocol. Raises `Malformed` for a design that the program does not
        know, and for slots of another form than its own."""
        if manifest.design not in self._by_design:
            raise Malformed(f"manifest: unknown design {kind_of(manifest.design)}; update this program")
        return carrying(manifest, self._by_design[manifest.design])

    def model(self, data_untrusted: bytes | str) -> PublishedModel:
        """A valid model from its JSON. Raises `Malformed`, also for a result that is no model."""
        from anon.protocols.models import rows

        read = self.result(data_untrusted)
        if isinstance(read, rows.PublishedRows):
            raise Malformed("model: these are rows, which predict nothing; name a model.json")
        return read

    def result(self, data_untrusted: bytes | str) -> Result:
        """A valid result from its JSON, by its form, or by its protocol where it names one. One that names neither is a
        model of tables. Raises `Malformed`."""
        from anon.protocols.models import ensemble, linear, reading, rows, tables  # late: most commands read none

        plain = reading.read(data_untrusted)
        text_untrusted = text_of(data_untrusted)
        form = plain.get("form") if isinstance(plain, dict) else None
        if form == linear.FORM:
            return linear.from_json(text_untrusted)
        if form == ensemble.FORM:
            return ensemble.from_json(text_untrusted)
        if form == rows.FORM:
            return rows.from_json(text_untrusted)
        if form is not None:
            raise Malformed("model: of a form that this program does not know; update this program")
        if not isinstance(plain, dict) or "protocol" not in plain:
            return tables.from_json(text_untrusted)
        for parts in self.known:
            if plain["protocol"] == parts.shared.name:
                return parts.shared.read_result(text_untrusted)
        raise Malformed("model: of a protocol that this program does not know; update this program")

    def load_model(self, path: Path | str) -> PublishedModel:
        """A published model from a file: `model.json` of an export. Raises `Malformed`."""
        try:
            return self.model(Path(path).read_bytes())
        except OSError as error:
            raise Malformed(
                say("{path}: cannot be read{why}; name a model.json", path=whole_place(path), why=because(error))
            ) from None


def carrying(manifest: Manifest, parts: ProtocolParts) -> Manifest:
    """The manifest with the parts of its protocol. Raises `Malformed` for slots of another form than its design's."""
    shared = parts.shared
    if manifest.design not in shared.designs:
        raise Malformed(f"manifest: its design is none of {shared.name}; do not take part")
    if manifest.protocol != shared.name:
        raise Malformed(f"manifest: its design is of the protocol {shared.name}; do not take part")
    cards = {feature.name: feature.cardinality for feature in manifest.features}
    slots = [[manifest.surveys[row.survey] for row in slot.rows] for slot in manifest.slots]
    try:
        shared.designs[manifest.design].form(cards, slots)
    except InvalidValue as fault:
        raise Malformed(f"manifest: {escaped(str(fault))}; do not take part") from None
    return evolve(manifest, parts=parts)


def parts_of(study: Manifest | Proposal) -> ProtocolParts:
    """The parts of a study's protocol, which it carries. Raises `Malformed` where no program's protocols read it."""
    if not isinstance(study.parts, ProtocolParts):
        raise Malformed("study: of a protocol that this program does not know; update this program")
    what, design = ("manifest", study.design) if isinstance(study, Manifest) else ("study.toml", study.design.kind)
    if design not in study.parts.shared.designs:
        raise Malformed(f"{what}: its design is none of {study.parts.shared.name}; do not take part")
    return study.parts


def protocol_of(study: Manifest | Proposal) -> SharedPart:
    """The shared part of the study's protocol. Raises `Malformed` where it carries none."""
    return parts_of(study).shared


def layout_of(study: Manifest) -> Layout:
    """The layout that a study was resolved to."""
    return Layout(study.surveys, study.slots, study.part)


def exposure_of(study: Manifest) -> Charge:
    """The cost of a study, recomputed, in the neighbours of its protocol. Raises `Malformed` for a layout that cannot
    be."""
    return protocol_of(study).exposure(layout_of(study))


def charge_of(study: Manifest) -> Charge:
    """The declared cost of a study, as it is consented to and booked: at least the recomputed one where `check_study`
    found nothing. Raises `Malformed` for a layout that cannot be."""
    return evolve(exposure_of(study).replacing(), amount=study.epsilon)


def check_study(study: Manifest) -> None:
    """Raises `Malformed` unless the study has its design's form, declares at least what it costs, the protocol finds
    nothing wrong, and every survey fits packet and timetable."""
    protocol = protocol_of(study)
    carrying(study, parts_of(study))
    charge = exposure_of(study).replacing()
    if charge.measure is Measure.LOCAL and any(survey.exact for survey in study.surveys):
        raise Malformed("manifest: it claims a local cost for exact answers; do not take part")
    if study.epsilon < charge.amount:
        raise Malformed(
            f"manifest: declares {charge.budget.symbol} {study.epsilon} but its surveys cost {charge.amount}; "
            "do not take part"
        )
    if study.epsilon_per_attribute < protocol.per_attribute(layout_of(study)):
        raise Malformed("manifest: declares too small a per-attribute epsilon; do not take part")
    section = protocol.designs[study.design].section
    if study.given and not (issubclass(section, DesignSection) and section.takes_given):
        raise Malformed(f"manifest: the design {study.design} reads no given document; do not take part")
    _check_records(study, protocol)
    _check_written(study, protocol)
    protocol.check(study)
    table = study.timetable
    for survey in study.surveys:
        if not table.settled <= survey.window.opens < survey.window.closes <= table.ends:
            raise Malformed(f"manifest: survey {survey.survey} is open outside the study's timetable; do not take part")
        if survey.report_size > study.report_size:
            raise Malformed(f"manifest: survey {survey.survey} does not fit the packet size; do not take part")


def _check_records(study: Manifest, protocol: SharedPart) -> None:
    if study.records is None:
        return
    section = protocol.designs[study.design].section
    if not (issubclass(section, DesignSection) and section.takes_many):
        raise Malformed(f"manifest: the design {study.design} takes one record of each member; do not take part")
    try:
        study.records.demand(len(study.features) + 1, section.most_of_member)
    except InvalidValue as fault:
        raise Malformed(f"manifest: {fault}; do not take part") from None


def _check_written(study: Manifest, protocol: SharedPart) -> None:
    """Each written survey has a slot of its own, and its round a page; the first with letters tells the sealing keys,
    in a round before all other letters."""
    written = [survey for survey in study.surveys if survey.written]
    if not written:
        return
    if study.cover.connections:
        raise Malformed("manifest: members write to each other, with cover; do not take part")
    if any(len(slot.rows) > 1 and study.survey(row.survey).written for slot in study.slots for row in slot.rows):
        raise Malformed("manifest: a draw decides if a member writes; do not take part")
    rounds, documents = protocol.rounds(study), protocol.documents(study)
    for number, study_round in enumerate(rounds):
        board = any(study.survey(asked).written for asked in study_round.surveys)
        if board and (study_round.document != ("page", number) or ("page", number) not in documents):
            raise Malformed("manifest: a round in which members write has no page; do not take part")
        if study_round.seat is not None and (study_round.seat[0] == "page" or study_round.seat not in documents):
            raise Malformed("manifest: the aggregator's seat has no place for its document; do not take part")
    if not has_letters(study):
        return
    keys = study.survey(keys_survey(study))
    if keys.m or keys.epsilon or keys.size < PUBLIC_KEY_SIZE:
        raise Malformed("manifest: the first letters tell something else than sealing keys; do not take part")
    later = [survey for survey in written if survey.pseudonymous and survey != keys]
    if any(keys.window.closes > other.window.opens for other in later):
        raise Malformed("manifest: letters are written before the keys are known; do not take part")
