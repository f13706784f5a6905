"""`study.toml`: what staff write. Loading refuses unknown keys and names every fault by its key."""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from math import comb, prod
from pathlib import Path
from typing import Any, ClassVar

from attrs import field, frozen

from anon.errors import InvalidValue, Malformed, because
from anon.study.designs import enter_protocols
from anon.study.durations import LONGEST_DURATION, named_duration, spelled
from anon.study.features import (
    Cohort,
    Cover,
    Feature,
    Label,
    Learning,
    Release,
    Table,
    demand_features,
    demand_line,
    demand_names,
    one_of,
)
from anon.study.manifest import HISTOGRAM, MOST_SIGNS
from anon.study.parsing import kind_of, make_converter, structure
from anon.study.records import PERSON, RECORD, Records, declared
from anon.study.texts import demand_seen
from anon.wire.addresses import teller_address_fault

_MECHANISM = one_of("auto", "krr", "subset", "rappor", "pq")
_HEX = re.compile(r"(?:[0-9a-f]{2})*\Z")
MAX_EPSILON = 20.0
DECIMALS = 9
"""Of a number that the study is resolved from: a manifest holds it exactly."""
MOST_SUBSETS = 4000
"""As many as the paper's design can have. One is resolved in about 2 ms, and every peer fetches them all."""
LONGEST_NAME, LONGEST_ENTRY = 60, 8000
"""Characters of a teller's name, address and entry. Names of four fit one line of the consent screen."""


def epsilon_in_range(_: object, attribute: Any, value: float) -> None:
    if not 0 < value <= MAX_EPSILON:
        raise InvalidValue(
            f"{attribute.name}: expected a number above 0 and at most {MAX_EPSILON:g}, got {kind_of(value)}"
        )
    demand_decimals(attribute.name, value)


def demand_decimals(name: str, value: float) -> None:
    """Raises `InvalidValue` for a number that the file spells with more decimals than a manifest can hold."""
    if (Fraction(str(value)) * 10**DECIMALS).denominator != 1:
        raise InvalidValue(f"{name}: expected at most {DECIMALS} decimals, got {kind_of(value)}; round it")


@frozen
class DesignSection:
    """The `[design]` of a study file. Each protocol derives a class for each of its designs.

    `has_tellers`: the answers leave in shares, for the tellers that the file names. `takes_many`: a member may have
    many records.
    """

    kind: str
    has_tellers: ClassVar[bool] = False
    takes_many: ClassVar[bool] = False

    def demand(self, proposal: Proposal) -> None:
        """Raises `InvalidValue` for a study file that the design cannot run."""


@frozen
class OnePacket(DesignSection):
    """Each peer answers one survey with the whole budget; about `binning_share` of the weight finds cuts.

    `asks = "tables"`: `subsets` names the feature subsets asked; left out, every combination of `subset_size` features.
    `asks = "bits"`: one-bit packets about single features, each feature equally often. `centre` is subtracted from the
    label before rounding; left out (0), it is `learning.base_rate`, the public guess of the share of positive labels. A
    centre of 0.5 makes less noise, but then learning must know how common each category is: declare `shares` of
    features where they are public knowledge. `label_share` of the weight asks about the label alone.
    `asks = "score"`: one bit about all features with a declared direction at once, whether they point to a yes, and the
    label. It tests what staff expect and makes no model (`anon.protocols.histogram.declared`).
    """

    epsilon: float = field(validator=epsilon_in_range)
    mechanism: str = field(default="auto", validator=_MECHANISM)
    subset_size: int = 1
    subsets: tuple[tuple[str, ...], ...] = ()
    binning_share: float = 0.1
    binning_levels: int = 16
    asks: str = field(default="tables", validator=one_of("tables", "bits", "score"))
    centre: float = 0.0
    label_share: float = 0.03

    def __attrs_post_init__(self) -> None:
        if self.centre != 0 and not 0.001 <= self.centre <= 0.999:
            raise InvalidValue(f"centre: expected a share from 0.001 to 0.999, got {self.centre}")
        if not 0 <= self.label_share <= 0.5:
            raise InvalidValue(f"label_share: expected 0 to 0.5, got {self.label_share}")
        if self.asks != "tables" and (self.subsets or self.subset_size != 1):
            raise InvalidValue('subsets, subset_size: belong to asks = "tables"; a bit names its own')
        if not 1 <= self.subset_size <= 6:
            raise InvalidValue(f"subset_size: expected 1 to 6, got {self.subset_size}")
        if not 0.01 <= self.binning_share <= 0.5:
            raise InvalidValue(f"binning_share: expected 0.01 to 0.5, got {self.binning_share}")
        if not 4 <= self.binning_levels <= 64:
            raise InvalidValue(f"binning_levels: expected 4 to 64, got {self.binning_levels}")

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        demand_features(proposal.features)
        asked = len(self.subsets) or comb(len(proposal.features), self.subset_size)
        if self.asks == "tables" and asked > MOST_SUBSETS:
            raise InvalidValue(
                f"design.subset_size: expected at most {MOST_SUBSETS} combinations of features, got {asked}; "
                "lower it, or name the subsets"
            )
        known = {feature.name for feature in proposal.features}
        for subset in self.subsets:
            if not subset or len(set(subset)) != len(subset) or not set(subset) <= known:
                raise InvalidValue("design.subsets: expected lists of different feature names that exist")
        if self.asks == "score":
            _demand_score(proposal)
        if self.asks != "tables" and proposal.learning.classifier != "additive":
            raise InvalidValue('learning.classifier: one-bit packets are learned by "additive"')
        _demand_binning_window(proposal)


@frozen
class Paper(DesignSection):
    """The paper's design: `subsets_per_partition` (k_h) histogram slots of `partitions` (k_p) rows with `subset_size`
    (k_s) features each, and one binning slot per numeric feature without declared cuts."""

    epsilon_histogram: float = field(validator=epsilon_in_range)
    epsilon_binning: float = field(validator=epsilon_in_range)
    partitions: int = 20
    subset_size: int = 1
    subsets_per_partition: int = 2
    mechanism: str = field(default="auto", validator=_MECHANISM)
    binning: str = field(default="median", validator=one_of("median", "quantile"))
    binning_rounds: int = 15
    binning_levels: int = 16

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.partitions <= 200:
            raise InvalidValue(f"partitions: expected 1 to 200, got {self.partitions}")
        if not 1 <= self.subset_size <= 6 or not 1 <= self.subsets_per_partition <= 20:
            raise InvalidValue("subset_size, subsets_per_partition: expected 1 to 6 and 1 to 20")
        if not 2 <= self.binning_rounds <= 40:
            raise InvalidValue(f"binning_rounds: expected 2 to 40, got {self.binning_rounds}")
        if not 4 <= self.binning_levels <= 64:
            raise InvalidValue(f"binning_levels: expected 4 to 64, got {self.binning_levels}")

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        demand_features(proposal.features)
        if self.subset_size * self.subsets_per_partition > len(proposal.features):
            raise InvalidValue("design: subset_size x subsets_per_partition exceeds the number of features")
        if self.binning == "median" and any(feature.bins > 2 for feature in proposal.features):
            raise InvalidValue('design.binning: "median" gives two bins; set bins = 2 or binning = "quantile"')
        _demand_binning_window(proposal)


SECTIONS: dict[str, type[DesignSection]] = {"one-packet": OnePacket, "paper": Paper}
"""The class of each `design.kind`; a protocol's registration enters its own."""

PROTOCOLS: set[str] = {HISTOGRAM}
"""The protocols that a file may name; a protocol's registration enters its own."""


def _demand_score(proposal: Proposal) -> None:
    declared = [feature for feature in proposal.features if feature.expects]
    if len(declared) < 2:
        raise InvalidValue("design.asks: the score needs at least two features that say what they expects")
    if proposal.binned:
        raise InvalidValue(f"design.asks: the score needs declared cuts; {', '.join(proposal.binned)} have none")
    if (cells := prod(feature.cardinality for feature in declared)) > MOST_SIGNS:
        raise InvalidValue(
            f"design.asks: the declared features have {cells} combinations of categories, more than {MOST_SIGNS}; "
            "declare fewer cuts, or directions of fewer features"
        )


def _demand_binning_window(proposal: Proposal) -> None:
    if proposal.binned and proposal.schedule.binning < 1:
        raise InvalidValue(
            f"schedule.binning: required, because cuts of {', '.join(proposal.binned)} are found privately; "
            "or write cuts in place of bins"
        )


@frozen
class Schedule:
    """Lengths in seconds (in the file: "7d", "1h30m", "90s"). They can only be set before publishing.

    `enrol`: from publishing until the roster closes. `settle`: after every closing, before the next window opens,
    for documents to be published and their heads fetched again. `binning` and `collect`: the sending windows.
    """

    enrol: int
    settle: int
    collect: int
    binning: int = 0
    margin: int = 0

    def __attrs_post_init__(self) -> None:
        if min(self.enrol, self.settle, self.collect) < 1:
            raise InvalidValue("enrol, settle, collect: expected durations of at least 1s")
        for name in ("enrol", "settle", "collect", "binning", "margin"):
            if not 0 <= getattr(self, name) <= LONGEST_DURATION:
                raise InvalidValue(f"{name}: expected a duration of at most {spelled(LONGEST_DURATION)}")


@frozen
class TellerPlace:
    """A teller as staff name it. `entry`: its canonical offer for this study as hex digits; left out, publishing asks
    the teller for it.

    `spare = true` of the last of three tellers: any two of them suffice, so that one may be lost. Then each teller also
    has a `second_entry`, and two tellers that break their word see everything.
    """

    name: str
    address: str
    entry: str = ""
    spare: bool = False
    second_entry: str = ""

    def __attrs_post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidValue("name: expected some text")
        demand_line("name", self.name, LONGEST_NAME)
        if fault := teller_address_fault(self.address):
            raise InvalidValue(f"address: {fault}")
        for what, text in (("entry", self.entry), ("second_entry", self.second_entry)):
            if len(text) > LONGEST_ENTRY or not _HEX.match(text):
                hint = "left out, publishing asks for it"
                raise InvalidValue(f"{what}: expected at most {LONGEST_ENTRY} hex digits; {hint}")


@frozen
class Proposal:
    """A study as proposed. `resolve` turns it into the manifest."""

    version: int
    title: str
    purpose: str
    contact: str
    label: Label
    features: tuple[Feature, ...]
    design: DesignSection
    schedule: Schedule
    cohort: Cohort
    tables: tuple[Table, ...]
    learning: Learning = field(factory=Learning)
    release: Release = field(factory=Release)
    cover: Cover = field(factory=Cover)
    data_source: str = ""
    protocol: str = HISTOGRAM
    tellers: tuple[TellerPlace, ...] = ()
    records: str = field(default="one", validator=one_of("one", "many"))
    most_records: int = 0
    unit: str = field(default=PERSON, validator=one_of(PERSON, RECORD))

    def __attrs_post_init__(self) -> None:
        if self.version != 1:
            raise InvalidValue(f"version: expected 1, got {self.version}")
        for name in ("title", "purpose", "contact"):
            if not getattr(self, name).strip():
                raise InvalidValue(f"{name}: expected some text; people read it before they say yes")
        demand_seen(self)
        demand_names(self.features, self.label, self.tables)
        if self.tellers and not self.design.has_tellers:
            raise InvalidValue(f"tellers: the design {self.design.kind} has none; leave them out")
        if self.many is not None:
            if not self.design.takes_many:
                raise InvalidValue(f"records: the design {self.design.kind} takes one of each member; leave it out")
            self.many.demand_questions(len(self.features) + 1)
        if len({teller.address for teller in self.tellers}) != len(self.tellers):
            raise InvalidValue("tellers: two at one address are one teller; name tellers that different people run")
        self.design.demand(self)
        expecting = [feature.name for feature in self.features if feature.expects]
        if expecting and self.protocol == HISTOGRAM and self.learning.classifier != "additive":
            raise InvalidValue(
                f'learning.classifier: only "additive" learns from what {", ".join(expecting)} expects; set it, or '
                "leave expects out"
            )

    @property
    def many(self) -> Records | None:
        """The many records of a member; None where each has one."""
        return declared(self.records, self.most_records, self.unit)

    @property
    def has_spare(self) -> bool:
        """True where any two of three tellers suffice."""
        return any(teller.spare for teller in self.tellers)

    @property
    def binned(self) -> tuple[str, ...]:
        """Names of the numeric features whose cuts are found privately."""
        return tuple(feature.name for feature in self.features if feature.binned_privately)


def _converter() -> Any:
    converter = make_converter()

    def design(value: Any, _: Any) -> Any:
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in SECTIONS:
            raise InvalidValue(f"kind: expected one of {', '.join(SECTIONS)}, got {kind_of(kind)}")
        return converter.structure(value, SECTIONS[kind])

    converter.register_structure_hook_func(lambda tp: tp is DesignSection, design)
    plain = converter.get_structure_hook(Schedule)

    def schedule(value: Any, tp: Any) -> Any:
        if not isinstance(value, dict):
            raise InvalidValue(f"expected a table, got {kind_of(value)}")
        seconds = {}
        for key, text in value.items():
            seconds[key] = named_duration(key, text)
        return plain(seconds, tp)

    converter.register_structure_hook(Schedule, schedule)
    plain_release = converter.get_structure_hook(Release)

    def release(value: Any, tp: Any) -> Any:
        if isinstance(value, dict) and "retention" in value:
            value = value | {"retention": named_duration("retention", value["retention"])}
        return plain_release(value, tp)

    converter.register_structure_hook(Release, release)
    plain_feature = converter.get_structure_hook(Feature)

    def feature(value: Any, tp: Any) -> Any:
        if isinstance(value, dict) and type(value.get("expects")) is int:
            value = value | {"expects": [value["expects"]]}
        return plain_feature(value, tp)

    converter.register_structure_hook(Feature, feature)
    return converter


_CONVERTER = _converter()


def parse_proposal(text: str, what: str = "study.toml") -> Proposal:
    """A validated proposal from the text of a study file. Raises `Malformed`, one line per fault, each with its key."""
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # tomllib's own is one, and so is a number of thousands of digits
        raise Malformed(f"{what}: not TOML: {error}") from None
    except RecursionError:
        raise Malformed(f"{what}: not TOML: nested too deeply") from None
    enter_protocols()
    tables = data.get("tables", {})
    if not isinstance(tables, dict):
        raise Malformed(f'{what}.tables: expected a table such as person = ["age", ...], got {kind_of(tables)}')
    _place_section(data, what)
    data["tables"] = [{"name": name, "columns": columns} for name, columns in tables.items()]
    return structure(_CONVERTER, data, Proposal, what)


def _place_section(data: dict[str, Any], what: str) -> None:
    """A protocol with a design of its own name has its settings in a section of that name, in place of `[design]`."""
    protocol = data.get("protocol", HISTOGRAM)
    if protocol == HISTOGRAM or (isinstance(protocol, str) and protocol in PROTOCOLS - SECTIONS.keys()):
        return  # `[design]` names one of the protocol's designs
    if not isinstance(protocol, str) or protocol not in SECTIONS:
        raise Malformed(f"{what}: protocol: expected one that this program has, such as {HISTOGRAM}")
    section = data.pop(protocol, {})
    if "design" in data or not isinstance(section, dict) or "kind" in section:
        raise Malformed(f"{what}: expected the settings of {protocol} in [{protocol}], without a kind, and no [design]")
    data["design"] = section | {"kind": protocol}


def load_proposal(path: Path) -> Proposal:
    """`parse_proposal` of a file. Raises `Malformed` when it cannot be read."""
    if not path.is_file():
        raise Malformed(f"{path}: no such file; `anonml study init {path}` writes one to start from")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"{path}: cannot be read as UTF-8 text{because(error)}; name a study file") from None
    return parse_proposal(text, path.name)
