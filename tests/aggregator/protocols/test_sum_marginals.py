"""Rows from noisy tables: the model of a tree-shaped law is that law, draws are near it, and all repeats to the bit."""

from __future__ import annotations

import json
from csv import reader
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, product
from operator import eq

import numpy as np
import pytest
from attrs import evolve
from scipy.stats import binom, chi2, hypergeom

from aggregator.lab.simulation.sum_noise import simulated_noise
from aggregator.protocols.sum.drawn import LearnedRows, drawn_categories
from aggregator.protocols.sum.graphical import GraphicalModel, Leaning, graphical_model
from aggregator.protocols.sum.part import learned_from
from aggregator.protocols.sum.published import NoisySum
from anon.errors import AnonmlError, InvalidValue, Malformed
from anon.protocols.contract import ROWS
from anon.protocols.models.rows import PublishedRows, category_texts
from anon.protocols.registry import check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sum.design import marginals_form, shape_of
from anon.protocols.sum.sections import MOST_DRAWN, Marginals
from anon.protocols.sum.standing import RoundSum, arrangement_of
from anon.protocols.vectors.tables import TableSums, marginals_of
from anon.study.features import Feature
from anon.study.manifest import Manifest, Survey
from tests.support.draws import as_seeded
from tests.support.protocols import PROTOCOLS, parse_proposal
from tests.support.studies import categorical
from tests.support.sums import KEYS, MARGINALS, manifest_of, many, sum_study

CARDS = {"a": 3, "b": 2, "c": 8, "d": 2}
PAIRS = list(combinations(CARDS, 2))
TREE, STAR = marginals_of(CARDS, PAIRS), marginals_of(CARDS)
NEXT_TO_NONE = Fraction(1, 10**9)
PEOPLE = 10**7
LABEL = np.array([0.7, 0.3])
Law = dict[tuple[int, ...], float]


def dirichlet(*shape: int, seed: int) -> np.ndarray:
    found = as_seeded(seed).gamma(2.0, size=shape)
    shares: np.ndarray = found / found.sum(axis=-1, keepdims=True)
    return shares


CHANCES = {
    "a": dirichlet(2, 1, 3, seed=1),
    "b": dirichlet(2, 3, 2, seed=2),
    "c": dirichlet(2, 3, 8, seed=3),
    "d": dirichlet(2, 1, 2, seed=4),
}


def law() -> Law:
    """b and c lean on a; d on the label alone. The label stands last."""
    found = Law()
    for a, b, c, d, y in product(range(3), range(2), range(8), range(2), range(2)):
        chance = CHANCES["a"][y, 0, a] * CHANCES["b"][y, a, b] * CHANCES["c"][y, a, c] * CHANCES["d"][y, 0, d]
        found[a, b, c, d, y] = float(LABEL[y] * chance)
    return found


def counted(design: TableSums, shares: Law, people: int = PEOPLE) -> list[int]:
    total = np.zeros(design.length)
    for (*cells, label), share in shares.items():
        total += share * people * np.array(design.vector(dict(zip(CARDS, cells, strict=True)), label))
    return [round(cell) for cell in total]


def noisy(design: TableSums, shares: Law, people: int, sigma_squared: int, seed: int | np.random.Generator) -> NoisySum:
    drawn = simulated_noise(Fraction(sigma_squared), 2, design.length, np.random.default_rng(seed))
    values = (exact + int(one) for exact, one in zip(counted(design, shares, people), drawn, strict=True))
    return NoisySum(tuple(values), people, Fraction(sigma_squared), 2)


def parents(model: GraphicalModel) -> dict[str, str]:
    return {one.name: one.parent for one in model.leanings}


def test_exact_tables_of_a_tree_give_it_back() -> None:
    model = graphical_model(TREE, NoisySum(tuple(counted(TREE, law())), PEOPLE, NEXT_TO_NONE, 1), 0.3)
    assert parents(model) == {"a": "", "b": "a", "c": "a", "d": ""}
    assert model.label == pytest.approx(LABEL, abs=1e-5)
    for one in model.leanings:
        assert one.chances == pytest.approx(CHANCES[one.name], abs=1e-5)
    assert min(model.information[pair] for pair in [("a", "b"), ("a", "c")]) > 0.01
    assert model.information["b", "c"] < min(model.information["a", "b"], model.information["a", "c"])


def test_a_star_has_the_exact_tables_of_each_feature() -> None:
    model = graphical_model(STAR, NoisySum(tuple(counted(STAR, law())), PEOPLE, NEXT_TO_NONE, 1), 0.3)
    assert set(parents(model).values()) == {""} and not model.information
    given_a = {name: np.einsum("ya,yac->yc", CHANCES["a"][:, 0], CHANCES[name])[:, None] for name in ("b", "c")}
    for one in model.leanings:
        assert one.chances == pytest.approx((CHANCES | given_a)[one.name], abs=1e-5)


def test_a_feature_in_no_pair_has_a_table_of_its_own() -> None:
    design = marginals_of(CARDS, [("a", "c")])
    assert [block.features for block in design.blocks] == [("a", "c"), ("b",), ("d",)]
    model = graphical_model(design, NoisySum(tuple(counted(design, law())), PEOPLE, NEXT_TO_NONE, 1), 0.3)
    assert parents(model) == {"a": "", "c": "a", "b": "", "d": ""}


def variance_of(name: str, sigma_squared: int, people: int) -> float:
    """Of a category's chance under the positive label, before categories are held to sum up to 1: the mean by precision
    of the tables that have the feature."""
    return 2 * sigma_squared / people**2 / sum(1 / card for other, card in CARDS.items() if other != name) / 0.3**2


@pytest.mark.slow
def test_margins_are_as_near_as_the_noise_of_all_tables_together_allows() -> None:
    """Of 200 seeds a feature's chances under one label, and another's by way of it, within what chi-square allows at
    5e-4 each. The noise is far below the law's own differences, so that nothing shrinks."""
    people, sigma_squared, times = 10**6, 10_000, 200
    models = [graphical_model(TREE, noisy(TREE, law(), people, sigma_squared, seed), 0.3) for seed in range(times)]
    chances = [{leaning.name: leaning.chances[1] for leaning in model.leanings} for model in models]
    apart = np.array([one["a"][0] for one in chances]) - CHANCES["a"][1, 0]
    by_way = np.array([(one["a"] @ one["b"])[0] for one in chances]) - CHANCES["a"][1, 0] @ CHANCES["b"][1]
    for name, far in (("a", apart), ("b", by_way)):
        low, high = chi2.ppf([2.5e-4, 1 - 2.5e-4], times * (CARDS[name] - 1))
        assert low < (far**2).sum() / variance_of(name, sigma_squared, people) < high, name


def test_the_nearest_distribution_takes_the_place_of_negative_shares() -> None:
    """60, 50 and -10 of 100 become 55, 45 and 0: each loses as much, down to 0."""
    design = marginals_of({"a": 3})
    (leaning,) = graphical_model(design, NoisySum((60, 20, 50, 40, -10, 40), 200, NEXT_TO_NONE, 1), 0.5).leanings
    assert leaning.chances[:, 0] == pytest.approx(np.array([[0.55, 0.45, 0], [0.2, 0.4, 0.4]]), abs=1e-6)


def test_chances_are_distributions_however_large_the_noise() -> None:
    for people, seed in product((2, 50, 1000), range(5)):
        model = graphical_model(TREE, noisy(TREE, law(), people, 400, seed), 0.3)
        for chances in (model.label, *(one.chances for one in model.leanings)):
            assert chances.min() >= 0 and chances.sum(axis=-1) == pytest.approx(1)


@pytest.mark.slow
def test_noise_makes_few_pairs_lean_on_each_other() -> None:
    """No feature goes with another, and noise is as large as the counts. Over 60 seeds more than two of six pairs tell
    nothing, and all of them less than 1 nat. Without shrinking by the noise they tell 2.5 nats, and each tells some."""
    flat = dict.fromkeys(law(), 1 / len(law()))
    models = [graphical_model(TREE, noisy(TREE, flat, 500, 2500, seed), 0.3) for seed in range(60)]
    told = np.array([[*model.information.values()] for model in models])
    assert (told == 0).sum(axis=1).mean() > 2 and told.sum(axis=1).mean() < 1
    strong = [parents(graphical_model(TREE, noisy(TREE, law(), 20_000, 2500, seed), 0.3)) for seed in range(20)]
    assert sum(one["b"] == "a" and one["c"] == "a" for one in strong) >= 18


@pytest.mark.slow
def test_shrinking_brings_the_model_nearer() -> None:
    """Over 40 seeds, of a flat law: its distance is below three quarters of that of the noisy shares."""
    near, far = [], []
    flat = {cells: 1 / len(law()) for cells in law()}
    for seed in range(40):
        published = noisy(STAR, flat, 500, 900, seed)
        model = graphical_model(STAR, published, 0.5)
        cells = np.array(STAR.split(published.values)[2]).reshape(8, 2) / 500
        far.append(np.abs(cells - 1 / 16).sum())
        joint = model.label[:, None] * model.leanings[2].chances[:, 0]
        near.append(np.abs(joint - 1 / 16).sum())
    assert np.mean(near) < 0.75 * np.mean(far)


@pytest.mark.parametrize("labels", [(0,), (1,)])
def test_one_label_alone_and_an_empty_category_are_a_model_like_others(labels: tuple[int, ...]) -> None:
    shares: Law = {(0, 0, c, d, y): 1 / (16 * len(labels)) for c, d, y in product(range(8), range(2), labels)}
    for sigma_squared in (NEXT_TO_NONE, Fraction(4)):
        published = NoisySum(tuple(counted(TREE, shares, 1000)), 1000, sigma_squared, 1)
        model = graphical_model(TREE, published, float(labels[0]))
        drawn = drawn_categories(model, 500, b"seed")
        assert {*drawn[""].tolist()} == {*labels} and {*drawn["a"].tolist()} == {0}


def of_chances(*chances: float) -> GraphicalModel:
    return GraphicalModel(LABEL, (Leaning("a", "", np.array([[chances], [chances[::-1]]])),), {})


def test_each_group_of_rows_has_its_shares_up_to_one_row() -> None:
    model = graphical_model(TREE, NoisySum(tuple(counted(TREE, law())), PEOPLE, NEXT_TO_NONE, 1), 0.3)
    for rows, seed in ((1, b"x"), (37, b"y"), (5000, b"z")):
        drawn = drawn_categories(model, rows, seed)
        assert abs(int(drawn[""].sum()) - 0.3 * rows) <= 1
        for one in model.leanings:
            above = drawn[one.parent] if one.parent else np.zeros(rows, dtype=int)
            for label, parent in np.ndindex(*one.chances.shape[:2]):
                there = drawn[one.name][(drawn[""] == label) & (above == parent)]
                found = np.bincount(there, minlength=one.chances.shape[2])
                assert np.abs(found - len(there) * one.chances[label, parent]).max() < 1 + 1e-4


@pytest.mark.slow
def test_odd_rows_and_the_order_fall_by_chance() -> None:
    """Over 2,000 seeds: one row alone has each category by its chance, and a half of ten rows holds its share of them;
    each within what chance allows at 1e-3."""
    model, seeds = of_chances(0.2, 0.5, 0.3), [bytes([seed // 256, seed % 256]) for seed in range(2000)]
    first = np.array([drawn_categories(model, 1, seed)[""][0] for seed in seeds])
    low, high = binom.ppf([5e-4, 1 - 5e-4], len(seeds), LABEL[1])
    assert low <= first.sum() <= high
    labels = np.array([drawn_categories(model, 10, seed)[""] for seed in seeds])
    assert (labels.sum(axis=1) == 3).all()
    held = np.bincount(labels[:, :5].sum(axis=1), minlength=4)
    expected = len(seeds) * hypergeom.pmf(np.arange(4), 10, 3, 5)
    assert ((held - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-3, 3)


def study(design: str = MARGINALS, minimum: int = 4) -> Manifest:
    return resolve(parse_proposal(sum_study(design, minimum=minimum)), KEYS, 1_800_000_000)


def sums_of(asked: Manifest, seed: int = 1, people: int = 300) -> RoundSum:
    """A published sum of people who all sleep little or all much."""
    design, arrangement = shape_of(asked.surveys[0]), arrangement_of(asked)
    assert isinstance(design, TableSums)
    spring = np.random.default_rng(seed)
    total = np.zeros(design.length, dtype=np.int64)
    for _ in range(people):
        tired = int(spring.random() < 0.4)
        sleep = int(spring.random() < 0.8 - 0.6 * tired)
        categories = {"age": int(spring.integers(4)), "sleep": sleep, "cups": 2 * tired}
        total += np.array(design.vector(categories, tired))
    each = arrangement.sums[0].sigma_squared
    noise = simulated_noise(each, 2, design.length, spring)
    return RoundSum(tuple((total + noise).tolist()), people, each * 2)


def learned(asked: Manifest, seed: int = 1) -> LearnedRows:
    found = learned_from(asked, [sums_of(asked, seed)], with_influence=False)
    assert isinstance(found, LearnedRows)
    return found


def test_a_study_publishes_a_model_and_rows_that_repeat_to_the_bit() -> None:
    asked = study(MARGINALS + "\nrows = 200")
    once, again = learned(asked), learned(asked)
    assert once.results == again.results and [*once.results] == [*protocol_of(asked).results(asked)]
    read = PROTOCOLS.result(once.results[ROWS])
    assert isinstance(read, PublishedRows) and read == once.rows and len(read.rows) == 200
    assert read.columns == ("age", "sleep", "cups", "tired") and once.model.classifier == "additive"
    assert {row[2] for row in read.rows} <= {"none", "some", "many", ""} and {row[3] for row in read.rows} == {"0", "1"}
    assert {row[0] for row in read.rows} <= {"[0, 30]", "(30, 60]", "(60, 100]", ""}
    other = learned(evolve(asked, title="Another."))
    assert other.rows.rows != once.rows.rows, "the stream follows from the study"
    first, *others = (found := sums_of(asked)).values
    moved = learned_from(asked, [evolve(found, values=(first + 1, *others))], with_influence=False)
    assert isinstance(moved, LearnedRows), "and from the sum: one more in a cell, and other rows have each category"
    assert sum(map(eq, moved.rows.rows, once.rows.rows)) < 100
    assert [*reader(read.to_csv().splitlines())] == [[*read.columns], *map(list, read.rows)]


def test_the_rows_of_a_known_sum_are_known() -> None:
    """A change of how rows follow from a sum changes this digest: audits of before find other rows then."""
    model = graphical_model(TREE, noisy(TREE, law(), 5000, 900, as_seeded(1)), 0.3)
    drawn = drawn_categories(model, 1000, b"known")
    digest = sha256(b"".join(bytes(drawn[name].tolist()) for name in ("", *CARDS))).hexdigest()
    assert digest[:16] == "281669b7e3f408e1"


@pytest.mark.parametrize(
    ("keys", "minimum", "pairs"),
    [("", 2999, 0), ("", 3000, 3), ("\ntree_from = 0", 4, 3), ("\ntree_from = 9000", 3000, 0),
     ('\npairs = [["cups", "age"]]', 4, 1), ('\npairs = [["cups", "age"]]', 3000, 3)],
)  # fmt: skip
def test_people_times_epsilon_decide_between_star_and_tree(keys: str, minimum: int, pairs: int) -> None:
    text = sum_study('kind = "marginals"\nepsilon = 1.0' + keys, minimum=minimum).replace("1000", "5000")
    asked = resolve(parse_proposal(text), KEYS, 1_800_000_000)
    check_study(asked)
    rows, *places = asked.surveys[0].parameters
    assert rows == minimum and len(places) == 2 * pairs
    if pairs == 1:
        assert places == [0, 2], "in the features' order"


def test_texts_of_categories() -> None:
    numeric = Feature("n", "numeric", "n", "SELECT 1", "own", range=(0, 10), cuts=(0.0, 2.5))
    assert category_texts(numeric) == ["[0, 0]", "(0, 2.5]", "(2.5, 10]", ""]
    assert category_texts(evolve(numeric, missing=3.0)) == ["[0, 0]", "(0, 2.5]", "(2.5, 10]"]
    words = Feature("w", "categorical", "w", "SELECT 1", "x", categories=("x", "ü"))
    assert category_texts(words) == ["x", "ü"] and category_texts(evolve(words, missing="own")) == ["x", "ü", ""]


def test_rows_fit_the_bytes_that_a_manifest_allows() -> None:
    """Of the longest texts: characters that JSON spells by six bytes, and numbers of many digits."""
    text = sum_study(MARGINALS + "\nrows = 500")
    for word in ("none", "some", "many"):
        text = text.replace(word, word[0] + "\u00fc" * 199)
    text = text.replace("[30, 60]", "[30.123456789, 60.000000001]")
    asked = resolve(parse_proposal(text), KEYS, 1_800_000_000)
    longest = protocol_of(asked).results(asked)[ROWS]
    assert longest / 2 < len(learned(asked).results[ROWS]) <= longest


BAD_ROWS: dict[str, dict[str, object]] = {
    "another form": {"form": "columns"}, "another version": {"version": 2}, "a key too many": {"more": 1},
    "no column": {"columns": []}, "a column twice": {"columns": ["a", "a"]}, "a row too short": {"rows": [["x"]]},
    "a number as a cell": {"rows": [["x", 1]]}, "no list of rows": {"rows": "xy"},
    "too many rows": {"rows": [["x", "y"]] * 4},
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_ROWS)
def test_rows_that_do_not_parse_or_are_of_absurd_size_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.protocols.models.rows.MOST_ROWS", 3)
    right = json.loads(PublishedRows("00", "Title", ("a", "b"), (("x", "y"),) * 3).to_json())
    assert PROTOCOLS.result(json.dumps(right)) == PublishedRows("00", "Title", ("a", "b"), (("x", "y"),) * 3)
    with pytest.raises(Malformed):
        PROTOCOLS.result(json.dumps(right | BAD_ROWS[name]))
    with pytest.raises(Malformed):
        PROTOCOLS.result(json.dumps(right)[:-1])


BAD = {
    "bins": (sum_study(MARGINALS).replace("cuts = [6]", "bins = 2"), "marginals asks once and finds no cuts"),
    "too many rows": (sum_study(f"{MARGINALS}\nrows = {MOST_DRAWN + 1}"), "rows: expected 1 to"),
    "no rows": (sum_study(f"{MARGINALS}\nrows = -1"), "rows: expected 1 to"),
    "a pair twice": (sum_study(MARGINALS + '\npairs = [["age", "cups"], ["cups", "age"]]'), "different pairs"),
    "an unknown pair": (sum_study(MARGINALS + '\npairs = [["age", "tired"]]'), "different pairs"),
    "a threshold below 0": (sum_study(MARGINALS.replace("= 0", "= -1")), "tree_from"),
    "many records": (sum_study(MARGINALS, keys=many()), "takes one of each member"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_study_file_that_cannot_run_says_what_to_change(name: str) -> None:
    text, words = BAD[name]
    with pytest.raises((Malformed, InvalidValue), match=words):
        parse_proposal(text)


def test_tables_of_absurd_size_are_refused_before_anyone_is_asked() -> None:
    words = [str(number) for number in range(64)]
    more = [categorical(f"f{number}", words, query="SELECT age FROM person") for number in range(6)]
    text = sum_study(MARGINALS).replace("[design]", "".join(more) + "[design]")
    with pytest.raises(AnonmlError, match="take fewer features"):
        resolve(parse_proposal(text), KEYS, 1_800_000_000)


def survey_of(*parameters: int) -> tuple[dict[str, int], Survey]:
    """Cards of the study, and its survey with other parameters and the length that belongs to them."""
    asked = study().surveys[0]
    changed = evolve(asked, parameters=parameters)
    return dict(zip(asked.features, asked.cards, strict=True)), evolve(changed, m=shape_of(changed).length)


@pytest.mark.parametrize("parameters", [(4,), (4, 0, 1), (4, 0, 2, 1, 2), (MOST_DRAWN, 1, 2)])
def test_a_manifest_may_have_any_pairs_in_order(parameters: tuple[int, ...]) -> None:
    cards, survey = survey_of(*parameters)
    marginals_form(cards, [[survey]])


@pytest.mark.parametrize(
    "parameters",
    [(0, 0, 1), (MOST_DRAWN + 1, 0, 1), (4, 1, 0), (4, 0, 2, 0, 1), (), (4, 0, 0), (4, 0, 1, 0, 1), (4, 0), (4, 0, 9)],
)  # fmt: skip
def test_a_manifest_with_other_pairs_or_rows_is_refused(parameters: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue, match=r"marginals|survey|block"):
        cards, survey = survey_of(*parameters)
        marginals_form(cards, [[survey]])


def test_a_manifest_with_other_surveys_or_cards_is_refused() -> None:
    cards, survey = survey_of(4, 0, 1)
    turned = dict(reversed(cards.items()))
    other = evolve(survey, kind="tables")
    for known, asked in ((cards, [[survey], [survey]]), (turned, [[survey]]), (cards, [[other]])):
        with pytest.raises(InvalidValue, match="marginals"):
            marginals_form(known, asked)


def test_another_length_of_sums_is_refused() -> None:
    with pytest.raises(Malformed, match="cells"):
        graphical_model(TREE, NoisySum((1, 2), 4, Fraction(1), 2), 0.3)


def test_an_owner_reads_that_rows_are_published() -> None:
    asked = study(MARGINALS + "\nrows = 77")
    words = " ".join(map(str, protocol_of(asked).odds(asked)))
    assert "makes up 77 rows" in words and "stand for nobody" in words
    assert "each of 3 tables" in words
    assert "makes up" not in " ".join(map(str, protocol_of(manifest_of()).odds(manifest_of())))


def test_the_section_says_its_pairs() -> None:
    proposal = parse_proposal(sum_study(MARGINALS))
    assert isinstance(proposal.design, Marginals)
    assert proposal.design.asked(proposal) == (("age", "sleep"), ("age", "cups"), ("sleep", "cups"))
