"""Mechanisms and their reports, documents of counts, and models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from anon.ldp import SCALE, RawCategory, build, nano
from anon.ldp.mechanism import Mechanism
from anon.ldp.subset import SubsetSelection
from anon.protocols.histogram import thresholds
from anon.protocols.histogram.asked import MIDDLE, asks_label
from anon.protocols.histogram.ruled import middle
from anon.study.manifest import Manifest
from anon.wire.cbor import decode, encode
from benchmarks.vectors.made import Case, Kind, Stream, changed, flipped, replaced
from benchmarks.vectors.study import HISTOGRAMS, SUMS, Study, finished


def kinds() -> list[Kind]:
    """All of this module."""
    return [_mechanisms(), _reports(), _counts(), _models()]


# Mechanisms


def _asked(mechanism: Mechanism) -> dict[str, object]:
    return {"name": mechanism.name, "m": mechanism.m, "p": str(mechanism.p), "q": str(mechanism.q)}


def _some() -> list[Mechanism]:
    shapes = ((2, "0.5"), (4, "1"), (8, "2"), (16, "0.1"), (64, "3.5"))
    made = [build(name, m, nano(epsilon)) for name in ("krr", "subset", "rappor", "pq") for m, epsilon in shapes]
    return [*made, SubsetSelection.of_size(16, 5, nano(1)), build("krr", 4096, nano(20))]


def _mechanisms() -> Kind:
    cases = [
        Case(f"{one.name} of {one.m}, {number}", _asked(one), "", {"epsilon": one.epsilon, "size": one.report_size})
        for number, one in enumerate(_some())
    ]
    good = {one.name: _asked(one) for one in _some() if one.m == 4}
    ordered = "0 < q < p < 2^64"
    for name, asked in good.items():
        cases += [
            Case(f"{name} with q of 0", asked | {"q": "0"}, ordered),
            Case(f"{name} with p of 2^64", asked | {"p": str(SCALE)}, ordered),
            Case(f"{name} with p and q changed about", asked | {"p": asked["q"], "q": asked["p"]}, ordered),
            Case(f"{name} of one category", asked | {"m": 1}, "2 to 4,096 categories"),
            Case(f"{name} of 4,097", asked | {"m": 4097}, "2 to 4,096 categories"),
        ]
    less = {name: asked | {"p": str(int(str(asked["p"])) - 1)} for name, asked in good.items() if name != "pq"}
    fits = {"krr": "p + (m - 1) q = 2^64", "subset": "p + (m - 1) q is a multiple of 2^64", "rappor": "p + q = 2^64"}
    cases += [Case(f"{name} with p one less", asked, fits[name]) for name, asked in less.items()]
    cases.append(Case("of an unknown name", good["krr"] | {"name": "laplace"}, "the mechanism is known"))
    far = {"name": "pq", "m": 4, "p": str(SCALE - 1), "q": "1"}
    cases.append(Case("with a loss above 20", far, "a loss is at most 20"))
    return Kind("mechanisms",
        "A mechanism by its integers over 2^64. It gives its loss in 1e-9 and the bytes of a report.", tuple(cases))


def _reports() -> Kind:
    cases: list[Case] = []
    for one in _some():
        drawn = Stream(f"report {one.name} {one.m} {one.p}")
        report = bytes(one.perturb(RawCategory(one.m - 1, one.m), drawn))
        name, asked = f"{one.name} of {one.m} at {one.epsilon}", _asked(one)
        cases.append(Case(name, {**asked, "report": report}, "", {"supports": _supported(one, report)}))
        cases.append(Case(f"{name}, a byte longer", {**asked, "report": report + b"\0"}, "a report has its length"))
        if one.name == "krr":
            cases.append(Case(f"{name}, beyond it", {**asked, "report": one.m.to_bytes(2, "big")},
                "a category is below m"))
        elif one.m % 8:
            cases.append(Case(f"{name}, with a bit behind", {**asked, "report": flipped(report)},
                "bits behind the last are zeros"))
        if one.name == "subset":
            cases.append(Case(f"{name}, of another size", {**asked, "report": flipped(report, 0, 0x80)},
                "a set has its size"))
    return Kind("reports", "A report of a mechanism. It gives the categories that it supports.", tuple(cases))


def _supported(mechanism: Mechanism, report: bytes) -> list[int]:
    tally = mechanism.tally([mechanism.parse(report)])
    return [category for category, number in enumerate(tally) if number]


# Counts


def _counts() -> Kind:
    cases: list[Case] = []
    shared: dict[str, bytes] = {}
    for name in ("quantile", "median", "rule"):
        study = finished(name, 6)
        shared[f"manifest {name}"] = study.manifest.to_bytes()
        places = [place for place in study.bodies if place[0] in ("edges", "thresholds")]
        for kind, part in places:
            body = study.bodies[kind, part]
            asked = {"manifest": f"@manifest {name}", "kind": kind, "part": part}
            found = thresholds.parse(study.manifest, (kind, part), body)
            told = {str(survey): [one.n, *one.counts] for survey, one in found.items()}
            gives = {"counts": told, **middle_of(study.manifest, found)}
            cases.append(Case(f"{name} {kind} {part}", {**asked, "body": body}, "", gives))
            cases += [
                Case(f"{name} {kind} {part} {what}", {**asked, "body": made}, why) for what,
                (made, why) in _bad_counts(body).items()
            ]
        if name == "quantile":
            cases += _cuts(study)
        if name == "rule":
            cases += _middles(study)
    about = "What a round of binning told. It gives, by survey, the answers and their counts; or cuts, or a middle."
    return Kind("counts", about,
        tuple(cases), shared)


def _bad_counts(body: bytes) -> dict[str, tuple[bytes, str]]:
    (asked,) = decode(body)[-1]
    other = "age" if asked == "sex" else "sex"

    def row(change: Callable[[list[Any]], list[Any]]) -> bytes:
        return changed(body, lambda fields: [*fields[:-1], {asked: change(fields[-1][asked])}])

    listed_ = isinstance(decode(body)[-1][asked][1], list)

    def first(number: object) -> bytes:
        return row(lambda told: [told[0], replaced(told[1], 0, number) if listed_ else number])

    possible = "a count is a number from 0 to the answers"
    return {
        "of another study": (changed(body, lambda fields: replaced(fields, 1, bytes(32))), "it is of this study"),
        "version 2": (changed(body, lambda fields: [2, *fields[1:]]), "the version is 1"),
        "of no feature": (changed(body, lambda fields: [*fields[:-1], {}]), "it has the features of its round"),
        "of another feature": (changed(body, lambda fields: [*fields[:-1], {other: fields[-1][asked]}]),
            "it has the features of its round"),
        "of more counts than answers": (first(7), possible), "of a count below 0": (first(-1), possible),
        "of a count that is true": (first(True), possible), "of a text": (first("1"), possible),
        "of answers below 0": (row(lambda told: [-1, told[1]]), "answers are from 0 to 1,000,000"),
        "of 1,000,001 answers": (row(lambda told: [1_000_001, told[1]]), "answers are from 0 to 1,000,000"),
        "of three fields": (row(lambda told: [*told, 0]), "two fields for a feature"),
        "of a count less": (row(lambda told: [told[0], told[1][1:] if listed_ else []]), "a count for each level"),
        "cut short": (body[:-1], "the one spelling"),
    }


def _cuts(study: Study) -> list[Case]:
    """The cuts that follow from counts, at edges' bodies that are made up."""
    survey = next(one for one in study.manifest.surveys if not asks_label(one))
    cases = []
    for number in range(8):
        drawn = Stream(f"cuts {number}")
        answers = [0, 5, 50, 1000][number % 4]
        row = [answers, [drawn.below(answers + 1) for _ in range(survey.m)]]
        body = encode([1, study.study, {"age": row}])
        told = thresholds.study_cuts(study.manifest, thresholds.parse(study.manifest, ("edges", 0), body))
        asked = {"manifest": "@manifest quantile", "kind": "edges", "part": 0, "body": body}
        cases.append(Case(f"cuts {number}", asked, "", {"cuts": {name: list(cuts) for name, cuts in told.items()}}))
    return cases


def middle_of(manifest: Manifest, answers: thresholds.Published) -> dict[str, float]:
    """Where scores lie, of a study that asks about a declared one."""
    for survey in (one for one in manifest.surveys if one.kind == MIDDLE):
        told = answers[survey.survey]
        return {"middle": middle(survey.build(), told.counts[0], told.n)}
    return {}


def _middles(study: Study) -> list[Case]:
    """Where scores lie, at edges' bodies that are made up."""
    cases = []
    for answers, plus in ((0, 0), (5, 0), (5, 5), (70, 31), (1000, 640), (1_000_000, 400_000)):
        body = encode([1, study.study, {"sex": [answers, plus]}])
        told = middle_of(study.manifest, thresholds.parse(study.manifest, ("edges", 0), body))
        asked = {"manifest": "@manifest rule", "kind": "edges", "part": 0, "body": body}
        cases.append(Case(f"middle of {plus} of {answers}", asked, "", told))
    return cases


# Models


def _models() -> Kind:
    cases: list[Case] = []
    for name in (*HISTOGRAMS, *SUMS):
        study = finished(name)
        text = _json(_rounded(json.loads(study.bodies["model", 0])))
        cases.append(Case(f"a model of {name}", {"model": text}, "", {"form": json.loads(text).get("form", "tables")}))
        cases += [Case(f"{name} {what}", {"model": made}, why) for what, (made, why) in _bad_models(name, text).items()]
    return Kind("models", "The JSON of a published result by itself. It gives its form.", tuple(cases))


def _bad_models(name: str, text: str) -> dict[str, tuple[str, str]]:
    plain = json.loads(text)

    def other(**fields: object) -> str:
        return _json({**plain, **fields})

    broken = {
        "without its last line end": (text[:-1], "the one spelling"),
        "with blanks": (json.dumps(plain, sort_keys=True) + "\n", "the one spelling"),
        "of another version": (other(version=2), "the version is 1"),
        "with an unknown key": (other(colour="blue"), "no other field is there"),
        "cut short": (text[: len(text) // 2], "it is JSON"),
        "with a chance of 2": (other(chance=2.0), "a chance is from 0 to 1"),
        "with a key twice": (text.replace("{", '{"version":1,', 1), "no key is there twice"),
        "with infinity": (text.replace('"chance":' + json.dumps(plain["chance"]), '"chance":1e999'),
            "numbers are finite"),
        "with a threshold of 2": (other(threshold=2.0), "a threshold is from 0 to 1"),
        "without a title": (_json({k: v for k, v in plain.items() if k != "title"}), "every field is there"),
        "of an unknown form": (other(form="forest"), "the form is known"),
        "without features": (other(features=[]), "columns and tables are of features"),
    }
    if plain.get("tables"):
        table = plain["tables"][0]

        def first(**fields: object) -> str:
            return other(tables=[{**table, **fields}, *plain["tables"][1:]])

        broken |= {
            "with a base rate of 1": (other(base_rate=1.0), "a base rate lies between 0 and 1"),
            "with an unknown ensemble": (other(ensemble="hard"), "the ensemble is soft or vote"),
            "with a cell less": (first(log_odds=table["log_odds"][1:]), "a log-odds for each cell"),
            "with a vote of 2": (first(votes=[2, *table["votes"][1:]]), "a vote is 0 or 1"),
            "with a weight below 0": (first(weight=-1.0), "a weight is at least 0"),
            "with another card": (first(cards=[99]), "a card is its feature's"),
            "with a card of 0": (first(cards=[0]), "a card is at least 1"),
            "about an unknown feature": (first(features=["x"]), "tables are of features"),
        }
    if "weights" in plain:
        broken |= {
            "with a weight less": (other(weights=plain["weights"][1:]), "a weight for each column"),
            "with a text as weight": (other(intercept="1"), "fields have their types"),
            "with a weight beyond 2^53": (other(intercept=2.0**60), "numbers lie within -2^53 and 2^53"),
            "with a column twice": (other(columns=plain["columns"] * 2), "columns are different"),
        }
    return {what: (made, why) for what, (made, why) in broken.items() if made != text}


def _rounded(value: Any) -> Any:
    """The same with six digits: another machine's arithmetic differs in the last ones."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _json(plain: Mapping[str, object]) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":")) + "\n"
