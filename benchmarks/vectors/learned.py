"""Results that follow from counts and from sums: models, how often noise alone would count as much, and rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from aggregator.audit.likeness import alike, read_result
from aggregator.protocols.histogram.cohorts import learn_cohorts, tally_cohorts
from aggregator.protocols.histogram.ensemble import Subject
from aggregator.protocols.installed import PROTOCOLS
from aggregator.protocols.sum.part import learned_from
from anon.crypto.nacl import SigningKey
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.errors import Malformed
from anon.protocols.histogram.asked import SCORE, asks_label
from anon.protocols.histogram.thresholds import known_shares, study_cuts
from anon.protocols.resolve import StudyKeys, resolve
from anon.protocols.sum.design import summed_of
from anon.protocols.sum.standing import RoundSum, arrangement_of
from anon.protocols.vectors.residuals import ScoreSums
from anon.study.manifest import Manifest, Survey
from benchmarks.vectors.made import Case, Kind, Plain, Stream
from benchmarks.vectors.study import PUBLISHED, SEX, frame

_EXPECTING = {"cuts = [30, 50]": "cuts = [30, 50]\nexpects = 1", "cuts = [6]": "cuts = [6]\nexpects = -1"}
_LEARNING = '[learning]\nclassifier = "additive"\nscore_share = 0.2\nbase_rate = 0.4\n'
_ONE = '[design]\nkind = "one-packet"\nepsilon = 2.0\n'
_RULE = 'asks = "rule"\n[learning]\nclassifier = "additive"\nscore_share = 0\n'
COUNTED = {
    "soft": _ONE,
    "soft pairs": _ONE + "subset_size = 2\n",
    "votes": _ONE + '[learning]\nensemble = "vote"\nclassifier = "soft"\n',
    "additive": _ONE + _LEARNING,
    "additive pairs": _ONE + "subset_size = 2\n" + _LEARNING,
    "additive krr": _ONE + 'mechanism = "krr"\n' + _LEARNING,
    "additive, declared": _ONE + _LEARNING,
    "bits": _ONE + 'asks = "bits"\n[learning]\nclassifier = "additive"\nscore_share = 0\nbase_rate = 0.3\n',
    "bits, declared": _ONE + 'asks = "bits"\n[learning]\nclassifier = "additive"\nscore_share = 0\n',
    "local rule, declared": _ONE + _RULE,
    "local rule, declared but for one": _ONE + f"{_RULE}base_rate = 0.2\n{SEX}",
}
_UNANSWERED = ("soft", "additive", "bits", "local rule, declared")
SUMMED = {
    "tables": 'kind = "tables-sum"\nepsilon = 1.0',
    "tables of a pair": 'kind = "tables-sum"\nepsilon = 4.0\npairs = [["age", "sleep"]]',
    "marginals": 'kind = "marginals"\nepsilon = 2.0\ntree_from = 0\nrows = 40',
    "a star": 'kind = "marginals"\nepsilon = 1.0\nrows = 25',
    "moments": 'kind = "moments"\nepsilon = 1.0',
    "moments, shrunk": 'kind = "moments"\nepsilon = 1.0\nnorm = 0.5',
    "moments of a number": 'kind = "moments"\nepsilon = 1.0\ntarget = "sleep"\ntarget_weight = 2',
    "moments of a log number": 'kind = "moments"\nepsilon = 1.0\ntarget = "sleep"',
    "gradient": 'kind = "gradient"\nepsilon = 2.0\nrounds = 3',
    "gradient, many": 'kind = "gradient"\nepsilon = 2.0\nrounds = 2\nclip = 0.25\nmomentum = 0.5',
    "averaging, many": 'kind = "averaging"\nepsilon = 2.0\nstrength = 0.1',
    "transfer": 'kind = "transfer"\nepsilon = 2.0\npublic_rows = 12',
    "transfer, log": 'kind = "transfer"\nepsilon = 2.0\npublic_rows = 12',
    "rule, declared": 'kind = "rule"\nepsilon = 2.0\nrounds = 2',
}
_MANY = 'records = "many"\nmost_records = 20\nunit = "record"\n'


def kinds() -> list[Kind]:
    """All of this module."""
    return [_counted(), _summed()]


def manifest_of(name: str) -> tuple[Manifest, bytes]:
    """A study's manifest, and its public rows."""
    drawn = Stream(f"learned {name}")
    key = bytes(SigningKey(drawn(32)).verify_key)
    keys = StudyKeys(key, drawn(PUBLIC_KEY_SIZE), drawn(96), drawn(32))
    text, given = frame(COUNTED.get(name) or f"[design]\n{SUMMED[name]}\n", name in SUMMED), b""
    for plain, expected in _EXPECTING.items() if "declared" in name else ():
        text = text.replace(plain, expected)
    if "many" in name:
        text = many_records(text)
    if "log" in name.split():
        text = text.replace("range = [0, 12]", 'range = [0, 12]\nscale = "log"')
    if name.startswith("transfer"):
        text, public = public_rows_of(text, drawn)
        given = public["rows"]
    public = {"rows": given} if given else {}
    return resolve(PROTOCOLS.proposal(text), keys, PUBLISHED, drawn.below, given=public), given


def many_records(text: str) -> str:
    """A study file whose members have many records, each a day's."""
    text = text.replace("version = 1", f"version = 1\n{_MANY}", 1).replace("SELECT ", "SELECT day, ")
    return text.replace('["age"', '["day", "age"')


def public_rows_of(text: str, drawn: Stream) -> tuple[str, dict[str, bytes]]:
    """A study file that gives public rows, and these by their name."""
    more = '[[given]]\nname = "rows"\ndescription = "Rows."\nfile = "rows.csv"\n'
    return text + more, {"rows": _public(drawn)}


def _public(drawn: Stream) -> bytes:
    rows = [f"{drawn.below(120) / 10},{17 + drawn.below(74)}" for _ in range(12)]
    return "\n".join(["sleep,age", *rows, ""]).encode()


# Counts

Counts = Mapping[str, Sequence[Sequence[int]]]


def _counted() -> Kind:
    cases: list[Case] = []
    shared: dict[str, Any] = {}
    for name in COUNTED:
        manifest, _ = manifest_of(name)
        shared[f"manifest {name}"] = manifest.to_bytes()
        for members in (0, 40, 3000) if name in _UNANSWERED else (40, 3000):
            drawn = Stream(f"counts {name} {members}")
            counts = {str(one.survey): _answers(one, members, drawn) for one in manifest.surveys if asks_label(one)}
            ways = _ways(manifest, counts) if members == 40 else {"": counts}
            for way, told in ways.items():
                title = f"{name}, {members} answers{way}"
                shared[title] = told
                asked = {"manifest": f"@manifest {name}", "counts": f"@{title}"}
                cases += cases_of(title, asked, counted_model(manifest.to_bytes(), told))
    about = "A model and what was counted: of each survey the number of reports and how many support each category, "
    return Kind("learned-counts", about + "of reports that train and of those that only score.", tuple(cases), shared)


def _ways(manifest: Manifest, counts: Counts) -> dict[str, Counts]:
    """The counts, and of a declared rule also such as say nothing of its score, and such as contradict it."""
    found = {"": counts}
    for survey in (str(one.survey) for one in manifest.surveys if one.kind == SCORE):
        [[n, minus, plus]] = counts[survey]
        found[", noise"] = {**counts, survey: [[n, n // 2, n - n // 2]]}
        found[", turned"] = {**counts, survey: [[n, plus, minus]]}
    return found


def _answers(survey: Survey, members: int, drawn: Stream) -> list[list[int]]:
    """Reports that lean towards the last categories."""
    parts = 2 if survey.kind == "histogram" else 1
    return [_support(survey, members // (1 + 3 * part), drawn) for part in range(parts)]


def _support(survey: Survey, n: int, drawn: Stream) -> list[int]:
    if survey.mechanism != "krr":
        return [n, *(n // 4 + drawn.below(n // 8 + 1) + n * category // (8 * survey.m) for category in range(survey.m))]
    chosen = [max(drawn.below(survey.m), drawn.below(survey.m)) for _ in range(n)]
    return [n, *(chosen.count(category) for category in range(survey.m))]


def counted_model(manifest: bytes, counts: Counts) -> str:
    """The model of these counts, spelled."""
    return _counted_model(manifest, json.dumps(counts, sort_keys=True))


@lru_cache(maxsize=64)
def _counted_model(manifest: bytes, counts: str) -> str:
    study, told = PROTOCOLS.manifest(manifest), json.loads(counts)
    tallies = {
        one.survey: np.array(rows if one.kind == "histogram" else rows[0], dtype=np.int64)
        for one, rows in ((one, told[str(one.survey)]) for one in study.surveys if asks_label(one))
    }
    cohorts = tally_cohorts(study, tallies)
    subject = Subject(
        study.study_id.hex(), study.title, study.label, study.features, study_cuts(study, {}), known_shares(study, {})
    )
    learned = learn_cohorts(study, subject, cohorts, False)
    return learned.telling().model.to_json()


# Sums


def _summed() -> Kind:
    cases: list[Case] = []
    shared: dict[str, Any] = {}
    for name in SUMMED:
        manifest, given = manifest_of(name)
        shared[f"manifest {name}"] = manifest.to_bytes()
        for members, beyond in ((30, False), (2000, False), *([(2000, True)] if name == "moments" else [])):
            drawn = Stream(f"sums {name} {members}")
            rounds = [_round(manifest, survey, members, drawn) for survey in manifest.surveys]
            if beyond:  # what members make
                rounds[0][0][1] = str(members * 2**40)
            said = f"{name} of {members}{', beyond reason' if beyond else ''}"
            shared[said] = rounds
            asked: dict[str, Any] = {"manifest": f"@manifest {name}", "sums": f"@{said}"}
            asked |= {"given": given} if given else {}
            for kind, text in summed_results(manifest.to_bytes(), rounds, given).items():
                cases += cases_of(f"{said}, {kind}", asked, text)
    about = "A result and the sums that it follows from: of each round the values, the members, and numerator and "
    return Kind("learned-sums", about + "denominator of all tellers' noise. Public rows where votes are on some.",
        tuple(cases), shared)


def _round(manifest: Manifest, survey: Survey, members: int, drawn: Stream) -> list[Any]:
    arrangement = arrangement_of(manifest)
    noise = arrangement.sums[survey.round].sigma_squared * arrangement.summing
    values = [*_values(manifest, survey, members, drawn)]
    return [[*map(str, values)], members, str(noise.numerator), str(noise.denominator)]


def _values(manifest: Manifest, survey: Survey, members: int, drawn: Stream) -> Iterator[int]:
    """Sums such as members could make, with some noise."""
    if survey.kind in ("tables", "marginals", "scores"):
        shape = summed_of(manifest, survey)
        mark = shape.mark if isinstance(shape, ScoreSums) else 1
        for place in range(survey.m):
            counted = members // 8 + drawn.below(members // 6 + 1) + members * place // (10 * survey.m)
            yield mark * counted + drawn.below(9)
    elif survey.kind == "moments":
        size = len(survey.features) + (2 if survey.parameters[1] else 1)
        for row in range(size):
            yield members * (150 + drawn.below(60))
            yield from (members * (drawn.below(120) - 60) for _ in range(size - row - 1))
    else:
        part = 16 if survey.kind == "check" else 4
        edge = members * survey.parameters[0] // part if survey.parameters else members * 300
        for _ in range(survey.m - (survey.kind == "gradient" and survey.parameters[8:10] != ())):
            yield drawn.below(2 * edge) - edge
        if survey.kind == "gradient" and survey.parameters[8:10] != ():
            yield 3 * members * survey.parameters[0] + drawn.below(5000)


def summed_results(manifest: bytes, rounds: Sequence[Sequence[Any]], given: bytes) -> Mapping[str, str]:
    """The results of these sums, spelled, by kind of document."""
    return _summed_results(manifest, json.dumps(rounds), given)


@lru_cache(maxsize=64)
def _summed_results(manifest: bytes, rounds: str, given: bytes) -> Mapping[str, str]:
    sums = [
        RoundSum(tuple(map(int, values)), members, Fraction(int(up), int(down)))
        for values, members, up, down in json.loads(rounds)
    ]
    found = learned_from(PROTOCOLS.manifest(manifest), sums, given, with_influence=False).results
    return {kind: body.decode() for (kind, _), body in found.items()}


# Results


def demand_alike(text: str, recomputed: str) -> None:
    """Raises `Malformed` for a result that is not this one, but for rounding, or not in its one spelling."""
    if PROTOCOLS.result(text).to_json() != text or not alike(read_result(text), read_result(recomputed)):
        raise Malformed("it is not what the inputs give")


def cases_of(name: str, asked: Plain, text: str) -> list[Case]:
    """The result with nine digits, and such as it is not."""
    plain = _rounded(json.loads(text))
    made = [Case(name, {**asked, "result": _spelled(plain)})]
    for what, change, why in _LIES:
        other = json.loads(_spelled(plain))
        if change(other) and other != plain:
            made.append(Case(f"{name}, {what}", {**asked, "result": _spelled(other)}, why))
    return made


def _spelled(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":")) + "\n"


def _rounded(value: Any) -> Any:
    """Nine digits, far below the millionth up to which results are compared: machines differ in the last ones."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


Change = Callable[[dict[str, Any]], bool]


def _in_table(name: str, change: Callable[[Any], Any]) -> Change:
    def apply(plain: dict[str, Any]) -> bool:
        for table in plain.get("tables", []):
            if table[name] not in ([], None):
                table[name] = change(table[name])
                return True
        return False

    return apply


def _field(name: str, change: Callable[[Any], Any]) -> Change:
    def apply(plain: dict[str, Any]) -> bool:
        if plain.get(name) in (None, []):
            return False
        plain[name] = change(plain[name])
        return True

    return apply


def _within(name: str, key: str, change: Callable[[Any], Any]) -> Change:
    return _field(name, lambda inner: {**inner, key: change(inner[key])})


def _first(numbers: Sequence[float]) -> list[float]:
    return [numbers[0] + max(0.0001, abs(numbers[0]) / 1000), *numbers[1:]]


def _off(column: Any) -> Any:
    return {**column, "centre": 1.5} if isinstance(column, dict) else f"{column}s"


def _turned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[*rows[0][:-1], "0" if rows[0][-1] == "1" else "1"], *map(list, rows[1:])]


def _shown(plain: dict[str, Any]) -> bool:
    if (plain.get("chance") or 0.0) < 1e-6:  # such chances are alike
        return False
    plain["chance"], plain["shown"] = plain["chance"] / 2, plain["chance"] / 2 <= 0.015
    return True


_LIES: Sequence[tuple[str, Change, str]] = (
    ("another log-odds", _in_table("log_odds", _first), "log-odds are those of the inputs"),
    ("a smaller error", _in_table("errors", lambda errors: [errors[0] * 0.999, *errors[1:]]), "errors are found again"),
    ("another vote", _in_table("votes", lambda votes: [1 - votes[0], *votes[1:]]), "votes follow from log-odds"),
    ("a report more", _in_table("reports", lambda number: number + 1), "reports are counted"),
    ("another score", _in_table("auc", lambda auc: abs(auc - 0.01)), "scores are those of the packets that only score"),
    ("half of the chance", _shown, "a chance is found again"),
    ("another answer to shown", _field("shown", lambda shown: not shown), "it is shown if its chance is at most .015"),
    ("another threshold", _field("threshold", lambda threshold: threshold * 0.99), "a threshold follows"),
    ("another base rate", _field("base_rate", lambda rate: rate * 0.999), "the base rate is that of the inputs"),
    ("another title", _field("title", lambda title: title + "s"), "it is of this study"),
    ("another question", _within("label", "description", lambda text: text + "?"), "the label is the manifest's"),
    ("a table less", _field("tables", lambda tables: tables[:-1]), "each has its table"),
    ("another weight", _field("weights", _first), "weights are those of the sums"),
    ("another intercept", _field("intercept", lambda one: one + 0.0001), "an intercept is that of the sums"),
    ("another column", _field("columns", lambda columns: [_off(columns[0]), *columns[1:]]), "columns follow"),
    ("one turned row", _field("rows", _turned), "rows are drawn again"),
    ("a row less", _field("rows", lambda rows: rows[:-1]), "so many rows are drawn as the survey says"),
    ("a belief in less", _within("belief", "heard", lambda heard: heard * 0.9 + 0.05), "a belief is found again"),
    ("a belief of more", _within("belief", "enough", lambda enough: enough + 1), "a belief is found again"),
)
"""By name a change, which says if it found something to change, and the rule that breaks."""

