"""Manifests that hold, and one for each way in which one may not. Each gives the study's id and words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anon.study.manifest import study_id_of
from anon.transparency.fingerprint import words
from benchmarks.vectors.made import Case, Kind, changed, flipped
from benchmarks.vectors.study import HISTOGRAMS, SUMS, begun

_ABOUT = "A manifest by itself: its form, and what it must declare."
_ONION = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion:80"
_LATEST, _LARGE = 2**37, 2**53
_Table = dict[str, Any]


def at(path: str, value: Any) -> Callable[[_Table], _Table]:
    """Sets what stands at a path such as "surveys.0.p"; `...` takes it away, and a function is asked for it."""

    def change(plain: _Table) -> _Table:
        *outer, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place: Any = plain
        for part in outer:
            place = place[part]
        if value is ...:
            del place[last]
        else:
            place[last] = value(place[last]) if callable(value) else value
        return plain

    return change


def several(*changes: Callable[[_Table], _Table]) -> Callable[[_Table], _Table]:
    """All of these, one after the other."""

    def change(plain: _Table) -> _Table:
        for one in changes:
            plain = one(plain)
        return plain

    return change


def _less(number: int) -> int:
    return number - 1


def _twice(items: list[Any]) -> list[Any]:
    return [*items, items[0]]


_ONCE = "a rule asks for its middle, a side and a score, once each"
_ABOUT_DECLARED = "a rule is about all features with a direction, in their order"


def _summing(*bins: int) -> Callable[[_Table], _Table]:
    """Adds numbers with so many bins to a rule. Without a common divisor they make many sums."""

    def change(plain: _Table) -> _Table:
        age = plain["features"][1]
        more = [{**age, "name": f"age{own}", "cuts": [20.0 + at for at in range(own - 1)]} for own in bins]
        for survey in plain["surveys"][:3]:
            survey["features"] += [feature["name"] for feature in more]
            survey["cards"] += [len(feature["cuts"]) + 2 for feature in more]
        return {**plain, "features": [*plain["features"], *more]}

    return change


def _sought(plain: _Table) -> _Table:
    """Two bins of a rule's number, whose cut the last bit about it finds."""
    plain["features"][1] |= {"cuts": [], "bins": 2}
    asked = [survey for survey in plain["surveys"] if "age" in survey["features"]]
    for survey in asked:
        survey["cards"][-1] = 3
        if survey["kind"] == "bit":
            survey["parameters"] = survey["parameters"][:4]
            survey["parameters"][1:] = [0, 1, 1]
    asked[-1] |= {"kind": "quantile", "cards": [2], "window": plain["surveys"][0]["window"]}
    del asked[-1]["parameters"]
    return plain


BROKEN: tuple[tuple[str, str, str, Callable[[_Table], _Table]], ...] = (
    ("version 1", "cuts", "the version is 2", at("version", 1)),
    ("version 3", "cuts", "the version is 2", at("version", 3)),
    ("version as a text", "cuts", "every field has its type", at("version", "2")),
    ("no title", "cuts", "every field is there", at("title", ...)),
    ("no label", "cuts", "every field is there", at("label", ...)),
    ("unknown key", "cuts", "no other field is there", at("colour", "blue")),
    ("unknown key in a survey", "cuts", "no other field is there", at("surveys.0.weight", 1)),
    ("empty cover", "cuts", "none has one spelling: the field is left out", at("cover", {"connections": 0})),
    ("empty address", "cuts", "none has one spelling: the field is left out", at("address", "")),
    ("empty part", "cuts", "none has one spelling: the field is left out", at("part", b"")),
    ("empty given", "cuts", "none has one spelling: the field is left out", at("given", [])),
    ("a size of 0 spelled", "cuts", "none has one spelling: the field is left out", at("surveys.0.size", 0)),
    ("no parameters spelled", "cuts", "none has one spelling: the field is left out", at("surveys.0.parameters", [])),
    ("title of two lines", "cuts", "a title is one line", at("title", "Two\nlines")),
    ("title of 401 characters", "cuts", "a title has at most 400 characters", at("title", "x" * 401)),
    ("title that turns text round", "cuts", "no character reorders text", at("title", "safe\u202eevil")),
    ("purpose with a control character", "cuts", "no character moves a cursor", at("purpose", "a\x07b")),
    ("purpose of 8,001 characters", "cuts", "a purpose has at most 8,000 characters", at("purpose", "x" * 8001)),
    ("contact of two lines", "cuts", "a contact is one line", at("contact", "a\nb")),
    ("protocol in capitals", "cuts", "a protocol's name has small letters, digits and hyphens", at("protocol", "HIST")),
    ("unknown protocol", "cuts", "the design belongs to the protocol", at("protocol", "lottery")),
    ("design of another protocol", "cuts", "the design belongs to the protocol", at("design", "tables-sum")),
    ("unknown design", "cuts", "the design is known", at("design", "no-packets")),
    ("aggregator key of 31 bytes", "cuts", "an Ed25519 key has 32 bytes", at("aggregator_key", bytes(31))),
    ("sealing key of 32 bytes", "cuts", "an X-Wing key has 1,216 bytes", at("sealing_key", bytes(32))),
    ("credential key of 48 bytes", "cuts", "an issuer's key has 96 bytes", at("credential_key", bytes(48))),
    ("seed commitment of 33 bytes", "cuts", "a commitment has 32 bytes", at("seed_commitment", bytes(33))),
    ("key as a text", "cuts", "every field has its type", at("aggregator_key", "key")),
    ("address of a subdomain", "cuts", "an address has no subdomain", at("address", f"a.{_ONION}")),
    ("address at another port", "cuts", "an address is at port 80", at("address", _ONION.replace(":80", ":81"))),
    ("address with a bad checksum", "cuts", "an onion address has its checksum", at("address", f"qg{_ONION[2:]}")),
    ("address twice", "cuts", "the addresses are different", at("address", f"{_ONION} {_ONION}")),
    ("address that is a name", "cuts", "an address is an onion address", at("address", "example.org:80")),
    ("epsilon below 0", "cuts", "an epsilon is at least 0", at("epsilon", -1)),
    ("epsilon of 2^40", "cuts", "an epsilon is below 2^40", at("epsilon", 2**40)),
    ("epsilon as a float", "cuts", "every field has its type", at("epsilon", 2e9)),
    ("epsilon below its cost", "cuts", "a study declares at least what it costs", at("epsilon", _less)),
    ("attribute epsilon below its cost", "cuts", "eq. 6 is declared in full", at("epsilon_per_attribute", _less)),
    ("survey's epsilon below its loss", "cuts", "a survey declares its loss", at("surveys.0.epsilon", _less)),
    ("survey out of number", "cuts", "surveys are numbered from 0", at("surveys.0.survey", 1)),
    ("survey about an unknown feature", "cuts", "surveys ask features of the study", at("surveys.0.features", ["x"])),
    ("survey with a card too many", "cuts", "a survey has a card for each feature", at("surveys.0.cards", [2, 2, 2])),
    ("survey with another card", "cuts", "a card is its feature's", at("surveys.0.cards.0", 5)),
    ("survey with another m", "cuts", "p and q fit m", at("surveys.0.m", 6)),
    ("survey of an unknown mechanism", "cuts", "the mechanism is known", at("surveys.0.mechanism", "laplace")),
    ("survey of an unknown kind", "cuts", "the kind is of the protocol", at("surveys.0.kind", "census")),
    ("survey with q of 0", "cuts", "0 < q < p < 2^64", at("surveys.0.q", 0)),
    ("survey with p of 2^64", "cuts", "0 < q < p < 2^64", at("surveys.0.p", 2**64)),
    ("survey with p below q", "cuts", "0 < q < p < 2^64", several(at("surveys.0.p", 5), at("surveys.0.q", 6))),
    ("survey with another p", "cuts", "p and q fit the mechanism", at("surveys.0.p", _less)),
    ("perturbed survey with a size", "cuts", "the size of a report follows from its mechanism",
     at("surveys.0.size", 3)),
    ("survey of round 256", "cuts", "a round is below 256", at("surveys.0.round", 256)),
    ("histogram survey with parameters", "cuts", "parameters are of one-bit surveys", at("surveys.0.parameters", [1])),
    ("window that closes first", "cuts", "a window opens before it closes", at("surveys.0.window.closes", 5)),
    ("window beyond 2^37", "cuts", "instants are below 2^37", at("surveys.0.window.closes", _LATEST)),
    ("window outside the timetable", "cuts", "windows lie within the timetable",
     at("timetable.settled", lambda t: t + 30)),
    ("timetable out of order", "cuts", "instants are in order", at("timetable.enrol_closes", 5)),
    ("margin of half a window", "cuts", "a margin is below half of the shortest window", at("timetable.margin", 50)),
    ("margin of 0", "cuts", "a margin is at least 1 s", at("timetable.margin", 0)),
    ("minimum of 1", "cuts", "a cohort has at least 2", at("cohort.minimum", 1)),
    ("maximum below the minimum", "cuts", "the maximum is at least the minimum", at("cohort.minimum", 1001)),
    ("no maximum", "cuts", "a published study names its maximum", at("cohort.maximum", 0)),
    ("maximum of 1,000,001", "cuts", "a cohort has at most 1,000,000", at("cohort.maximum", 1_000_001)),
    ("unknown admission", "cuts", "admission is invite, allow-list or open", at("cohort.admission", "lottery")),
    ("unknown classifier", "cuts", "the classifier is known", at("learning.classifier", "oracle")),
    ("unknown ensemble", "cuts", "the ensemble is soft or vote", at("learning.ensemble", "hard")),
    ("additive vote", "cuts", "the additive classifier is soft",
     several(at("learning.classifier", "additive"), at("learning.ensemble", "vote"))),
    ("score share of 0.01", "cuts", "a score share is 0.05 to 0.5, or 0", at("learning.score_share", 0.01)),
    ("vote without a score share", "cuts", "a vote needs a score share",
     several(at("learning.score_share", 0.0), at("learning.ensemble", "vote"))),
    ("base rate of 1", "cuts", "a base rate is 0.001 to 0.999", at("learning.base_rate", 1.0)),
    ("base rate as an integer", "cuts", "a number that may be a fraction is spelled as a float",
     at("learning.score_share", 0)),
    ("unknown transcript", "cuts", "a transcript is for members or public", at("release.transcript", "nobody")),
    ("retention beyond 2^37", "cuts", "durations are below 2^37", at("release.retention", _LATEST)),
    ("feature twice", "cuts", "no two features have one name", at("features", _twice)),
    ("feature named as the label", "cuts", "no feature is named as the label", at("label.name", "sex")),
    ("table twice", "cuts", "no two tables have one name", at("tables", _twice)),
    ("column twice", "cuts", "no two columns of a table have one name", at("tables.0.columns", _twice)),
    ("no features", "cuts", "surveys ask features of the study", at("features", [])),
    ("cut outside the range", "cuts", "a cut is at least the minimum and below the maximum",
     at("features.1.cuts", [30.0, 95.0])),
    ("cuts out of order", "cuts", "cuts increase", at("features.1.cuts", [50.0, 30.0])),
    ("cut beyond 2^53", "cuts", "numbers lie within -2^53 and 2^53", at("features.1.range", [0.0, 2.0 * _LARGE])),
    ("cuts and bins", "cuts", "a numeric feature has cuts or bins", at("features.1.bins", 3)),
    ("one bin", "quantile", "bins are 2 to 32", at("features.1.bins", 1)),
    ("category twice", "cuts", "categories are different", at("features.0.categories", ["Male", "Male"])),
    ("missing is no category", "cuts", "a missing value counts as a category", at("features.0.missing", "Other")),
    ("range of a text", "cuts", "a categorical feature has no range", at("features.0.range", [0.0, 1.0])),
    ("shares that do not sum to 1", "cuts", "shares sum to 1", at("features.0.shares", [0.5, 0.2])),
    ("direction of 2", "cuts", "a direction is 1, -1 or 0", at("features.1.expects", [2])),
    ("value positive and negative", "cuts", "no value is both", at("label.negative", ["high"])),
    ("no negative value", "cuts", "at least one value is negative", at("label.negative", [])),
    ("slot out of number", "cuts", "slots are numbered from 0", at("slots.0.slot", 1)),
    ("row of weight 0", "cuts", "weights are at least 1", at("slots.0.rows.0.weight", 0)),
    ("weights of 2^28", "cuts", "weights add up to less than 2^28", at("slots.0.rows.0.weight", 2**28)),
    ("survey in no slot", "cuts", "every survey is in one row", at("slots.0.rows", lambda rows: rows[1:])),
    ("survey in two rows", "cuts", "every survey is in one row", at("slots.0.rows", _twice)),
    ("no slots", "cuts", "there are 1 to 255 slots", at("slots", [])),
    ("report size too small", "cuts", "the size is that of the longest report", at("report_size", _less)),
    ("cover of 65", "cuts", "connections are at most 64", at("cover", {"connections": 65})),
    ("cover of fewer than the packets", "median", "connections are at least the packets of a window",
     at("cover", {"connections": 1})),
    ("two slots in one packet", "median", "one-packet has one slot", at("design", "one-packet")),
    ("feature in two slots", "median", "no feature is in two slots",
     several(at("slots.0.rows.1.survey", 2), at("slots.1.rows.0.survey", 1))),
    ("cuts sought that are declared", "quantile", "a feature whose cuts are known is not asked for them",
     several(at("features.1.bins", 0), at("features.1.cuts", [20.0, 40.0]))),
    ("more bins than a survey says", "quantile", "a card is its feature's", at("features.1.bins", 32)),
    ("bit without signs", "bits", "a one-bit survey has its centre and a sign for each category",
     at("surveys.1.parameters", ...)),
    ("bit about two features", "bits", "a one-bit survey is about one feature",
     several(at("surveys.1.features", ["sex", "age"]), at("surveys.1.cards", [2, 4]),
             at("surveys.1.parameters", lambda own: [own[0], *[1] * 8]))),
    ("rule with two middles", "rule", _ONCE, at("surveys.1.kind", "middle")),
    ("rule with two sides", "rule", _ONCE, at("surveys.0.kind", "side")),
    ("rule with two scores", "rule", _ONCE,
     several(at("surveys.1.kind", "score"), at("surveys.1.parameters", [2**62]))),
    ("rule whose score has no centre", "rule", "a score has a centre above 0", at("surveys.2.parameters", ...)),
    ("rule whose score has a centre of 0", "rule", "a score has a centre above 0", at("surveys.2.parameters", [0])),
    ("rule whose score has signs", "rule", "a score has its centre alone", at("surveys.2.parameters", [2**62, 1])),
    ("rule whose side has a centre", "rule", "a side has no parameters", at("surveys.1.parameters", [2**62])),
    ("rule whose middle has a centre", "rule", "a middle has no parameters", at("surveys.0.parameters", [2**62])),
    ("rule in another order", "rule", _ABOUT_DECLARED,
     several(at("surveys.2.features", ["age", "sex"]), at("surveys.2.cards", [4, 2]))),
    ("rule about a feature without a direction", "rule", _ABOUT_DECLARED, at("features.0.expects", ...)),
    ("rule about one feature", "rule", "a rule is about at least two features",
     several(at("surveys.0.features", ["sex"]), at("surveys.0.cards", [2]))),
    ("rule with another card", "rule", "a card is its feature's", at("surveys.1.cards.0", 3)),
    ("rule of cuts that are sought", "rule", "a rule adds up features whose cuts are declared", _sought),
    ("rule of 145,861 sums", "rule", "a rule has at most 100,000 sums", _summing(6, 12, 14, 18)),
    ("histogram with a part", "cuts", "a histogram has no part", at("part", b"x")),
    ("sum without a part", "tables", "a sum names its tellers", at("part", ...)),
    ("sum with another part", "tables", "a part is an arrangement", at("part", b"\x80")),
    ("exact survey with probabilities", "tables", "an exact survey has no probabilities", at("surveys.0.p", 1)),
    ("exact survey of no entries", "tables", "a vector has an entry", at("surveys.0.m", 0)),
    ("exact survey with another vector", "tables", "circuits are recomputed", at("surveys.0.m", lambda m: m + 1)),
    ("sum that costs more", "tables", "a study declares at least what it costs", at("epsilon", _less)),
)


_TEXTS = [
    {"language": "de", "title": "Schlaf", "words": [{"name": "income", "description": "Ein Wort."}]},
    {"language": "pt-br", "purpose": "Para ver."},
]
_SAID = at("language", "en")
_OF_TEXTS = (
    ("texts without a language of the main ones", "beside texts the main language is named", at("texts", _TEXTS)),
    ("no further texts", "a list of texts is not empty", several(_SAID, at("texts", []))),
    ("languages out of order", "languages come in their order", several(_SAID, at("texts", _TEXTS[::-1]))),
    ("texts of the main language", "no text is in the main language",
     several(at("language", "de"), at("texts", _TEXTS))),
    ("a language in capitals", "a language is a tag in small letters", at("language", "EN")),
    ("a language without a text", "a language has a text", several(_SAID, at("texts", [{"language": "de"}]))),
    ("an empty title of a language", "a piece that is not there is left out",
     several(_SAID, at("texts", [{"language": "de", "title": "", "purpose": "X"}]))),
    ("a text with a blank before it", "a text has no blanks around it",
     several(_SAID, at("texts", [{"language": "de", "title": " X"}]))),
    ("words about nothing", "words are of a feature or the label",
     several(_SAID, at("texts", [{"language": "de", "words": [{"name": "nothing", "description": "X"}]}]))),
    ("texts of more than 64 KiB", "texts have at most 65,536 bytes in all",
     several(_SAID, at("texts", [{"language": f"a{sign}", "purpose": "\u00e4" * 8000} for sign in "abcde"]))),
)  # fmt: skip


def kind() -> Kind:
    """All of them."""
    plain = {design: begun(design, "manifests").manifest.to_bytes() for design in (*HISTOGRAMS, *SUMS)}
    good = {f"a study of {design}": data for design, data in plain.items()}
    covered = begun("median", "manifests", "[cover]\nconnections = 5\n").manifest
    good["a study with cover traffic"] = covered.to_bytes()
    good["a study with a spare teller"] = begun("tables", "manifests", "", 3).manifest.to_bytes()
    further = {
        "an onion address": at("address", _ONION), "a public transcript": at("release.transcript", "public"),
        "an allow-list": at("cohort.admission", "allow-list"), "open to anybody": at("cohort.admission", "open"),
        "a vote": at("learning.ensemble", "vote"), "a tree": at("learning.classifier", "tree"),
        "declared shares": at("features.0.shares", [0.25, 0.75]), "a declared direction": at("features.1.expects", [1]),
        "declares more than it costs": at("epsilon", lambda epsilon: epsilon + 1),
        "a place of the data": at("data_source", "Ask the office."),
    }
    further["texts in two further languages"] = several(at("language", "en"), at("texts", _TEXTS))
    good |= {name: changed(plain["cuts"], change) for name, change in further.items()}
    good["a rule of 24,311 sums"] = changed(plain["rule"], _summing(12, 14, 18))
    cases = [Case(name, {"manifest": data}, "", _gives(data)) for name, data in good.items()]
    cases += [Case(name, {"manifest": changed(plain[of], change)}, why) for name, of, why, change in BROKEN]
    cases += [Case(name, {"manifest": changed(plain["cuts"], change)}, why) for name, why, change in _OF_TEXTS]
    whole, spelling = plain["cuts"], "a document is the one deterministic spelling of plain values"
    cases += [
        Case("cut short", {"manifest": whole[:-1]}, spelling),
        Case("a byte more", {"manifest": whole + b"\0"}, spelling),
        Case("a head that says another length", {"manifest": flipped(whole, 0)}, spelling),
        Case("nothing", {"manifest": b""}, spelling),
        Case("a list in place of a map", {"manifest": b"\x80"}, "a manifest is a map"),
    ]
    return Kind("manifests", _ABOUT, tuple(cases))


def _gives(data: bytes) -> dict[str, object]:
    return {"study": study_id_of(data), "words": words(study_id_of(data))}
