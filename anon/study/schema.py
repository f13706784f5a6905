"""The JSON Schema (draft 2020-12) of `study.toml`, from the classes that read it, for editors that check as one types.

It says what can be said without looking at several keys at once; `anonml study lint` says the rest.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, Final

import attrs

from anon.study.designs import Design
from anon.study.durations import spelled
from anon.study.features import (
    MAX_BINS,
    MAX_CATEGORIES,
    MOST_CONNECTIONS,
    MOST_IN_COHORT,
    NAME_PATTERN,
    Cohort,
    Cover,
    Feature,
    Label,
    Learning,
    OneOf,
    Release,
)
from anon.study.given import MOST_GIVEN, GivenFile
from anon.study.proposal import (
    FEWEST_TELLERS,
    LONGEST_ENTRY,
    LONGEST_NAME,
    MOST_TELLERS,
    Proposal,
    Schedule,
    TellerPlace,
)
from anon.study.records import MOST_RECORDS
from anon.study.translations import (
    LANGUAGE_PATTERN,
    LONGEST_DESCRIPTION,
    LONGEST_PURPOSE,
    MOST_LANGUAGES,
    Translation,
)
from anon.wire.addresses import TELLER_ADDRESS

FILE = "study.schema.json"
EDITOR_LINE = f"#:schema {FILE}"
"""The first line of a study file, by which Taplo and editors built on it (Even Better TOML) find the schema."""

DURATION_PATTERN = "^(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?$"
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_SECTIONS = (Label, Feature, Schedule, Cohort, Learning, Release, Cover, TellerPlace, GivenFile, Translation)

WORDS: Final[dict[str, str]] = {
    "version": "Of this format: 1.",
    "title": "The name of the study. People read it before they say yes.",
    "purpose": "Why it is done. People read it before they say yes.",
    "contact": "Who answers questions.",
    "data_source": "Where people get the file of their data, step by step. Shown beside the choice of a file.",
    "tables": "The tables of the owner's own data that queries read: name = [columns].",
    "label": "The value that is learned.",
    "features": "The questions about each person.",
    "design": "How the questions are shared out and what a member's answer costs.",
    "schedule": 'How long each stage lasts, such as "7d", "1h30m" or "90s". Fixed by publishing.',
    "cohort": "Who may take part, and how many must.",
    "learning": "How the model is fitted.",
    "release": "Who may see the transcript, and how long packets are kept.",
    "cover": "Cover traffic.",
    "protocol": "The protocol, such as histogram, or sum for exact sums. Left out, the design names it.",
    "records": "one: each member has one; many: a query gives a row for each, with its key and the value.",
    "most_records": "With many: the most of one member; more are cut by a draw on the member's machine.",
    "least_records": "With many: so many a member should have; its owner is told how many are found.",
    "unit": "With many: a promise is about a person with all records, or about one record.",
    "tellers": "Who adds up exact sums, two to four; for the designs of exact sums alone.",
    "Label.name": "A name for queries, documents and the model.",
    "Label.description": "In plain words, for the consent screen.",
    "Label.query": "One SELECT on the owner's tables that gives one value.",
    "Label.positive": "The values that count as positive.",
    "Label.negative": "The values that count as negative.",
    "Label.missing": "The class that any other value counts as.",
    "Feature.name": "A name for queries, documents and the model.",
    "Feature.kind": "numeric: the query gives a number; categorical: one of some texts.",
    "Feature.description": "In plain words, for the consent screen.",
    "Feature.query": "One SELECT on the owner's tables that gives one value.",
    "Feature.missing": '"own": a category of its own; else the value that a missing one counts as.',
    "Feature.range": "[minimum, maximum]; values outside are moved to the nearest end.",
    "Feature.bins": "How many bins; their cuts are found privately. Or give cuts.",
    "Feature.cuts": "The cuts between bins, increasing. Or give bins.",
    "Feature.scale": "log: levels for cuts are even in ln(1 + number), and a linear model takes ln(1 + number).",
    "Feature.categories": "The texts that the query may give.",
    "Feature.shares": "A public guess of how common each category is, never from the data.",
    "Feature.expects": "The direction you expect: 1, -1 or 0; one of them for each category. Never from the data.",
    "TellerPlace.name": "A name that members read before they say yes.",
    "TellerPlace.address": "Where the teller is reached.",
    "TellerPlace.entry": "The teller's offer for this study in hex digits; left out, publishing asks for it.",
    "TellerPlace.spare": "True of the last of three: any two suffice, so one may be lost. It costs accuracy and trust.",
    "TellerPlace.second_entry": "With a spare, the teller's second offer; left out, publishing asks for it.",
    "given": "Public documents that everybody reads, each a file; for designs that read them alone.",
    "language": 'The language of these texts, such as "en"; needed beside texts in others, and shown there.',
    "texts": "The same texts in further languages: a table for each, such as [texts.de].",
    "Translation.title": "The title in this language.",
    "Translation.purpose": "The purpose in this language.",
    "Translation.data_source": "Where people get the file, in this language.",
    "Translation.words": "Of the label and the features, by name: the description in this language.",
    "GivenFile.name": "A short name.",
    "GivenFile.description": "Its content in words. People read it before they say yes.",
    "GivenFile.file": "Its path, from the folder of this file.",
    "Schedule.enrol": "From publishing until the roster closes.",
    "Schedule.settle": "After each closing, before the next window opens.",
    "Schedule.collect": "The window in which packets are sent.",
    "Schedule.binning": "The window of each binning round; needed where cuts are found privately.",
    "Schedule.margin": "The time left free at both ends of a window, for clocks.",
    "Cohort.minimum": "With fewer the study ends; nothing is sent, nobody is charged.",
    "Cohort.maximum": "More are not admitted; left out: 100,000, or as many as its documents have room for.",
    "Cohort.admission": "One admission per invite, for listed keys, or for anybody (no claim of anonymity).",
    "Learning.classifier": "The model that is fitted; additive is one model of all surveys.",
    "Learning.ensemble": "How tables are combined.",
    "Learning.score": "The score that weighs a vote.",
    "Learning.score_share": "The share of reports that only score.",
    "Learning.base_rate": "A public guess of the share of positive labels; 0.5 counts as none.",
    "Release.transcript": "A statement to members, not a lock.",
    "Release.retention": 'How long packets are kept after the end, such as "90d".',
    "Cover.connections": "Of every member in each window, packets among dummies; 0 for none.",
}
"""A sentence for every key that all studies have, as editors show it. Those of a design are its own."""

_BOUNDS: Final[dict[str, dict[str, Any]]] = {
    "version": {"const": 1},
    "Label.name": {"pattern": NAME_PATTERN},
    "Feature.name": {"pattern": NAME_PATTERN},
    "Label.positive": {"minItems": 1},
    "Label.negative": {"minItems": 1},
    "Feature.range": {"minItems": 2, "maxItems": 2},
    "Feature.bins": {"minimum": 0, "maximum": MAX_BINS},
    "Feature.categories": {"maxItems": MAX_CATEGORIES, "uniqueItems": True},
    "Feature.expects": {
        "type": ["integer", "array"], "minimum": -1, "maximum": 1,
        "items": {"type": "integer", "minimum": -1, "maximum": 1},
    },
    "most_records": {"minimum": 0, "maximum": MOST_RECORDS},
    "least_records": {"minimum": 1, "maximum": MOST_RECORDS},
    "tellers": {"minItems": FEWEST_TELLERS, "maxItems": MOST_TELLERS},
    "given": {"maxItems": MOST_GIVEN},
    "language": {"pattern": f"^$|{LANGUAGE_PATTERN}"},
    "Translation.purpose": {"maxLength": LONGEST_PURPOSE},
    "Translation.data_source": {"maxLength": LONGEST_PURPOSE},
    "Translation.words": {
        "type": "object",
        "propertyNames": {"pattern": NAME_PATTERN},
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": LONGEST_DESCRIPTION},
    },
    "TellerPlace.name": {"minLength": 1, "maxLength": LONGEST_NAME},
    "TellerPlace.address": {"pattern": TELLER_ADDRESS},
    "TellerPlace.entry": {"pattern": "^([0-9a-f]{2})*$", "maxLength": LONGEST_ENTRY},
    "TellerPlace.second_entry": {"pattern": "^([0-9a-f]{2})*$", "maxLength": LONGEST_ENTRY},
    "Learning.score_share": {"minimum": 0, "maximum": 0.5},
    "Learning.base_rate": {"minimum": 0.001, "maximum": 0.999},
    "Cohort.minimum": {"minimum": 2, "maximum": MOST_IN_COHORT},
    "Cohort.maximum": {"minimum": 0, "maximum": MOST_IN_COHORT},
    "Cover.connections": {"minimum": 0, "maximum": MOST_CONNECTIONS},
}


def study_schema(designs: Mapping[str, Design]) -> dict[str, Any]:
    """The schema of a study of one of these designs, by kind, with a description of every key."""
    sections = {cls.__name__: _object(cls, f"{cls.__name__}.", WORDS, _BOUNDS) for cls in _SECTIONS}
    for kind, design in designs.items():
        bounds = {**design.bounds, "kind": {"const": kind}}
        sections[design.section.__name__] = _object(design.section, "", design.words, bounds)
    top = _object(Proposal, "", WORDS, _BOUNDS)
    named = {"type": "string", "pattern": NAME_PATTERN}
    columns = {"type": "array", "items": named, "minItems": 1, "uniqueItems": True}
    top["properties"]["design"] = {
        "anyOf": [{"$ref": f"#/$defs/{design.section.__name__}"} for design in designs.values()],
        "description": WORDS["design"],
    }
    top["properties"]["tables"] = {
        "type": "object",
        "description": WORDS["tables"],
        "propertyNames": {"pattern": NAME_PATTERN},
        "additionalProperties": columns,
        "minProperties": 1,
    }
    top["properties"]["texts"] = {
        "type": "object",
        "description": WORDS["texts"],
        "propertyNames": {"pattern": LANGUAGE_PATTERN},
        "additionalProperties": {"$ref": "#/$defs/Translation"},
        "maxProperties": MOST_LANGUAGES,
    }
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "AnonML study"}
    return {**about, **top, "$defs": sections}


def _object(
    cls: type[Any], prefix: str, words: Mapping[str, str], bounds: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    properties, required = {}, []
    for attribute in attrs.fields(cls):
        if attribute.metadata.get("carried") or (cls is Translation and attribute.name == "language"):
            continue  # a language's table is named by it
        key = prefix + attribute.name
        described = {} if key == "Translation.words" else _of_type(hints[attribute.name])
        if cls is Schedule or key == "Release.retention":
            described = {"type": "string", "pattern": DURATION_PATTERN}
        if isinstance(attribute.validator, OneOf):
            described["enum"] = list(attribute.validator.choices)
        described |= bounds.get(key, {})
        if attribute.default is attrs.NOTHING:
            required.append(attribute.name)
        elif isinstance(attribute.default, (str, int, float)) and described.get("pattern") != DURATION_PATTERN:
            described["default"] = attribute.default
        elif isinstance(attribute.default, int):  # a duration
            described["default"] = spelled(attribute.default)
        properties[attribute.name] = described | {"description": words[key]}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _of_type(hint: Any) -> dict[str, Any]:
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if hint in _SECTIONS:
        return {"$ref": f"#/$defs/{hint.__name__}"}
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _of_type(inner[0])}
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return {"anyOf": [_of_type(kind) for kind in inner]}
    return {}  # tables and the design, whose forms stand elsewhere
