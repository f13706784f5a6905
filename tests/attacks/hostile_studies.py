"""Studies that a hostile aggregator may write, within what can be spelled as a manifest, and data that is hostile too.

Everything is drawn from one seed, so that a case is named by its number. Mechanisms are built once for all cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

from anon.errors import Malformed
from anon.ldp import Mechanism, build, nano
from anon.study.manifest import Manifest
from anon.wire.cbor import encode
from tests.support.protocols import parse_manifest

NUMBERS: tuple[int | float, ...] = (
    0, 1, -1, 2, 3, 7, 100, 0.5, -0.5, 1.0, -0.0, 0.1, 1 / 3, 5e-324, 1e-300, 1e15, 1e16, 2**31, -(2**31), 2**53 - 1,
    2**53,
    -(2**53), 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**64), 10**22, 10**23, 10**308, 10**309, 10**400, -(10**400),
    10**5000,
    1e22, 1e155, 1.7e308, -1.7e308, 9007199254740993.0,
)
TEXTS = (
    "", " ", "own", "positive", "1", "1.0", "0", "-0", "01", "1e400", "nan", "NaN", "inf", "-inf", "Infinity", "None",
    "true", "yes", "no", "ß", "ẞ", "İ", "ı", "é", "e\u0301", "١", "²", "½", "a\u0300", "x" * 400, "x" * 1001, "'", '"',
    "SELECT 1", "\U0001f600", "\ufdd0", "\ufffd",
)
ODD_NUMBERS = tuple(one for one in NUMBERS if abs(one) <= 2**53)
SHORT_TEXTS = tuple(one for one in TEXTS if len(one) <= 400)
NAMES = ("a", "b", "c", "d", "e", "f", "g", "label")
MECHANISMS = ("krr", "subset", "rappor", "pq")
KEYS = {"aggregator_key": 32, "sealing_key": 1216, "credential_key": 96, "seed_commitment": 32}
ENROL, SETTLE, ROUND, MARGIN, MOST_ROUNDS = 3600, 600, 600, 30, 3
Plain = dict[str, Any]


@cache
def mechanism(name: str, m: int, epsilon: float) -> Mechanism:
    """One object for each."""
    return build(name, m, nano(epsilon))


def drawn_study(draw: Random, published: int = 1_000_000, keys: Plain | None = None) -> Plain:
    """A study as plain data: consistent, but of odd numbers and texts, so that many are refused."""
    names = draw.sample(NAMES, draw.randint(1, 4))
    label = next(name for name in ("label", "out") if name not in names)
    features = [_feature(draw, name) for name in names]
    surveys, slots, design = _slots(draw, features, published)
    answers = draw.sample([*ODD_NUMBERS, *SHORT_TEXTS], draw.randint(2, 8))
    split = draw.randint(1, len(answers) - 1)
    first = published + ENROL + SETTLE
    built = [mechanism(one["mechanism"], one["m"], one["_epsilon"]) for one in surveys]
    each = [
        [one["epsilon"] for one in surveys if one["survey"] in {row["survey"] for row in slot["rows"]}]
        for slot in slots
    ]
    for one in surveys:
        del one["_epsilon"]
    return {
        "version": 2, "title": "Hostile", "purpose": "To learn one bit.", "contact": "nobody@example.org",
        "protocol": "histogram", "design": design,
        "tables": [{"name": "person", "columns": [*names, label]}],
        "label": {
            "name": label, "description": "A label.", "query": f'SELECT "{label}" FROM person',
            "positive": answers[:split], "negative": answers[split:], "missing": draw.choice(["positive", "negative"]),
        },
        "features": features, "surveys": surveys, "slots": slots,
        "epsilon": sum(map(max, each)), "epsilon_per_attribute": sum(map(max, each)),
        "timetable": {
            "published": published, "enrol_closes": published + ENROL, "settled": first,
            "ends": first + 2 * (MOST_ROUNDS + 2) * ROUND, "margin": MARGIN,
        },
        "cohort": {"minimum": 2, "maximum": 100, "admission": "invite"},
        "learning": {"classifier": "soft", "ensemble": "soft", "score": "f1", "score_share": 0.2, "base_rate": 0.5},
        "release": {"transcript": "members", "retention": 86400},
        "report_size": max(one.report_size for one in built),
    } | (keys or {name: bytes(size) for name, size in KEYS.items()})  # fmt: skip


def _feature(draw: Random, name: str) -> Plain:
    plain: Plain = {
        "name": name, "description": "A feature.", "query": f'SELECT "{name}" FROM person', "missing": "own",
        "kind": draw.choice(["numeric", "categorical"]), "range": [], "bins": 0, "cuts": [], "scale": "linear",
        "categories": [], "shares": [],
    }  # fmt: skip
    if plain["kind"] == "categorical":
        plain["categories"] = draw.sample(SHORT_TEXTS, draw.randint(1, 5))
        plain["missing"] = draw.choice(["own", plain["categories"][0]]) if len(plain["categories"]) > 1 else "own"
        return plain
    low, *inner, high = sorted({float(one) for one in draw.sample(ODD_NUMBERS, 8)})
    plain["range"] = [low, high]
    plain["scale"] = draw.choice(["linear", "log"]) if low >= 0 else "linear"
    plain["missing"] = draw.choice(["own", float(draw.choice(ODD_NUMBERS))])
    if draw.random() < 0.6:
        plain["cuts"] = inner[: draw.randint(1, 3)]
    else:
        plain["bins"] = draw.randint(2, 4)
    return plain


def _cardinality(plain: Plain) -> int:
    own = 1 if plain["missing"] == "own" else 0
    if plain["kind"] == "categorical":
        return len(plain["categories"]) + own
    return (len(plain["cuts"]) + 1 if plain["cuts"] else plain["bins"]) + own


def _slots(draw: Random, features: list[Plain], published: int) -> tuple[list[Plain], list[Plain], str]:
    """Surveys, slots and design: tables or bits in one packet, or the paper's slots."""
    surveys: list[Plain] = []
    epsilon = draw.choice([0.5, 2.0, 8.0])
    first = published + ENROL + SETTLE

    def add(kind: str, asked: list[Plain], m: int, turn: int = 0, **more: Any) -> int:
        cards = [_cardinality(one) for one in asked] if kind in ("histogram", "bit") else [m]
        name = "krr" if kind in ("bit", "threshold") else draw.choice(MECHANISMS)
        built = mechanism(name, m, epsilon)
        last = MOST_ROUNDS + 1 if kind in ("histogram", "bit") else turn
        opens = first + 2 * last * ROUND
        surveys.append({
            "survey": len(surveys), "kind": kind, "features": [one["name"] for one in asked], "cards": cards, "m": m,
            "mechanism": name, "p": built.p, "q": built.q, "epsilon": built.epsilon,
            "window": {"opens": opens, "closes": opens + ROUND}, "round": turn, "_epsilon": epsilon,
        } | more)  # fmt: skip
        return len(surveys) - 1

    def table(asked: list[Plain]) -> int:
        m = 2
        for one in asked:
            m *= _cardinality(one)
        return add("histogram", asked, m)

    binned = [one for one in features if one["kind"] == "numeric" and not one["cuts"]]
    if draw.random() < 0.6:
        rows = [add("quantile", [one], max(one["bins"], draw.choice([4, 8]))) for one in binned]
        if draw.random() < 0.4:
            rows += [
                add("bit", [one], 2, parameters=[draw.choice([1, 2**63, 2**64 - 1]), *_signs(draw, one)])
                for one in features
            ]
        else:
            rows += [
                table(draw.sample(features, draw.randint(1, min(2, len(features))))) for _ in range(draw.randint(1, 3))
            ]
        return surveys, [_slot(draw, 0, rows)], "one-packet"
    parts = [features[::2], features[1::2]] if len(features) > 1 else [features]
    slots = [[table([one]) for one in part] for part in parts]
    for one in binned:
        rounds = range(draw.randint(1, MOST_ROUNDS)) if one["bins"] == 2 else range(0)
        slots.append([add("threshold", [one], 2, turn) for turn in rounds] or [add("quantile", [one], 8)])
    return surveys, [_slot(draw, number, rows) for number, rows in enumerate(slots)], "paper"


def _slot(draw: Random, number: int, rows: list[int]) -> Plain:
    return {"slot": number, "rows": [{"survey": row, "weight": draw.choice([1, 2, 10**6])} for row in rows]}


def _signs(draw: Random, plain: Plain) -> list[int]:
    """1 for a sign of +1, else 0."""
    return [draw.choice([0, 1]) for _ in range(_cardinality(plain) - 1)] + [1]


# Changes that a hostile hand makes to a drawn study


def _leaves(plain: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a value that is no container."""
    pairs = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, value in pairs:
        if isinstance(value, (dict, list)):
            yield from _leaves(value)
        else:
            yield plain, key


def _another_number(draw: Random, plain: Plain) -> None:
    found = [(inside, key) for inside, key in _leaves(plain) if type(inside[key]) in (int, float)]
    inside, key = draw.choice(found)
    inside[key] = draw.choice([*NUMBERS, inside[key] + 1, float(min(abs(inside[key]), 10**300))])


def _another_text(draw: Random, plain: Plain) -> None:
    inside, key = draw.choice([(inside, key) for inside, key in _leaves(plain) if isinstance(inside[key], str)])
    inside[key] = draw.choice([*TEXTS, *NAMES])


def _same_names(draw: Random, plain: Plain) -> None:
    """The attack: what is read first and what is read last differ."""
    twin = dict(draw.choice(plain["features"])) | {"categories": ["z"], "missing": "own", "kind": "categorical"}
    twin |= {"range": [], "bins": 0, "cuts": [], "scale": "linear", "shares": []}
    plain["features"].insert(draw.choice([0, len(plain["features"])]), twin)


def _named_as_label(draw: Random, plain: Plain) -> None:
    plain["label"]["name"] = draw.choice(plain["features"])["name"]


def _same_tables(draw: Random, plain: Plain) -> None:
    plain["tables"].append(dict(draw.choice(plain["tables"])))


def _huge_label(draw: Random, plain: Plain) -> None:
    plain["label"][draw.choice(["positive", "negative"])].insert(0, draw.choice([10**400, -(10**309), 10**5000]))


def _another_design(draw: Random, plain: Plain) -> None:
    plain["design"] = draw.choice(["one-packet", "paper"])


CHANGES: tuple[Callable[[Random, Plain], None], ...] = (
    _another_number, _another_number, _another_text, _same_names, _named_as_label, _same_tables, _huge_label,
    _another_design,
)  # fmt: skip


ATTACKS = (_huge_label, _huge_label, _same_names)
"""Those that once worked. A parser that takes one of them again gives a study that tells data apart."""


def hostile_manifest(
    draw: Random, published: int = 1_000_000, keys: Plain | None = None, attack: float = 0.0
) -> Manifest | None:
    """One attempt: the manifest if `parse_manifest` takes it. `attack` is how often one of `ATTACKS` is tried."""
    plain = drawn_study(draw, published, keys)
    if draw.random() < attack:
        draw.choice(ATTACKS)(draw, plain)
    else:
        for _ in range(draw.choice([0, 0, 0, 1])):
            draw.choice(CHANGES)(draw, plain)
    try:
        return parse_manifest(encode(plain))
    except Malformed:
        return None


def accepted_manifests(seed: int, count: int) -> Iterator[Manifest]:
    """So many manifests that the parser takes, by one seed."""
    draw = Random(seed)
    while count:
        manifest = hostile_manifest(draw)
        if manifest is not None:
            count -= 1
            yield manifest


# Data


class Spiteful(float):
    """A number whose every comparison fails: no value may decide anything by raising."""

    def __eq__(self, other: object) -> bool:
        raise OverflowError

    def __lt__(self, other: object) -> bool:
        raise OverflowError

    __le__ = __gt__ = __ge__ = __ne__ = __lt__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


PLAIN_VALUES: tuple[Any, ...] = (None, *(float(one) for one in NUMBERS if abs(one) < 10**308), *TEXTS)
"""Values that a snapshot can hold."""
OTHER_VALUES: tuple[Any, ...] = (
    float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), True, False, b"\xff", (), [1], {}, object(), 1j,
    "\ud800",
    Spiteful(1.0), Spiteful("nan"),
)
"""Values that a snapshot cannot hold; the map to categories takes them all the same."""


def drawn_value(draw: Random, wanted: tuple[Any, ...]) -> Any:
    """A value: often one that the study asks about, or one beside it."""
    near = [one for one in wanted if isinstance(one, str)]
    for one in wanted:
        if isinstance(one, (int, float)) and abs(one) < 2**60:
            near += [float(one), float(one) + 1, str(one), one + 1e-9]
    return draw.choice(
        [*(near or [None]), draw.choice(PLAIN_VALUES), draw.choice(PLAIN_VALUES), draw.choice(OTHER_VALUES)]
    )
