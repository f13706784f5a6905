"""The parts a study file and its manifest share: tables, label, features, learning and release settings.

Every value is valid once built, also when it comes from a file or the wire: validation lives in the constructors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import field

from anon.errors import InvalidValue
from anon.study.structuring import LEFT_OUT, kind_of
from anon.text.foreign import named
from anon.values import frozen

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
NAME_PATTERN = "^[a-z][a-z0-9_]{0,39}$"
MAX_BINS = 32
MAX_CATEGORIES = 64
MOST_IN_COHORT = 1_000_000
USUAL_MOST = 100_000
"""The largest cohort of a study whose file names none."""
MOST_CONNECTIONS = 64
LARGEST_NUMBER = 2**53
"""Numbers of a study lie within this of 0: every whole one is a float, and none overflows where floats are computed."""
LATEST = 2**37
"""No instant and no duration (seconds) reaches it: each fits a float, a database and a calendar of four-digit years."""

Check = Callable[[Any, Any, Any], None]


def _named(_: Any, attribute: Any, value: str) -> None:
    if not _NAME.match(value):
        raise InvalidValue(f"{attribute.name}: expected small letters, digits and _ (at most 40), got {kind_of(value)}")


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, hide or reorder text: with them a study could repaint the consent screen."""


def demand_plain(name: str, value: str) -> None:
    """Raises `InvalidValue` for the characters that no manifest ever held. The whole rule, for proposals and for a peer
    before it joins, is `anon.study.texts`; what else an old manifest holds is shown as its number
    (`anon.text.foreign`)."""
    if (unseen := _UNSEEN.search(value)) is not None:
        raise InvalidValue(f"{name}: expected plain text, got {named(unseen[0])} at character {unseen.start() + 1}")


def demand_line(name: str, value: object, limit: int = 400) -> None:
    """Raises `InvalidValue` for a text that would be more than one line of a screen's own, or longer than `limit`
    characters. A value that is no text passes."""
    if not isinstance(value, str):
        return
    demand_plain(name, value)
    if "\n" in value or "\t" in value or len(value) > limit:
        raise InvalidValue(f"{name}: expected one line of at most {limit} characters, got {len(value)} characters")


def demand_numbers(name: str, *values: object) -> None:
    """Raises `InvalidValue` for a number that is not finite, lies beyond `LARGEST_NUMBER`, or is none, such as true.
    Texts pass."""
    for value in values:
        if isinstance(value, str):
            continue
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:  # type: ignore[operator]
            raise InvalidValue(f"{name}: expected numbers from -2**53 to 2**53, got {kind_of(value)}")


def demand_names(features: Sequence[Feature], label: Label, tables: Sequence[Table] = ()) -> None:
    """Raises `InvalidValue` for a name that means two things: whoever reads the first would contradict who reads the
    last."""
    names = [feature.name for feature in features]
    if len({*names, label.name}) != len(names) + 1:
        raise InvalidValue("features: expected at least one, and no name twice (the label's included)")
    if len({table.name for table in tables}) != len(tables):
        raise InvalidValue("tables: expected no name twice")


def demand_features(features: Sequence[object]) -> None:
    """Raises `InvalidValue` where there is none: a histogram needs one, another protocol may ask about the label alone.
    """
    if not features:
        raise InvalidValue("features: expected at least one, and no name twice (the label's included)")


def _text(limit: int) -> Check:
    def check(_: Any, attribute: Any, value: str) -> None:
        if not value.strip() or len(value) > limit:
            raise InvalidValue(
                f"{attribute.name}: expected text of 1 to {limit} characters, got {len(value)} characters"
            )
        demand_plain(attribute.name, value)

    return check


@frozen
class OneOf:
    """A validator: the value is one of the named choices."""

    choices: tuple[str, ...]

    def __call__(self, _: Any, attribute: Any, value: str) -> None:
        """Raises `InvalidValue` for any other."""
        if value not in self.choices:
            raise InvalidValue(f"{attribute.name}: expected one of {', '.join(self.choices)}, got {kind_of(value)}")


def one_of(*choices: str) -> OneOf:
    """`OneOf` these."""
    return OneOf(choices)


@frozen
class Table:
    """A table of the owner's own data that queries read, with the columns they need."""

    name: str = field(validator=_named)
    columns: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise InvalidValue("columns: expected at least one name and no repeats")
        if not all(_NAME.match(column) for column in self.columns):
            raise InvalidValue("columns: expected names of small letters, digits and _ (at most 40)")


@frozen
class Label:
    """The learned value: a query whose value is positive, negative, or (anything else) decided by `missing`."""

    name: str = field(validator=_named)
    description: str = field(validator=_text(400))
    query: str = field(validator=_text(8000))
    positive: tuple[str | int | float, ...]
    negative: tuple[str | int | float, ...]
    missing: str = field(validator=one_of("positive", "negative"))

    def __attrs_post_init__(self) -> None:
        if not self.positive or not self.negative:
            raise InvalidValue("positive, negative: expected at least one value each")
        demand_numbers("positive, negative", *self.positive, *self.negative)
        if {str(v) for v in self.positive} & {str(v) for v in self.negative}:
            raise InvalidValue("positive, negative: expected lists without a common value")
        for value in (*self.positive, *self.negative):
            demand_line("positive, negative", value)


def _signs(value: Any) -> Any:
    """The one spelling of `Feature.expects`: a single sign is a list of one, and nothing but zeros is an empty list."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value,)
    return () if isinstance(value, tuple) and all(type(sign) is int and sign == 0 for sign in value) else value


@frozen
class Feature:
    """One feature: a query on the owner's data and the total map from its value to one of `cardinality` categories.

    Numeric: `range` clamps, and `cuts` (declared) or `bins` (cuts found privately) divide it. A value x falls in the
    bin numbered by how many cuts lie below it. A value x <= cut stays left (erratum 6). Categorical: one of
    `categories`. `missing` is "own" (a category of its own, the last) or the value that a missing one counts as.
    `shares`: a public guess of how common each category is, in order, from published statistics and never from the
    data; learning and planning use it where nothing was measured. It needs no promise to be right: it is taken to be
    off by about 0.1.

    `expects`: the direction that staff expect, written before anybody answered. Numeric: one sign, 1 where larger
    numbers should go with the positive label, -1 where smaller ones should. Categorical: a sign for each of
    `categories`, or 0. Empty for no expectation. It is public and costs no epsilon. Learning leans on it where answers
    say little, and answers overrule it.
    """

    name: str = field(validator=_named)
    kind: str = field(validator=one_of("numeric", "categorical"))
    description: str = field(validator=_text(400))
    query: str = field(validator=_text(8000))
    missing: str | float
    range: tuple[float, ...] = ()
    bins: int = 0
    cuts: tuple[float, ...] = ()
    scale: str = field(default="linear", validator=one_of("linear", "log"))
    categories: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    expects: tuple[int, ...] = field(default=(), converter=_signs, metadata=LEFT_OUT)

    def __attrs_post_init__(self) -> None:
        for name, values in (("range", self.range), ("cuts", self.cuts), ("shares", self.shares)):
            demand_numbers(name, *values)
        demand_numbers("missing", self.missing)
        if self.kind == "numeric":
            self._check_numeric()
        else:
            self._check_categorical()
        if self.shares and (
            len(self.shares) != self.cardinality or min(self.shares) < 0 or abs(sum(self.shares) - 1) > 0.01
        ):
            raise InvalidValue(f"shares: expected {self.cardinality} numbers of at least 0 that sum to 1")
        signs = 1 if self.kind == "numeric" else len(self.categories)
        if self.expects and (len(self.expects) != signs or not set(self.expects) <= {-1, 0, 1}):
            wanted = "1, -1 or 0" if self.kind == "numeric" else f"{signs} numbers 1, -1 or 0, one for each category"
            raise InvalidValue(f"expects: expected {wanted}")

    def _check_numeric(self) -> None:
        if self.categories:
            raise InvalidValue("categories: belongs to a categorical feature; expected range with bins or cuts")
        if len(self.range) != 2 or not self.range[0] < self.range[1]:
            raise InvalidValue("range: expected [minimum, maximum] with minimum < maximum")
        if self.scale == "log" and self.range[0] < 0:
            raise InvalidValue("scale: log needs a range that starts at 0 or above")
        if bool(self.cuts) == bool(self.bins):
            raise InvalidValue("bins, cuts: expected exactly one of the two")
        if self.bins and not 2 <= self.bins <= MAX_BINS:
            raise InvalidValue(f"bins: expected 2 to {MAX_BINS}, got {self.bins}")
        low, high = self.range
        if any(not low <= cut < high for cut in self.cuts) or list(self.cuts) != sorted(set(self.cuts)):
            raise InvalidValue("cuts: expected increasing numbers, each at least the minimum and below the maximum")
        if isinstance(self.missing, str) and self.missing != "own":
            raise InvalidValue(f'missing: expected "own" or a number, got {kind_of(self.missing)}')

    def _check_categorical(self) -> None:
        if self.range or self.bins or self.cuts or self.scale != "linear":
            raise InvalidValue("range, bins, cuts, scale: belong to a numeric feature; expected categories")
        if not 1 <= len(self.categories) <= MAX_CATEGORIES or len(set(self.categories)) != len(self.categories):
            raise InvalidValue(f"categories: expected 1 to {MAX_CATEGORIES} different texts")
        for category in self.categories:
            demand_line("categories", category)
        if len(self.categories) == 1 and self.missing != "own":
            raise InvalidValue('categories: a single category needs missing = "own"')
        if self.missing != "own" and self.missing not in self.categories:
            raise InvalidValue('missing: expected "own" or one of the categories')

    @property
    def cardinality(self) -> int:
        """How many categories the feature has, with the missing one when it is its own."""
        own = 1 if self.missing == "own" else 0
        if self.kind == "categorical":
            return len(self.categories) + own
        return (len(self.cuts) + 1 if self.cuts else self.bins) + own

    @property
    def binned_privately(self) -> bool:
        """True when the cuts are found by asking perturbed questions first."""
        return self.kind == "numeric" and not self.cuts


@frozen
class Learning:
    """The fit to each survey and the way to combine them; not privacy-relevant.

    `soft`, `logistic` and `tree` fit each subset of features by itself, and `ensemble` combines them. `additive` fits
    all surveys together and weighs features against each other; only it learns from one-bit packets. `score_share` of
    the reports only score: needed by the vote, whose weights are scores; the soft ensembles do without (0).
    `base_rate`: a public guess of the share of positive labels, taken to be off by about 0.1; 0.5 counts as no guess.
    """

    classifier: str = field(default="soft", validator=one_of("soft", "logistic", "tree", "additive"))
    ensemble: str = field(default="soft", validator=one_of("soft", "vote"))
    score: str = field(default="f1", validator=one_of("f1", "auc"))
    score_share: float = 0.2
    base_rate: float = 0.5

    def __attrs_post_init__(self) -> None:
        if not 0.001 <= self.base_rate <= 0.999:
            raise InvalidValue(f"base_rate: expected a share from 0.001 to 0.999, got {self.base_rate}")
        if self.classifier == "additive" and self.ensemble != "soft":
            raise InvalidValue('ensemble: the additive classifier is one model of all surveys; expected "soft"')
        if self.ensemble == "soft" and self.score_share == 0:
            return
        if not 0.05 <= self.score_share <= 0.5:
            raise InvalidValue(f"score_share: expected 0.05 to 0.5, or 0 for a soft ensemble, got {self.score_share}")


USUAL_COHORT: Final = 20
"""The fewest people to be among that a member's program begins with."""


@frozen
class Cohort:
    """Who may take part and how many must. Below `minimum` the study ends and nothing is sent or charged.

    `maximum` 0, in a study file alone: `USUAL_MOST`, or fewer where the study's documents have no room for so many.
    """

    minimum: int
    maximum: int = 0
    admission: str = field(default="invite", validator=one_of("invite", "allow-list", "open"))

    def __attrs_post_init__(self) -> None:
        if not 2 <= self.minimum <= (self.maximum or MOST_IN_COHORT) <= MOST_IN_COHORT:
            raise InvalidValue(f"minimum, maximum: expected 2 <= minimum <= maximum <= {MOST_IN_COHORT}")


@frozen
class Cover:
    """Cover traffic: how many connections every peer makes in each window, whatever it has to say; 0 for none.

    Every other connection carries a dummy of the same size that gets the same answer. It widens the candidates for
    somebody who sees both the network and the aggregator, and does nothing else
    (`docs/decisions/0011-cover-traffic.md`).
    """

    connections: int = 0

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.connections <= MOST_CONNECTIONS:
            raise InvalidValue(f"connections: expected 0 to {MOST_CONNECTIONS} in each window, got {self.connections}")


@frozen
class Release:
    """Whom the transcript is meant for, and how long the aggregator keeps packets after publishing, in seconds.

    `transcript` is a statement to those who take part and enforces nothing: under "members" as under "public", whoever
    holds an invite link or the study id can fetch every document.
    """

    transcript: str = field(default="members", validator=one_of("members", "public"))
    retention: int = 90 * 86400

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.retention < LATEST:
            raise InvalidValue(f"retention: expected a duration of at least 0 and less than {LATEST} s")
