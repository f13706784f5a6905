"""The shared parts by design and by name, and the check that every study passes whatever its protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import evolve

from anon.errors import InvalidValue, Malformed, because
from anon.protocols.charge import Charge, Measure
from anon.protocols.contract import Layout, PublishedModel, SharedPart
from anon.protocols.histogram.shared import HistogramProtocol
from anon.study.designs import FORMS
from anon.study.manifest import Manifest
from anon.study.proposal import PROTOCOLS, SECTIONS, DesignSection
from anon.text.foreign import whole_place
from anon.text.sentences import say
from anon.wire.strict_json import text_of

HISTOGRAM: Final = HistogramProtocol()
SUM_NAME: Final = "sum"
SUM_DESIGNS: Final = ("tables-sum", "moments", "gradient")

_BY_DESIGN: dict[str, SharedPart | None] = {}
"""None for the designs of a protocol that is not loaded yet."""


def register(protocol: SharedPart) -> None:
    """Enter a protocol with its designs. From then on study files and manifests may name them."""
    for kind, design in protocol.designs.items():
        SECTIONS[kind], FORMS[kind], _BY_DESIGN[kind] = design.section, design.form, protocol
    PROTOCOLS.add(protocol.name)


def forget(protocol: SharedPart) -> None:
    """Take a protocol's designs out again."""
    for kind in protocol.designs:
        del SECTIONS[kind], FORMS[kind], _BY_DESIGN[kind]
    PROTOCOLS.discard(protocol.name)


register(HISTOGRAM)
_BY_DESIGN |= dict.fromkeys(SUM_DESIGNS)


def enter_all() -> None:
    """Load the protocols that no study named so far. Exact sums bring proofs, noise and shares with them: no command
    about another study waits for that."""
    if None in _BY_DESIGN.values():
        from anon.protocols.sum.shared import SumProtocol

        register(SumProtocol())


def known_designs() -> tuple[str, ...]:
    """The designs of all protocols."""
    return tuple(_BY_DESIGN)


def protocol_for(design: str) -> SharedPart:
    """The protocol that has this design. Raises `Malformed` for an unknown one."""
    if design not in _BY_DESIGN:
        raise Malformed(f"manifest: unknown design {design!r}; update this program")
    if (protocol := _BY_DESIGN[design]) is None:
        enter_all()
        return protocol_for(design)
    return protocol


def protocol_of(study: Manifest) -> SharedPart:
    """The protocol of the study's design. Raises `Malformed` for an unknown design."""
    return protocol_for(study.design)


def layout_of(study: Manifest) -> Layout:
    """The layout that a study was resolved to."""
    return Layout(study.surveys, study.slots, study.part)


def exposure_of(study: Manifest) -> Charge:
    """The cost of a study, recomputed, in the neighbours of its protocol. Raises `Malformed` for an unknown design."""
    return protocol_of(study).exposure(layout_of(study))


def charge_of(study: Manifest) -> Charge:
    """The declared cost of a study, as it is consented to and booked: at least the recomputed one where `check_study`
    found nothing. Raises `Malformed` for an unknown design."""
    return evolve(exposure_of(study).replacing(), amount=study.epsilon)


def check_study(study: Manifest) -> None:
    """Raises `Malformed` unless the study declares at least what it costs, the protocol finds nothing wrong, and every
    survey fits packet and timetable."""
    protocol = protocol_of(study)
    if study.protocol != protocol.name:
        raise Malformed(f"manifest: its design is of the protocol {protocol.name}; do not take part")
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
    _check_records(study, protocol)
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
        study.records.demand_questions(len(study.features) + 1)
    except InvalidValue as fault:
        raise Malformed(f"manifest: {fault}; do not take part") from None


def read_model(data_untrusted: bytes | str) -> PublishedModel:
    """A valid model from its JSON, by its form, or by its protocol where it names one. One that names neither has the
    histogram's tables. Raises `Malformed`."""
    enter_all()
    from anon.protocols import linear_model, model_json

    plain = model_json.read(data_untrusted)
    text_untrusted = text_of(data_untrusted)
    form = plain.get("form") if isinstance(plain, dict) else None
    if form == linear_model.FORM:
        return linear_model.from_json(text_untrusted)
    if form is not None:
        raise Malformed("model: of a form that this program does not know; update this program")
    name = plain.get("protocol", HISTOGRAM.name) if isinstance(plain, dict) else HISTOGRAM.name
    for protocol in _BY_DESIGN.values():
        if protocol is not None and protocol.name == name:
            return protocol.read_model(text_untrusted)
    raise Malformed("model: of a protocol that this program does not know; update this program")


def load_model(path: Path | str) -> PublishedModel:
    """A published model from a file: `model.json` of an export. Raises `Malformed`."""
    try:
        return read_model(Path(path).read_bytes())
    except OSError as error:
        raise Malformed(
            say("{path}: cannot be read{why}; name a model.json", path=whole_place(path), why=because(error))
        ) from None
