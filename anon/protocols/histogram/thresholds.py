"""The binning documents, and the thresholds and cuts that follow from them: one pure function of published counts.

Peer, aggregator, audit and simulation all compute them here, so that they cannot disagree. Documents carry counts
only; what the next round asks follows from them, so that there is nothing to aim (design section 3, step 7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from anon.errors import Malformed
from anon.ldp.mechanism import SCALE
from anon.ldp.simplex import nearest_shares
from anon.protocols.histogram.asked import MIDDLE, SCORE, SIDE, asks_label
from anon.protocols.histogram.binning import (
    edges_from_histogram,
    level_edges,
    median_start,
    median_step,
    threshold,
)
from anon.study.features import MOST_IN_COHORT, Feature
from anon.study.manifest import Manifest, Survey
from anon.text.foreign import Quoted
from anon.text.sentences import Term, listed, say
from anon.values import frozen
from anon.wire.cbor import decode, encode
from anon.wire.messages import VERSION

Cuts = dict[str, tuple[float, ...]]
Place = tuple[str, int]
"""Kind and part of a document."""


@frozen
class RoundCounts:
    """How many answered a binning survey, and how many reports support each of its m levels (quantile) or a yes
    (threshold: one count)."""

    n: int
    counts: tuple[int, ...]

    @staticmethod
    def of(survey: Survey, n: int, tally: Sequence[int]) -> RoundCounts:
        """The answers of a survey from the counts of all its m categories."""
        return RoundCounts(n, tuple(int(count) for count in (tally if survey.kind == "quantile" else tally[1:])))


Published = Mapping[int, RoundCounts]
"""The answers known so far, by survey id."""


def check(manifest: Manifest) -> None:
    """Raises `Malformed` unless every feature without declared cuts, and no other, is asked about. It is asked by one
    survey of at least as many levels as it has bins. For two bins it may be asked by thresholds in rounds 0, 1, 2 and
    so on."""
    for survey in manifest.surveys:
        if not asks_label(survey) and survey.kind != MIDDLE:
            _binned_feature(manifest, survey)
    for feature in manifest.features:
        if feature.binned_privately and not _finds_cuts(feature, surveys_of_feature(manifest, feature.name)):
            raise Malformed(say(
                "manifest: its surveys about {name} find no cuts; do not take part",
                name=Quoted(feature.name),
            ))


def _binned_feature(manifest: Manifest, survey: Survey) -> Feature:
    """The feature whose cuts a binning survey asks for. Raises `Malformed` if it has categories, or its cuts are
    declared."""
    feature = manifest.feature(survey.features[0])
    if not feature.binned_privately:
        raise Malformed(say(
            "manifest: survey {survey} asks for cuts that are known; do not take part",
            survey=survey.survey,
        ))
    return feature


def _finds_cuts(feature: Feature, surveys: Sequence[Survey]) -> bool:
    asked = [(survey.kind, survey.round) for survey in surveys]
    if asked == [("quantile", 0)]:
        return surveys[0].m >= feature.bins
    return feature.bins == 2 and asked == [("threshold", turn) for turn in range(len(asked)) if surveys[turn].m == 2]


def surveys_of_round(manifest: Manifest, turn: int) -> tuple[Survey, ...]:
    """The binning surveys of one round."""
    return tuple(survey for survey in manifest.surveys if not asks_label(survey) and survey.round == turn)


def surveys_of_feature(manifest: Manifest, name: str) -> tuple[Survey, ...]:
    """The surveys that find a feature's cuts, in the order of rounds. Raises `Malformed` when there are none."""
    found = [survey for survey in manifest.surveys if not asks_label(survey) and survey.features == (name,)]
    if not found:
        raise Malformed(say("manifest: no survey finds the cuts of {name}; do not take part", name=Quoted(name)))
    return tuple(sorted(found, key=lambda survey: survey.round))


def place_of(manifest: Manifest, turn: int) -> Place:
    """The document that carries a round's answers: the next round's thresholds, or after the last round the edges."""
    last = max((survey.round for survey in manifest.surveys if not asks_label(survey)), default=0)
    return ("edges", 0) if turn == last else ("thresholds", turn + 1)


def needs(manifest: Manifest, survey: Survey) -> tuple[Place, ...]:
    """The documents without which a survey cannot be answered, in the order in which they appear."""
    turns = {earlier.round for earlier in asked_before(manifest, survey)}
    return tuple(place_of(manifest, turn) for turn in sorted(turns))


def asked_before(manifest: Manifest, survey: Survey) -> tuple[Survey, ...]:
    """The surveys of a round before whose answers decide what `survey` asks."""
    if survey.kind in (SIDE, SCORE):
        return tuple(earlier for earlier in manifest.surveys if earlier.kind == MIDDLE)
    if survey.kind in ("quantile", MIDDLE):
        return ()
    binned = [name for name in survey.features if manifest.feature(name).binned_privately]
    found = [earlier for name in binned for earlier in surveys_of_feature(manifest, name)]
    return tuple(earlier for earlier in found if asks_label(survey) or earlier.round < survey.round)


def body(manifest: Manifest, turn: int, answers: Published) -> bytes:
    """The document that publishes a round's answers."""
    rows = {survey.features[0]: _row(survey, answers[survey.survey]) for survey in surveys_of_round(manifest, turn)}
    return encode([*_heading(manifest, place_of(manifest, turn)), rows])


def longest_documents(manifest: Manifest) -> dict[Place, int]:
    """Every document that carries a round's answers, with the bytes of its longest body: all counts at their most."""
    most = manifest.cohort.maximum
    asked = [survey for survey in manifest.surveys if not asks_label(survey)]
    answers = {
        survey.survey: RoundCounts(most, (most,) * (survey.m if survey.kind == "quantile" else 1)) for survey in asked
    }
    turns = sorted({survey.round for survey in asked})
    return {place_of(manifest, turn): len(body(manifest, turn, answers)) for turn in turns}


def parse(manifest: Manifest, place: Place, body_untrusted: bytes) -> dict[int, RoundCounts]:
    """The answers in a document: of the right surveys, whole and possible. Raises `Malformed`."""
    what = Term(f"{place[0]} {place[1]}")
    fields = decode(body_untrusted, what)
    if not isinstance(fields, list) or fields[:-1] != _heading(manifest, place) or not isinstance(fields[-1], dict):
        raise Malformed(say("{what}: not this study's document; nothing is sent", what=what))
    rounds = {survey.round for survey in manifest.surveys if not asks_label(survey)}
    turn = next((turn for turn in rounds if place_of(manifest, turn) == place), None)
    expected = {} if turn is None else {survey.features[0]: survey for survey in surveys_of_round(manifest, turn)}
    if set(fields[-1]) != set(expected):
        raise Malformed(say(
            "{what}: expected the counts of {expected}; nothing is sent",
            what=what,
            expected=listed(sorted(expected)),
        ))
    return {survey.survey: _answers(what, survey, fields[-1][name]) for name, survey in expected.items()}


def parse_all(manifest: Manifest, bodies_untrusted: Mapping[Place, bytes]) -> Published:
    """The answers in all these documents. Raises `Malformed`, also when one is missing."""
    published: dict[int, RoundCounts] = {}
    for turn in sorted({survey.round for survey in manifest.surveys if not asks_label(survey)}):
        place = place_of(manifest, turn)
        if place not in bodies_untrusted:
            raise Malformed(say(
                "{place} {place2}: not among the documents; fetch it",
                place=Term(place[0]), place2=place[1],
            ))
        published |= parse(manifest, place, bodies_untrusted[place])
    return published


def asked_edges(manifest: Manifest, survey: Survey, published: Published) -> tuple[float, ...]:
    """The inner edges between the levels that a binning survey asks about, one for a threshold. Raises `Malformed`."""
    feature = _binned_feature(manifest, survey)
    if survey.kind == "quantile":
        return level_edges(feature, survey.m)
    return (_found(feature, asked_before(manifest, survey), published),)


def feature_cuts(manifest: Manifest, name: str, published: Published) -> tuple[float, ...]:
    """The cuts of a numeric feature: the declared ones, or those that its binning surveys found."""
    feature = manifest.feature(name)
    if not feature.binned_privately:
        return feature.cuts
    surveys = surveys_of_feature(manifest, name)
    if surveys[0].kind == "threshold":
        return (_found(feature, surveys, published),)
    asked, answers = surveys[0], published[surveys[0].survey]
    estimates = asked.build().unbias(answers.counts, answers.n)
    return edges_from_histogram(level_edges(feature, asked.m), estimates, answers.n, feature.bins)


def study_cuts(manifest: Manifest, published: Published) -> Cuts:
    """The cuts of every numeric feature of the study."""
    numeric = [feature.name for feature in manifest.features if feature.kind == "numeric"]
    return {name: feature_cuts(manifest, name, published) for name in numeric}


def known_shares(manifest: Manifest, published: Published) -> dict[str, tuple[float, ...]]:
    """How common each category of a feature is, where the study declares it or finding the cuts told it.

    Of the latter: the projected shares of the levels between the cuts, or halves around a median; a missing value's own
    category, which binning does not see, counts as rare. Biased towards equal bins, because cuts and shares come from
    the same answers.
    """
    found: dict[str, tuple[float, ...]] = {}
    for feature in manifest.features:
        if feature.shares:
            found[feature.name] = feature.shares
        elif feature.binned_privately:
            own = 0.01 if feature.missing == "own" else 0.0
            shares = _bin_shares(manifest, feature, published)
            found[feature.name] = (*(share * (1 - own) for share in shares), *([own] if own else []))
    return found


def _bin_shares(manifest: Manifest, feature: Feature, published: Published) -> tuple[float, ...]:
    surveys = surveys_of_feature(manifest, feature.name)
    if surveys[0].kind == "threshold":
        return (0.5, 0.5)
    asked, answers = surveys[0], published[surveys[0].survey]
    counts = asked.build().unbias(answers.counts, answers.n)
    levels = nearest_shares([count / max(answers.n, 1) for count in counts])
    inside = feature_cuts(manifest, feature.name, published)
    edges = level_edges(feature, asked.m)
    places = [0, *(edges.index(cut) + 1 for cut in inside), asked.m]
    return tuple(sum(levels[low:high]) for low, high in pairwise(places))


def _found(feature: Feature, surveys: Sequence[Survey], published: Published) -> float:
    """The estimate of Algorithm 1 after the answers to these surveys."""
    search = median_start(feature)
    for survey in surveys:
        answers = published[survey.survey]
        search = median_step(search, answers.n, answers.counts[0], survey.p / SCALE, survey.q / SCALE)
    return threshold(feature, search)


def _heading(manifest: Manifest, place: Place) -> list[Any]:
    kind, part = place
    return [VERSION, manifest.study_id, part] if kind == "thresholds" else [VERSION, manifest.study_id]


def _row(survey: Survey, answers: RoundCounts) -> list[Any]:
    return [answers.n, list(answers.counts) if survey.kind == "quantile" else answers.counts[0]]


def _answers(what: Term, survey: Survey, row: Any) -> RoundCounts:
    if not isinstance(row, list) or len(row) != 2 or type(row[0]) is not int or not 0 <= row[0] <= MOST_IN_COHORT:
        raise Malformed(say("{what}: expected a number of answers and their counts; nothing is sent", what=what))
    n, counts = row
    quantile = survey.kind == "quantile"
    listed = counts if quantile else [counts]
    whole = isinstance(listed, list) and len(listed) == (survey.m if quantile else 1)
    if not whole or not all(type(count) is int and 0 <= count <= n for count in listed):
        raise Malformed(say("{what}: counts that cannot be; nothing is sent", what=what))
    return RoundCounts(n, tuple(listed))
