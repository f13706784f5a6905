"""The manifest: everything a study can ever ask, resolved, canonical and signed before anyone is asked.

Later documents only fill named blanks (thresholds, edges) of the surveys listed here.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field

from anon.crypto import labels
from anon.crypto.sealing import OVERHEAD, PUBLIC_KEY_SIZE
from anon.errors import InvalidValue, Malformed
from anon.ldp import Mechanism, from_spec
from anon.study.features import (
    LATEST,
    Cohort,
    Cover,
    Feature,
    Label,
    Learning,
    Release,
    Table,
    demand_line,
    demand_names,
    demand_plain,
)
from anon.study.given import GivenDocument, demand_given
from anon.study.records import Records
from anon.study.slots import Slot, demand_slots
from anon.study.structuring import CARRIED, LEFT_OUT, make_converter, structure
from anon.study.translations import LONGEST_PURPOSE, Translation, demand_translations, in_order
from anon.values import frozen
from anon.wire.addresses import addresses_of, onion_addresses_fault
from anon.wire.cbor import decode, encode, sha256

if TYPE_CHECKING:
    from anon.wire.letters import TextAndLetters

VERSION = 2
"""Of this format. A program that knows another one alone tells its owner to update it."""
LARGEST = 2**40  # of 1e-9: every epsilon fits a float and a database
LARGEST_CARD = 2**20
"""Of a survey: the categories of a feature, or the reach of a column."""
MOST_ROUNDS = 256
NAME = re.compile(r"[a-z][a-z0-9-]{0,39}\Z")
EXACT = "exact"
"""In place of a mechanism's name: nothing perturbs the answer, which is an exact vector and leaves in sealed shares."""
POSTED, LETTERS = "posted", "letters"
"""In the same place: the answer is written, an open text. One that is posted has the tag of its occasion. One with
letters has the one pseudonym that a member has for the whole study, and letters to others may stand beside the text."""
LONGEST_VECTOR, LONGEST_REPORT, LONGEST_PART = 2**16, 2**22, 2**20
"""Entries of an exact survey's vector; bytes of its report; bytes of a protocol's part of the manifest."""
MOST_SEATS = 1024
"""Of the circle that a member writes to in one survey."""
LARGEST_PARAMETER = 2**64


@frozen
class Window:
    """A half-open interval of unix seconds in which packets of a survey are accepted."""

    opens: int
    closes: int

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.opens < self.closes < LATEST:
            raise InvalidValue(f"window: expected opens before closes, and both before {LATEST} (unix seconds)")


@frozen
class Survey:
    """One question. `kind` is a word of the study's protocol, and `round` a number of that protocol's. `p`, `q` are
    numerators over 2**64; `epsilon` counts 1e-9 and is at least the loss recomputed from them. `parameters` are what
    else its protocol needs to make the answer, in that protocol's order.

    An exact survey (`EXACT`) has no mechanism: `m` is the length of its vector, `size` the bytes that a packet shows of
    it to all, and `epsilon` its part of the study's charge, in 1e-9 of that charge's measure.

    A written survey (`POSTED`, `LETTERS`) has none either: `size` is the bytes of its text, `m` the seats that a member
    writes to, and with seats `parameters[0]` the bytes of each letter before it is sealed. The one seat beside a posted
    text is the aggregator's."""

    survey: int
    kind: str
    features: tuple[str, ...]
    cards: tuple[int, ...]
    m: int
    mechanism: str
    p: int
    q: int
    epsilon: int
    window: Window
    round: int = 0
    size: int = 0
    parameters: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not all(0 <= parameter < LARGEST_PARAMETER for parameter in self.parameters):
            raise InvalidValue(f"survey {self.survey}: parameters are from 0 to below {LARGEST_PARAMETER}")
        if self.exact:
            self._check_exact()
        elif self.written:
            self._check_written()
        elif self.epsilon < (recomputed := self.build().epsilon):
            raise InvalidValue(
                f"survey {self.survey}: declares epsilon {self.epsilon}, below the recomputed {recomputed}"
            )
        elif self.size:
            raise InvalidValue(f"survey {self.survey}: the size of a report follows from its mechanism")
        if not all(1 <= card <= LARGEST_CARD for card in self.cards):
            raise InvalidValue(f"survey {self.survey}: expected cards from 1 to {LARGEST_CARD}")
        if self.epsilon >= LARGEST or not 0 <= self.round < MOST_ROUNDS:
            raise InvalidValue(
                f"survey {self.survey}: expected epsilon below {LARGEST} and a round below {MOST_ROUNDS}"
            )
        if len(self.features) != len(self.cards):
            raise InvalidValue(f"survey {self.survey}: expected one cardinality per feature")

    def _check_exact(self) -> None:
        if self.p or self.q or self.epsilon < 0:
            raise InvalidValue(f"survey {self.survey}: an exact survey has no probabilities and no negative cost")
        if not 1 <= self.m <= LONGEST_VECTOR or not 1 <= self.size <= LONGEST_REPORT:
            raise InvalidValue(f"survey {self.survey}: expected a vector and a report of at least one entry and byte")

    def _check_written(self) -> None:
        if self.p or self.q or self.epsilon < 0:
            raise InvalidValue(f"survey {self.survey}: a written survey has no probabilities and no negative cost")
        if not 0 <= self.m <= (MOST_SEATS if self.pseudonymous else 1) or bool(self.m) > bool(self.parameters):
            raise InvalidValue(f"survey {self.survey}: expected at most {MOST_SEATS} seats, and a length of letters")
        if not self.size >= 1 or self.size + self.m * (self.letter_size + OVERHEAD) > LONGEST_REPORT:
            raise InvalidValue(f"survey {self.survey}: expected a text, and at most {LONGEST_REPORT} bytes in all")

    @property
    def written(self) -> bool:
        """True if its answer is an open text, with or without letters."""
        return self.mechanism in (POSTED, LETTERS)

    @property
    def pseudonymous(self) -> bool:
        """True if its packets carry the pseudonym that a member has for the whole study."""
        return self.mechanism == LETTERS

    @property
    def letter_size(self) -> int:
        """Bytes of a letter before it is sealed; 0 without seats."""
        return self.parameters[0] if self.m and self.written else 0

    @property
    def exact(self) -> bool:
        """True if its answer is an exact vector, which no mechanism perturbs."""
        return self.mechanism == EXACT

    @property
    def report_size(self) -> int:
        """Bytes of a report, the same for every answer."""
        if self.written:
            from anon.wire.letters import written_size  # late: studies without letters load nothing of them

            return written_size(self.size, self.m, self.letter_size)
        return self.size if self.exact else self.build().report_size

    def demand_report(self, report_untrusted: bytes) -> None:
        """Raises `Malformed` for bytes that are no report of this survey. An exact one's shares stand beside it, and
        their recipients alone can open them and see if they are valid."""
        if self.written:
            self.parse_written(report_untrusted)
        elif not self.exact:
            self.build().parse(report_untrusted)
        elif len(report_untrusted) != self.size:
            raise Malformed(f"report: expected {self.size} bytes of the public share, got {len(report_untrusted)}")

    def parse_written(self, report_untrusted: bytes) -> TextAndLetters:
        """The text and the sealed letters of a written survey's report. Raises `Malformed`."""
        from anon.wire.letters import parse_written

        return parse_written(report_untrusted, self.size, self.m, self.letter_size)

    def build(self) -> Mechanism:
        """The mechanism object of this survey."""
        return from_spec(self.mechanism, self.m, self.p, self.q)


@frozen
class Timetable:
    """Unix seconds. Between closing, settling and the first window nothing is sent but fetches of documents."""

    published: int
    enrol_closes: int
    settled: int
    ends: int
    margin: int

    def __attrs_post_init__(self) -> None:
        ordered = 0 <= self.published <= self.enrol_closes <= self.settled <= self.ends < LATEST
        if not ordered or not 1 <= self.margin < LATEST:
            raise InvalidValue("timetable: expected publishing, closing, settling and end in this order, and a margin")


@frozen
class Manifest:
    """The resolved study. `study_id` is the digest of its canonical bytes and names the study everywhere.

    `address` is the onion address (`<56 characters>.onion:80`) at which the study is served to everybody, or up to 8 of
    them with a space between two (`addresses`). It is empty for a study that is served on one machine's loopback only.
    `data_source` says where owners find the file of their data.
    `protocol` names the protocol, and `part` is its own. `records`: each member may have many; None where each has one.

    `given`: the public documents that come with it. `language`: of title, purpose, data source and descriptions, empty
    where staff did not say; `texts`: the same in further languages, in the order of their codes.

    No protocol is asked when a manifest is built or parsed. `parts`: those of its protocol, which it carries once
    `anon.protocols.registry` held it to the form of its design; they are no part of its bytes.
    """

    version: int
    title: str
    purpose: str
    contact: str
    protocol: str
    design: str
    tables: tuple[Table, ...]
    label: Label
    features: tuple[Feature, ...]
    surveys: tuple[Survey, ...]
    slots: tuple[Slot, ...]
    epsilon: int
    epsilon_per_attribute: int
    timetable: Timetable
    cohort: Cohort
    learning: Learning
    release: Release
    aggregator_key: bytes
    sealing_key: bytes
    credential_key: bytes
    seed_commitment: bytes
    report_size: int
    cover: Cover = field(factory=Cover)
    address: str = ""
    data_source: str = ""
    part: bytes = field(default=b"", repr=False)
    records: Records | None = field(default=None, metadata=LEFT_OUT)
    given: tuple[GivenDocument, ...] = field(default=(), metadata=LEFT_OUT)
    language: str = field(default="", metadata=LEFT_OUT)
    texts: tuple[Translation, ...] = field(default=(), metadata=LEFT_OUT)
    parts: object = field(default=None, kw_only=True, eq=False, repr=False, metadata=CARRIED)

    def __attrs_post_init__(self) -> None:
        if self.version != VERSION:
            raise InvalidValue(f"version: expected {VERSION}, got {self.version}; update this program")
        sizes = {"aggregator_key": 32, "sealing_key": PUBLIC_KEY_SIZE, "credential_key": 96, "seed_commitment": 32}
        for name, size in sizes.items():
            if len(getattr(self, name)) != size:
                raise InvalidValue(f"{name}: expected {size} bytes")
        if fault := onion_addresses_fault(self.address):
            raise InvalidValue(f"address: {fault}")
        for name in ("title", "contact"):
            demand_line(name, getattr(self, name))
        for name in ("purpose", "data_source"):
            demand_plain(name, text := getattr(self, name))
            if len(text) > LONGEST_PURPOSE:
                raise InvalidValue(f"{name}: expected at most {LONGEST_PURPOSE} characters, got {len(text)}")
        if not all(0 <= epsilon < LARGEST for epsilon in (self.epsilon, self.epsilon_per_attribute)):
            raise InvalidValue(f"epsilon: expected at least 0 and less than {LARGEST}")
        demand_names(self.features, self.label, self.tables)
        if not self.cohort.maximum:
            raise InvalidValue("cohort.maximum: expected a number in a published study")
        if not NAME.match(self.protocol):
            raise InvalidValue("protocol: expected small letters, digits and hyphens (at most 40)")
        if len(self.part) > LONGEST_PART:
            raise InvalidValue(f"part: expected at most {LONGEST_PART} bytes")
        demand_given(self.given)
        demand_translations(self.language, self.texts, self.features, self.label)
        if self.texts != in_order(self.texts):
            raise InvalidValue("texts: expected them in the order of their languages, without blanks around a text")
        _check_shape(self)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The onion addresses at which the study is served to everybody. The first is that of links. A peer draws one
        for each exchange, so that none is anybody's own."""
        return addresses_of(self.address)

    @property
    def sums_until(self) -> int:
        """Unix seconds: for a sum of tellers that are away the aggregator asks until then at most."""
        return self.timetable.ends + self.release.retention // 2

    @property
    def packets(self) -> int:
        """N: the most packets a peer can send, one per slot."""
        return len(self.slots)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """Every distinct window, in order of opening."""
        windows = {survey.window for survey in self.surveys}
        return tuple(sorted(windows, key=lambda window: (window.opens, window.closes)))

    def survey(self, survey: int) -> Survey:
        """The survey with this id. Raises `Malformed` when there is none."""
        if not 0 <= survey < len(self.surveys):
            raise Malformed(f"survey: expected 0 to {len(self.surveys) - 1}, got {survey}")
        return self.surveys[survey]

    def round_of(self, slot: Slot) -> int:
        """The round of a slot: the earliest of its rows'. A slot is answered once, whichever of
        its rows was drawn, so it has one round."""
        return min(self.survey(row.survey).round for row in slot.rows)

    def feature(self, name: str) -> Feature:
        """The feature of this name. Raises `Malformed` when there is none."""
        for feature in self.features:
            if feature.name == name:
                return feature
        raise Malformed(f"feature: the study has none named {name!r}")

    def to_bytes(self) -> bytes:
        """The canonical bytes. Cover, address, data source, part, sizes and parameters are named only where there is
        one: none has one spelling.
        """
        return self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        plain = _CONVERTER.unstructure(self)
        if not self.cover.connections:
            del plain["cover"]
        for name in ("address", "data_source", "part"):
            if not getattr(self, name):
                del plain[name]
        for survey in plain["surveys"]:
            for name in ("size", "parameters"):
                if not survey[name]:
                    del survey[name]
        return encode(plain)

    @cached_property
    def study_id(self) -> bytes:
        """SHA-256 of the label and the canonical bytes, 32 bytes."""
        return study_id_of(self.to_bytes())

    def __hash__(self) -> int:
        """The id's, so that what follows from a manifest can be kept by it."""
        return hash(self.study_id)


def study_id_of(manifest_bytes: bytes) -> bytes:
    """The study's id from its manifest's canonical bytes."""
    return sha256(labels.STUDY, manifest_bytes)


def parse_manifest(data_untrusted: bytes) -> Manifest:
    """A well-formed manifest from canonical bytes, whatever its protocol: `Protocols.manifest` gives it that protocol's
    parts. Raises `Malformed`.

    Other rules decide if its signature and fingerprint are the expected ones, if the declared total equals
    the recomputed one, and if the owner consents (`peer.rules.checks`, `peer.rules.consent`).
    """
    manifest = structure(_CONVERTER, decode(data_untrusted, "manifest"), Manifest, "manifest")
    if manifest.to_bytes() != data_untrusted:
        raise Malformed("manifest: not in its one canonical spelling")
    return manifest


def _check_shape(manifest: Manifest) -> None:
    names = {feature.name for feature in manifest.features}
    for number, survey in enumerate(manifest.surveys):
        if survey.survey != number:
            raise InvalidValue(f"surveys: expected id {number}, got {survey.survey}")
        if not set(survey.features) <= names or len(set(survey.features)) != len(survey.features):
            raise InvalidValue(f"survey {number}: expected different features of this study")
    if manifest.report_size != max((survey.report_size for survey in manifest.surveys), default=0):
        raise InvalidValue("report_size: expected the size of the largest report")
    shortest = min((one.closes - one.opens for one in manifest.windows), default=0)
    if shortest and 2 * manifest.timetable.margin >= shortest:
        raise InvalidValue(f"timetable: expected a margin of less than half of the shortest window of {shortest} s")
    demand_slots(manifest.surveys, manifest.slots, manifest.cover.connections)


_CONVERTER = make_converter()
