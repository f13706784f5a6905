"""The shared part of `sum`: from a study file to a manifest, and every way in which a manifest can lie about it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from attrs import evolve

from anon.accounting.noisy_sums import GaussianSum, delta_of
from anon.crypto.sealing import OVERHEAD
from anon.errors import Malformed
from anon.protocols.charge import Measure, Neighbours, Unit
from anon.protocols.contract import Record
from anon.protocols.registry import charge_of, check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sum.arranged import fewest
from anon.protocols.sum.design import one_in, roles, shape_of
from anon.protocols.sum.standing import arrangement_of
from anon.protocols.sum.vector import vector_of
from anon.sharing.arrangement import parse_entry
from anon.sharing.drafts import drafted
from anon.study.features import Cohort
from anon.study.manifest import Manifest, Window
from tests.anon.study.test_proposal import GOOD
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.sums import (
    GRADIENT,
    KEYS,
    MARGINALS,
    MOMENTS,
    NAMES,
    RULE,
    SLEEP,
    TABLES,
    document,
    entry,
    manifest_of,
    many,
    sum_study,
    tellers,
)

ALL = [TABLES, TABLES + '\npairs = [["age", "cups"]]', MARGINALS, MOMENTS, SLEEP, GRADIENT, RULE]

HONEST = "keeps its shares to itself, adds its noise and signs one list only"


@pytest.mark.slow
@pytest.mark.parametrize("design", ALL)
def test_a_manifest_keeps_its_bytes_and_passes_the_check(design: str) -> None:
    study = manifest_of(design)
    check_study(study)
    again = parse_manifest(study.to_bytes())
    assert again == study and again.protocol == "sum" and again.part == arrangement_of(study).to_bytes()
    assert [teller.name for teller in arrangement_of(study).tellers] == [*NAMES]


@pytest.mark.slow
@pytest.mark.parametrize("design", ALL)
def test_the_charge_is_that_of_one_teller_noise_and_keeps_the_epsilon_of_the_file(design: str) -> None:
    study = manifest_of(design)
    charge = charge_of(study)
    assert (charge.measure, charge.unit, charge.neighbours) == (Measure.ZCDP, Unit.PERSON, Neighbours.REPLACE_ONE)
    assert charge.condition == f"at least one of the tellers “clinic” and “students” {HONEST}"
    sums = []
    for survey, one in zip(study.surveys, arrangement_of(study).sums, strict=True):
        shape = shape_of(survey)
        sums.append(
            GaussianSum(shape.sensitivity_squared("replace-one"), shape.changed("replace-one"), one.sigma_squared)
        )
    each = [[sums[at] for at in places] for places in roles(study.surveys)]
    assert charge.amount == max(sum(one.rho for one in role) for role in each)
    assert [survey.epsilon for survey in study.surveys] == [one.rho for one in sums]
    for role in each:
        assert delta_of(role, 10**9) <= Decimal("1e-6") < delta_of(role, 99 * 10**7)


@pytest.mark.parametrize(("keys", "expected"), [("", [[0, 1, 2], [3]]), (many(), [[0, 1, 2]])])
def test_a_member_loses_what_its_role_costs_and_no_more(keys: str, expected: list[list[int]]) -> None:
    """Where a spare can make a round's sum twice, both roles count twice."""
    study = manifest_of(GRADIENT, keys=keys)
    assert roles(study.surveys) == expected
    costs = [sum(study.surveys[at].epsilon for at in places) for places in expected]
    assert charge_of(study).amount == max(costs) and min(costs) > 0.99 * max(costs)
    assert protocol_of(study).promised(study) <= 10**9


@pytest.mark.slow
@pytest.mark.parametrize(("minimum", "epsilon", "share"), [
    (4, "1.0", 4), (1000, "1.0", 4), (2000, "1.0", 5), (5000, "1.0", 12), (5000, "0.25", 4), (5000, "16.0", 42),
])
def test_a_quarter_checks_at_most_and_fewer_of_many(minimum: int, epsilon: str, share: int) -> None:
    text = sum_study(GRADIENT.replace("1.0", epsilon), minimum=minimum).replace("maximum = 1000", "maximum = 9000")
    study = resolve(parse_proposal(text), KEYS, 1_800_000_000)
    assert one_in(study.surveys) == share
    assert protocol_of(study).odds(study)[1].startswith(f"One member in {share}, drawn beforehand, sends no such")


def test_a_gradient_of_another_form_is_refused() -> None:
    study = manifest_of(GRADIENT)
    check = study.surveys[3]
    for crafted in (
        evolve(check, parameters=(*check.parameters[:-1], 3)),
        evolve(check, parameters=(512, *check.parameters[1:])),
        evolve(study.surveys[0], survey=3, round=3),
        evolve(check, cards=(1, 2)),
    ):
        with pytest.raises(Malformed, match="checked by one member in 4 or more"):
            check_study(evolve(study, surveys=(*study.surveys[:3], crafted)))
    with pytest.raises(Malformed, match="gradient needs two or more; with one, take moments"):
        resolve(evolve(proposal := parse_proposal(sum_study(GRADIENT)), features=proposal.features[:1]), KEYS, 1)


@pytest.mark.slow
def test_the_columns_and_blocks_are_those_of_the_file() -> None:
    tables, moments, sleep, gradient = (manifest_of(one) for one in (TABLES, MOMENTS, SLEEP, GRADIENT))
    assert (tables.surveys[0].m, tables.surveys[0].cards) == (2 * (4 + 3 + 4), (4, 3, 4))
    assert moments.surveys[0].m == 4 * 5 // 2 and moments.surveys[0].parameters == (4 * 16**2, 16)
    assert sleep.surveys[0].features == ("age", "sleep") and sleep.surveys[0].cards == (16, 32)
    assert sleep.surveys[0].parameters == (16**2 * (1 + 1 + 4), 0) and sleep.surveys[0].m == 6
    assert [survey.m for survey in gradient.surveys] == [3] * 4
    rule = manifest_of(RULE)
    assert [(one.kind, one.m, one.cards) for one in rule.surveys] == [
        ("scores", 8, (4, 3, 4)), ("residuals", 8, (4, 3, 4)), ("residuals", 8, (4, 3, 4)),
    ]  # fmt: skip
    first, later, last = (survey.epsilon for survey in rule.surveys)
    assert later == last and abs(first / rule.epsilon - 0.12) < 1e-6
    paired = manifest_of(TABLES + '\npairs = [["age", "cups"]]').surveys[0]
    assert (paired.m, paired.parameters) == (22 + 16, (0, 2))


@pytest.mark.slow
def test_a_gradient_has_a_window_of_its_own_for_each_round() -> None:
    study = manifest_of(GRADIENT)
    opens = [survey.window.opens for survey in study.surveys]
    assert opens == [study.timetable.settled + number * 4200 for number in range(4)] and study.packets == 4
    assert study.timetable.ends == study.surveys[-1].window.closes + 600
    assert manifest_of(GRADIENT.replace("3", "60")).packets == 61


def test_sizes_are_those_of_real_documents_and_packets() -> None:
    for design in (TABLES, MOMENTS, GRADIENT):
        study = manifest_of(design)
        part, layout = protocol_of(study), arrangement_of(study).layout(study.packets)
        assert part.share_sizes(study) == tuple(size + OVERHEAD for size in layout.shares)
        assert study.report_size == layout.report
        longest = part.documents(study)
        assert [*longest] == [("sums", number) for number in range(len(study.surveys))]
        assert len(document(study, 0, [0] * study.surveys[0].m, 1000)) <= longest["sums", 0]
        assert len(document(study, 0, [0] * study.surveys[0].m, 1100)) > longest["sums", 0]


def test_half_of_the_smallest_roster_can_be_summed() -> None:
    assert [fewest(Cohort(least)) for least in (2, 3, 4, 21)] == [2, 2, 2, 11]
    assert arrangement_of(manifest_of()).minimum == 2


# Study files


@pytest.mark.parametrize(("old", "new", "why"), [
    ("[[tellers]]", "[[teller]]", "teller"),
    ('address = "127.0.0.1:9001"', 'address = "127.0.0.1:9000"', "two at one address are one teller"),
    ('name = "students"', 'name = "clinic"', "another name of each"),
    ('name = "students"', 'name = " "', "name: expected some text"),
    ('name = "students"', f'name = "{"x" * 61}"', "name: expected one line of at most 60"),
    ("epsilon = 1.0", "epsilon = 0", "epsilon"),
    ("cuts = [30, 60]", "bins = 3", "write cuts in place of bins of age"),
    ("epsilon = 1.0", 'epsilon = 1.0\npairs = [["age", "age"]]', "pairs"),
    ("epsilon = 1.0", 'epsilon = 1.0\npairs = [["age", "sleep"], ["sleep", "age"]]', "pairs"),
    ("epsilon = 1.0", "epsilon = 1.0\nreach = 3", "unknown key"),
    ('protocol = "sum"', 'protocol = "summ"', "protocol: the design tables-sum is of sum"),
    ('protocol = "sum"', 'protocol = "moments"', "is of sum"),
])
def test_a_study_file_that_cannot_be_is_refused_by_its_key(old: str, new: str, why: str) -> None:
    text = sum_study(TABLES, tellers(entries=False))
    assert old in text
    with pytest.raises(Malformed, match=why):
        resolve(drafted(parse_proposal(text.replace(old, new))), KEYS, 1)


@pytest.mark.parametrize(("design", "why"), [
    (MOMENTS + '\ntarget = "cups"', "target"),
    (MOMENTS + "\nreach = 0", "reach"),
    (MOMENTS + "\nnorm = 0.0", "norm"),
    (GRADIENT.replace("3", "61"), "rounds"),
    (GRADIENT + "\nlast = 4", "last"),
    (RULE + "\nrounds = 0", "rounds"),
    (RULE + "\nrounds = 11", "rounds"),
    (GRADIENT + "\nmomentum = 1.0", "momentum"),
    ('kind = "one-packet"\nepsilon = 1.0', "one-packet has none"),
])
def test_settings_that_cannot_be_are_refused(design: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        manifest_of(design)


def test_columns_are_numbers_whose_missing_value_is_the_middle() -> None:
    for old, new in (('missing = "own"', "missing = 3"), ('kind = "numeric"', 'kind = "categorical"')):
        with pytest.raises(Malformed, match=r"missing|categories|numbers"):
            parse_proposal(sum_study(MOMENTS).replace(old, new))


def test_tellers_belong_to_exact_sums_alone_and_number_two_to_four() -> None:
    with pytest.raises(Malformed, match="tellers: the design one-packet has none"):
        parse_proposal(GOOD + tellers(entries=False))
    for names in ((), ("a",), ("a", "b", "c", "d", "e")):
        with pytest.raises(Malformed, match=r"tellers: expected 2 to 4"):
            parse_proposal(sum_study(TABLES, tellers(names, entries=False)))
    assert parse_proposal(GOOD).tellers == ()


def test_a_study_without_entries_can_be_looked_at_and_not_published() -> None:
    proposal = parse_proposal(sum_study(TABLES, tellers(entries=False)))
    with pytest.raises(Malformed, match="clinic has no entry; publishing asks the teller"):
        resolve(proposal, KEYS, 1)
    seen = drafted(proposal)
    check_study(resolve(seen, KEYS, 1))
    assert drafted(seen) == seen and len({teller.entry for teller in seen.tellers}) == 2
    given = parse_proposal(sum_study())
    assert drafted(given) == given and parse_entry(bytes.fromhex(given.tellers[0].entry)) == entry(0, "clinic")


def test_an_entry_of_another_teller_is_refused() -> None:
    other = entry(0, "stranger").to_bytes().hex()
    text = sum_study().replace(entry(0, "clinic").to_bytes().hex(), other)
    with pytest.raises(Malformed, match="the entry of clinic is of another name or address"):
        resolve(parse_proposal(text), KEYS, 1)
    with pytest.raises(Malformed, match="entry: expected at most"):
        parse_proposal(text.replace(other, "zz"))
    with pytest.raises(Malformed):
        resolve(parse_proposal(text.replace(other, "00")), KEYS, 1)


def test_a_rule_has_cuts_and_two_features_that_say_what_they_expect() -> None:
    text = sum_study(RULE)
    for old, new, why in (
        ("cuts = [6]", "bins = 2", "rule finds no cuts; write cuts in place of bins of sleep"),
        ("expects = -1", "", "at least two features"),
    ):
        with pytest.raises(Malformed, match=why):
            parse_proposal(text.replace(old, new))


# Manifests that lie


def _arranged(study: Manifest, **changes: object) -> Manifest:
    return evolve(study, part=evolve(arrangement_of(study), **changes).to_bytes())


def _summed(study: Manifest, **changes: object) -> Manifest:
    return _arranged(study, sums=tuple(evolve(one, **changes) for one in arrangement_of(study).sums))


def _asked(study: Manifest, **changes: object) -> Manifest:
    return evolve(study, surveys=tuple(evolve(one, **changes) for one in study.surveys))


def _named(study: Manifest, **changes: object) -> Manifest:
    first, *others = arrangement_of(study).tellers
    return _arranged(study, tellers=(evolve(first, **changes), *others))


LIES = {
    "less noise than declared": lambda s: _summed(s, sigma_squared=Fraction(1, 4)),
    "more noise than declared": lambda s: _summed(s, sigma_squared=arrangement_of(s).sums[0].sigma_squared * 2),
    "a cheaper survey": lambda s: _asked(s, epsilon=s.surveys[0].epsilon - 1),
    "a cheaper study": lambda s: evolve(s, epsilon=s.epsilon - 1),
    "no cost for an attribute": lambda s: evolve(s, epsilon_per_attribute=0),
    "another circuit": lambda s: _summed(s, kind="blocks", parameters=(1, 2)),
    "another round": lambda s: _arranged(
        s, sums=tuple(evolve(one, round=one.round + 1) for one in arrangement_of(s).sums)
    ),
    "another slot": lambda s: _arranged(
        s, sums=tuple(evolve(one, slot=one.slot + 1) for one in arrangement_of(s).sums)
    ),
    "a sum of none": lambda s: _arranged(
        s, sums=(*arrangement_of(s).sums, evolve(arrangement_of(s).sums[-1], round=99))
    ),
    "sums of two": lambda s: _arranged(s, minimum=3),
    "no tellers": lambda s: evolve(s, part=b""),
    "no arrangement": lambda s: evolve(s, part=b"\x80"),
    "a name of two lines": lambda s: _named(s, name="a" * 61),
    "a name that turns round": lambda s: _named(s, name="a\u2067b"),
    "a long address": lambda s: _named(s, address="a" * 201),
    "a size of another packet": lambda s: evolve(_asked(s, size=65), report_size=65),
    "a perturbed survey": lambda s: _asked(
        s, mechanism="krr", m=2, p=3 * 2**62, q=2**62, size=0, parameters=(), epsilon=10**10
    ),
    "other parameters": lambda s: _asked(s, parameters=(*s.surveys[0].parameters, 1, 1)),
    "another length": lambda s: _asked(s, m=s.surveys[0].m + 1),
    "a feature less": lambda s: _asked(s, features=("age",), cards=s.surveys[0].cards[:1]),
    "another kind": lambda s: _asked(s, kind="histogram"),
    "another design": lambda s: evolve(s, design="one-packet"),
    "another protocol": lambda s: evolve(s, protocol="some"),
    "two packets": lambda s: evolve(s, slots=(*s.slots, *s.slots)),
    "rounds at once": lambda s: evolve(
        s, surveys=tuple(evolve(one, window=s.surveys[0].window, round=1) for one in s.surveys)
    ),
    "a late window": lambda s: _asked(s, window=Window(s.timetable.ends, s.timetable.ends + 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", [TABLES, MOMENTS, GRADIENT, RULE])
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_with_the_next_step(design: str, lie: str) -> None:
    """Some are refused by the manifest itself, when it is read; the others by the check, which says what to do."""
    study = manifest_of(design)
    try:
        told = LIES[lie](study)
    except Malformed:
        return
    with pytest.raises(Malformed) as refused:
        check_study(told)
    assert str(refused.value).startswith("manifest: ") and str(refused.value).endswith("; do not take part")


@pytest.mark.slow
def test_moments_are_of_features_and_of_the_label_or_a_number() -> None:
    study = manifest_of(SLEEP)
    with pytest.raises(Malformed):
        check_study(_asked(study, parameters=(study.surveys[0].parameters[0],)))
    shrunk = manifest_of(MOMENTS + "\nnorm = 0.5").surveys[0]
    assert shrunk.parameters == (16**2, 16) and shape_of(shrunk).radius == 16**2


# Words


@pytest.mark.slow
def test_consent_words_say_what_leaves_to_whom_and_what_all_would_see() -> None:
    for design, leaves in ((TABLES, "each of 3 tables"), (MOMENTS, "10 numbers"), (GRADIENT, "leave 3 times")):
        study = manifest_of(design)
        part = protocol_of(study)
        lines = [line for line in part.odds(study) if not line.startswith("One member in")]
        assert leaves in lines[0]
        assert "2 shares, one for each teller: “clinic” and “students”" in lines[1]
        assert "keeps to epsilon 1, plus a chance of one in a million, if at least one of them is honest" in lines[2]
        assert lines[3] == "A sum is published of 2 members or more: some may miss their time to send."
        assert lines[4] == (
            "If all of them work together, they see your exact answers: without your name, but so exact that they may "
            "tell who you are."
        )
        (kind,) = part.packet_kinds(study)
        assert kind.picture is None and [line.text for line in kind.lines] == [*part.odds(study)]
        assert "“clinic” and “students” add them up" in part.summary(study)
        assert "tellers run on the aggregator's own computer, as in a trial" in lines[5]
    three = manifest_of(TABLES, tellers(("a", "b", "c")))
    assert charge_of(three).condition == f"at least one of the tellers “a”, “b” and “c” {HONEST}"


@pytest.mark.slow
def test_a_column_on_a_log_scale_is_even_in_the_logarithm() -> None:
    text = sum_study(MOMENTS).replace("range = [0, 12]", 'range = [0, 8]\nscale = "log"')
    study = resolve(parse_proposal(text), KEYS, 1_800_000_000)
    found = [
        vector_of(study, study.surveys[0], Record({"age": 100.0, "sleep": hours}, 1))[5] for hours in (0, 2, 8, None)
    ]
    assert found == [-(16**2), 0, 16**2, 0]  # age times sleep: of a linear scale two hours would be -128
    plain = manifest_of(MOMENTS)
    assert vector_of(plain, plain.surveys[0], Record({"age": 100.0, "sleep": 3}, 1))[5] == -(16**2) // 2
    assert [one.sigma_squared for one in arrangement_of(study).sums] == [
        one.sigma_squared for one in arrangement_of(plain).sums
    ]
