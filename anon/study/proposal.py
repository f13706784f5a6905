"""`study.toml`: what staff write. Loading refuses unknown keys and names every fault by its key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from attrs import field
from cattrs import Converter

from anon.errors import InvalidValue, Malformed, because
from anon.study.durations import LONGEST_DURATION, named_duration, spelled
from anon.study.features import (
    Cohort,
    Cover,
    Feature,
    Label,
    Learning,
    Release,
    Table,
    demand_line,
    demand_names,
    one_of,
)
from anon.study.given import GivenFile, demand_given
from anon.study.records import MOST_OF_MEMBER, PERSON, RECORD, Records, declared
from anon.study.structuring import CARRIED, kind_of, make_converter, structure
from anon.study.texts import demand_seen
from anon.study.translations import Translation, demand_translations
from anon.values import frozen
from anon.wire.addresses import teller_address_fault

_HEX = re.compile(r"(?:[0-9a-f]{2})*\Z")
MAX_EPSILON = 20.0
DECIMALS = 9
"""Of a number that the study is resolved from: a manifest holds it exactly."""
FEWEST_TELLERS, MOST_TELLERS = 2, 4
DRY_ROUND: Final = "A dry round: made-up people, nobody is asked"
"""The title of a dry round (`aggregator.lab.dry_round`)."""
REHEARSAL: Final = "Rehearsal: "
"""Begins the title of a study that made-up people live: the staff's own word, which proves nothing to a teller."""
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
    many records, at most `most_of_member`. `takes_given`: it reads public documents that staff give with the study.
    """

    kind: str
    has_tellers: ClassVar[bool] = False
    takes_many: ClassVar[bool] = False
    most_of_member: ClassVar[int] = MOST_OF_MEMBER
    takes_given: ClassVar[bool] = False

    def demand(self, proposal: Proposal) -> None:
        """Raises `InvalidValue` for a study file that the design cannot run."""


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
    """A study as proposed. `resolve` turns it into the manifest.

    `protocol`: as the file names it; empty where the design alone does. `parts`: the parts of its protocol, which
    `anon.protocols.registry.Protocols` gives it.
    """

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
    protocol: str = ""
    tellers: tuple[TellerPlace, ...] = ()
    records: str = field(default="one", validator=one_of("one", "many"))
    most_records: int = 0
    least_records: int = 1
    unit: str = field(default=PERSON, validator=one_of(PERSON, RECORD))
    given: tuple[GivenFile, ...] = ()
    language: str = ""
    texts: tuple[Translation, ...] = ()
    parts: object = field(default=None, kw_only=True, eq=False, repr=False, metadata=CARRIED)

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
            self.many.demand(len(self.features) + 1, self.design.most_of_member)
        if len({teller.address for teller in self.tellers}) != len(self.tellers):
            raise InvalidValue("tellers: two at one address are one teller; name tellers that different people run")
        if self.given and not self.design.takes_given:
            raise InvalidValue(f"given: the design {self.design.kind} reads no given document; leave it out")
        demand_given(self.given)
        demand_translations(self.language, self.texts, self.features, self.label)
        self.design.demand(self)

    @property
    def many(self) -> Records | None:
        """The many records of a member; None where each has one."""
        return declared(self.records, self.most_records, self.unit, self.least_records)

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
        return value(converter)

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


def parse_proposal(text: str, sections: Mapping[str, type[DesignSection]], what: str = "study.toml") -> Proposal:
    """A validated proposal from the text of a study file, whose design has one of these sections, by its kind. Raises
    `Malformed`, one line per fault, each with its key.
    """
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # tomllib's own is one, and so is a number of thousands of digits
        raise Malformed(f"{what}: not TOML: {error}") from None
    except RecursionError:
        raise Malformed(f"{what}: not TOML: nested too deeply") from None
    tables = data.get("tables", {})
    if not isinstance(tables, dict):
        raise Malformed(f'{what}.tables: expected a table such as person = ["age", ...], got {kind_of(tables)}')
    if "design" in data:
        data["design"] = partial(_section, data["design"], sections)
    data["tables"] = [{"name": name, "columns": columns} for name, columns in tables.items()]
    if "texts" in data:
        data["texts"] = _texts(data["texts"], f"{what}.texts")
    return structure(_CONVERTER, data, Proposal, what)


def _texts(value: Any, what: str) -> list[Any]:
    """The further languages as a list: their tables are named by the language, and their words by what they are of."""
    texts = value.values() if isinstance(value, dict) else (None,)
    if not all(isinstance(text, dict) and "language" not in text for text in texts):
        raise Malformed(f"{what}: expected a table for each language, such as [texts.de], got {kind_of(value)}")
    found = []
    for language, text in value.items():
        if not isinstance(words := text.get("words", {}), dict):
            raise Malformed(f'{what}.{language}.words: expected a table such as hours = "...", got {kind_of(words)}')
        named = [{"name": name, "description": words[name]} for name in sorted(words)]
        found.append({"language": language} | text | {"words": named})
    return found


def _section(value: Any, sections: Mapping[str, type[DesignSection]], converter: Converter) -> DesignSection:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in sections:
        raise InvalidValue(f"kind: expected one of {', '.join(sections)}, got {kind_of(kind)}")
    return converter.structure(value, sections[kind])


def read_study_file(path: Path) -> str:
    """The text of a study file. Raises `Malformed` when it cannot be read."""
    if not path.is_file():
        raise Malformed(f"{path}: no such file; `anonml study init {path}` writes one to start from")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"{path}: cannot be read as UTF-8 text{because(error)}; name a study file") from None
