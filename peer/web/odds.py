"""The odds of a packet in words and examples, from the mechanism's own integers and from nothing else.

Every probability here is a numerator over 2**64 (`Chance`), taken or added up from the survey's p and q; its words are
rounded to the nearest case and never to "always" or "never".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from attrs import frozen

from anon.ldp import SCALE, Mechanism, RawCategory
from anon.ldp.subset import SubsetSelection
from anon.protocols.histogram.binning import level_edges
from anon.protocols.histogram.bits import bit_answer, perturb, plus_share
from anon.study.manifest import Manifest, Survey
from anon.study.parts import Feature

FEWEST_CASES = 5
THROWS = 4
MOST_MARKS_NAMED = 5

RandomBytes = Callable[[int], bytes]


@frozen
class Chance:
    """A probability: `numerator` over 2**64."""

    numerator: int

    @property
    def cases(self) -> tuple[int, int]:
        """(73, 100): the nearest count of cases out of the least power of ten that leaves some on both sides."""
        per = 100
        while True:
            count = (2 * self.numerator * per + SCALE) // (2 * SCALE)
            if (count >= FEWEST_CASES and count < per) or per >= 10**12:
                return count, per
            per *= 10

    def __str__(self) -> str:
        count, per = self.cases
        return f"{count:,} of {per:,}"


@frozen
class Line:
    """One sentence with the chances that it states, in order."""

    text: str
    chances: tuple[Chance, ...]


@frozen
class Example:
    """Somebody made up, and what `THROWS` throws of the mechanism sent for them."""

    person: str
    throws: tuple[str, ...]


@frozen
class PacketKind:
    """The surveys of one kind and mechanism: how often they are drawn, what is sent, an example. `survey` is one of
    them, `questions` says what each is about."""

    survey: Survey
    questions: tuple[str, ...]
    drawn: str
    asks: str
    lines: tuple[Line, ...]
    example: Example

    @property
    def surveys(self) -> int:
        """How many questions there are of this kind."""
        return len(self.questions)


def packet_kinds(manifest: Manifest, random_bytes: RandomBytes) -> tuple[PacketKind, ...]:
    """Every kind of packet that a study can ask for, the likeliest first. `random_bytes` throws the examples."""
    grouped: dict[tuple[object, ...], list[Survey]] = {}
    for one in manifest.surveys:
        grouped.setdefault((one.kind, one.mechanism, one.m, one.p, one.q, one.centre), []).append(one)
    weight = {
        row.survey: Fraction(row.weight, slot.total) for slot in manifest.slots for row in slot.rows
    }
    expected = {key: sum((weight[one.survey] for one in found), Fraction()) for key, found in grouped.items()}
    return tuple(
        _kind(manifest, grouped[key], expected[key], random_bytes)
        for key in sorted(grouped, key=lambda key: -expected[key])
    )


def _kind(manifest: Manifest, surveys: Sequence[Survey], expected: Fraction, random_bytes: RandomBytes) -> PacketKind:
    first = next((one for one in surveys if -1 in one.signs), surveys[0])  # a bit about the label alone says less
    return PacketKind(
        first,
        tuple(_question(manifest, one) for one in surveys),
        _drawn(manifest, expected),
        _asks(first),
        lines(first),
        _example(manifest, first, random_bytes),
    )


def _drawn(manifest: Manifest, expected: Fraction) -> str:
    if manifest.packets > 1:
        return f"on average {float(expected):.2g} of your {manifest.packets} packets"
    if expected == 1:
        return "your one packet"
    return f"your one packet in {Chance(int(expected * SCALE))} cases"


def _asks(survey: Survey) -> str:
    if survey.kind == "histogram":
        return "one answer that stands for some of the features together with the label"
    if survey.kind == "bit":
        return "one plus or minus about one feature and the label"
    if survey.kind == "quantile":
        return "in which of several ranges one number of yours lies"
    return "whether one number of yours lies above a threshold"


def _question(manifest: Manifest, survey: Survey) -> str:
    """What a survey is about."""
    about = ", ".join(survey.features)
    if survey.kind == "bit":
        feature, label = manifest.feature(survey.features[0]), manifest.label.name
        positive = [category_text(feature, place) for place, sign in enumerate(survey.signs) if sign > 0]
        return f"{label} alone" if len(positive) == len(survey.signs) else f"{' or '.join(positive)}; with {label}"
    return f"{about} with {manifest.label.name}" if survey.kind == "histogram" else about


def lines(survey: Survey) -> tuple[Line, ...]:
    """What is sent and how often it is true, in words."""
    built = survey.build()
    return _bit_lines(survey, built) if survey.kind == "bit" else (_line(built),)


def _line(built: Mechanism) -> Line:
    true, other = Chance(built.p), Chance(built.q)
    if built.name == "krr":
        others = f"each of the {built.m - 1} others" if built.m > 2 else "the other one"
        return Line(f"Your true answer is sent in {true} cases, {others} in {other}.", (true, other))
    if isinstance(built, SubsetSelection):
        some = f"{built.w} of the {built.m} possible answers are sent"
        return Line(f"{some}. Your true one is among them in {true} cases, any other in {other}.", (true, other))
    text = f"{built.m} cells are sent, each marked or not. Your cell is marked in {true} cases, any other in {other}."
    return Line(text, (true, other))


def bit_chance(survey: Survey, sign: int, label: int) -> Chance:
    """How often a plus is sent for a record whose category has this sign and whose label is 0 or 1: rounding first,
    then random response, so (plus p + (1 - plus) q) in 2**64ths."""
    plus = plus_share(survey, sign, label)
    return Chance((plus * survey.p + (SCALE - plus) * survey.q) // SCALE)


def _bit_lines(survey: Survey, built: Mechanism) -> tuple[Line, ...]:
    true, other = Chance(built.p), Chance(built.q)
    opening = Line(
        f"A plus or a minus is sent. Yours is drawn from your answer first, then sent as it is in {true} cases and "
        f"turned around in {other}.",
        (true, other),
    )
    positive, negative = bit_chance(survey, 1, 1), bit_chance(survey, 1, 0)
    with_sign = Line(
        f"So somebody for whom the question is a yes sends a plus in {positive} cases if the label is yes too, and in "
        f"{negative} if it is no.",
        (positive, negative),
    )
    away, both = bit_chance(survey, -1, 1), bit_chance(survey, -1, 0)
    without = Line(
        f"Somebody for whom it is a no sends a plus in {away} cases if the label is yes, and in {both} if it is no.",
        (away, both),
    )
    return (opening, with_sign, without) if -1 in survey.signs else (opening, with_sign)


# Examples


def _example(manifest: Manifest, survey: Survey, random_bytes: RandomBytes) -> Example:
    if survey.kind == "bit":
        feature = manifest.feature(survey.features[0])
        said = f"{category_text(feature, survey.signs.index(1))}; {manifest.label.name}: yes"
        answer = bit_answer(1, 1)
    else:
        said, answer = answer_text(manifest, survey, _middle(survey)), RawCategory(_middle(survey), survey.m)
    return Example(said, tuple(_thrown(manifest, survey, answer, random_bytes) for _ in range(THROWS)))


def _middle(survey: Survey) -> int:
    """The cell of the middle category of each feature with the label yes; the middle level of a binning survey."""
    if survey.kind != "histogram":
        return survey.m // 2
    index = 0
    for card in survey.cards:
        index = index * card + card // 2
    return index * 2 + 1


def _thrown(manifest: Manifest, survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> str:
    report = perturb(survey, answer, random_bytes)
    marked = [place for place, count in enumerate(survey.build().tally([report])) if count]
    if survey.kind == "bit":
        return "plus" if marked == [1] else "minus"
    named = [answer_text(manifest, survey, place) for place in marked[:MOST_MARKS_NAMED]]
    more = f" and {len(marked) - len(named)} more" if len(marked) > len(named) else ""
    return (" | ".join(named) or "nothing marked") + more + _truth(marked, answer.value)


def _truth(marked: Sequence[int], true: int) -> str:
    if true not in marked:
        return ""
    return " (the true one)" if len(marked) == 1 else " (the true one is among them)"


def answer_text(manifest: Manifest, survey: Survey, index: int) -> str:
    """What an answer of a histogram or binning survey says of somebody."""
    feature = manifest.feature(survey.features[0])
    if survey.kind == "threshold":
        return f"{feature.name}: {'above' if index else 'not above'} the threshold"
    if survey.kind == "quantile":
        return f"{feature.name}: {_between(level_edges(feature, survey.m), index)}"
    index, label = divmod(index, 2)
    places: list[int] = []
    for card in reversed(survey.cards):
        index, place = divmod(index, card)
        places.insert(0, place)
    said = [category_text(manifest.feature(name), place) for name, place in zip(survey.features, places, strict=True)]
    return "; ".join([*said, f"{manifest.label.name}: {'yes' if label else 'no'}"])


def category_text(feature: Feature, place: int) -> str:
    """What a category of a feature says of somebody, as far as it is known before cuts are found."""
    if feature.missing == "own" and place == feature.cardinality - 1:
        return f"{feature.name}: not known"
    if feature.kind == "categorical":
        return f"{feature.name}: {feature.categories[place]}"
    if feature.cuts:
        return f"{feature.name}: {_between(feature.cuts, place)}"
    return f"{feature.name}: part {place + 1} of {feature.bins} from low to high"


def _between(edges: Sequence[float], place: int) -> str:
    if place == 0:
        return f"up to {edges[0]:g}"
    return f"above {edges[-1]:g}" if place == len(edges) else f"above {edges[place - 1]:g}, up to {edges[place]:g}"
