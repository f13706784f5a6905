"""Figures that pages and screens name are the program's own, and bounds are rounded outward."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import pytest

from aggregator.store.studies import ERASED_KINDS
from anon.ldp import format_epsilon, nano, odds_moved
from anon.ldp.epsilon import exponential
from anon.protocols.charge import LOCAL, USUAL_LIMITS, Budget, Measure, Unit
from anon.protocols.cost_words import in_epsilon
from tests.docs.repository import ROOT, pages

pytestmark = pytest.mark.source

FACTOR = r"\d[\d,.]*\d"
BEFORE = re.compile(rf"(?<![\d.])({FACTOR})(?:\*\*)? at epsilon (\d+)")
AFTER = re.compile(
    rf"epsilon (\d+)[^.]{{0,120}}?(?:factor of (?:up to|at most) |odds by at most )({FACTOR})"
    rf"|\bat (\d+), (?:the odds of [^;]{{0,60}} factor of |by )({FACTOR})"
)
"""A bound behind its epsilon, and one before it. A sentence that names one speaks of a factor or of odds."""
SCREENS = ("choose_budget.html", "preview.html")
SUMS = Budget(Measure.ZCDP, Unit.PERSON)


def bounds(text: str) -> Iterator[tuple[str, str]]:
    """Every epsilon of a text with the factor of odds that stands beside it."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    for sentence in re.split(r"(?<=[.!?]) (?=[A-Z*])", plain):
        if re.search(r"\bfactor\b|\bodds\b", sentence):
            yield from ((epsilon, factor) for factor, epsilon in BEFORE.findall(sentence))
            for epsilon, factor, more, its in AFTER.findall(sentence):
                yield epsilon or more, factor or its


def test_every_bound_of_odds_is_rounded_up_as_the_program_does() -> None:
    templates = [ROOT / "peer" / "web" / "templates" / name for name in SCREENS]
    found = {path.relative_to(ROOT).as_posix(): [*bounds(path.read_text("utf-8"))] for path in [*pages(), *templates]}
    wrong = {
        page: (epsilon, factor)
        for page, named in found.items()
        for epsilon, factor in named
        if not str(odds_moved(nano(epsilon))).endswith(f" {factor}")
    }
    assert wrong == {}
    few = {"README.md": 2, "docs/staff/ethics-and-data-protection.md": 3, "docs/threats.md": 1,
           "docs/staff/reading-the-report.md": 1, **{f"peer/web/templates/{name}": 3 for name in SCREENS}}  # fmt: skip
    assert all(len(found[page]) >= least for page, least in few.items()), "a page says it otherwise: read it there"


def test_the_table_of_beliefs_is_rounded_outward() -> None:
    """A belief of b moves to b e / (1 - b + b e) at most, e being the factor."""
    text = (ROOT / "docs" / "student" / "questions.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) to ([\d.]+)[^|]* \| ([\d.]+) to ([\d.]+)[^|]* \|$", text, re.MULTILINE)
    assert [row[0] for row in rows] == ["0.5", "1", "2", "4"]
    for epsilon, *ranges in rows:
        growth = exponential(nano(epsilon))
        for before, low, high in ((Decimal("0.5"), *ranges[:2]), (Decimal("0.1"), *ranges[2:])):
            for factor, told, rounding in ((1 / growth, low, ROUND_FLOOR), (growth, high, ROUND_CEILING)):
                after = 100 * before * factor / (1 - before + before * factor)
                assert Decimal(told) == after.quantize(Decimal(told), rounding, Context(prec=9)), (epsilon, told)


def test_limits_that_pages_name_are_those_that_a_program_begins_with() -> None:
    whole, most = (format_epsilon(in_epsilon(SUMS, amount)) for amount in USUAL_LIMITS[SUMS])
    answers = format_epsilon(USUAL_LIMITS[LOCAL][0])
    named = {
        "docs/student/questions.md": f"{answers} for changed answers, and {whole} for sums",
        "docs/staff/class-size.md": f"{most} for one such study and {whole} for all",
    }
    for page, said in named.items():
        assert said in " ".join((ROOT / page).read_text("utf-8").split()), page


def test_pages_say_what_an_erasure_leaves() -> None:
    assert "roster" not in ERASED_KINDS and "credentials" not in ERASED_KINDS
    text = " ".join((ROOT / "docs/staff/ethics-and-data-protection.md").read_text("utf-8").split())
    assert text.count("of members' keys") >= 2 and "list of members are erased" not in text


def test_the_number_of_small_steps_is_that_of_the_list() -> None:
    steps = (ROOT / "docs/staff/with-tellers.md").read_text("utf-8").partition("## Try it on this computer")[2]
    count = len(re.findall(r"^\d+\. ", steps, re.MULTILINE))
    said = {17: "Seventeen", 18: "Eighteen", 19: "Nineteen", 20: "Twenty"}[count]
    assert f"[{said} small steps]" in (ROOT / "docs/staff/first-study.md").read_text("utf-8")


def test_what_the_first_screen_says_of_tellers_is_in_the_tables_of_class_sizes() -> None:
    """At 500 people and epsilon 1, eleven features: first the sums of two tellers, then one packet of each person."""
    sizes = (ROOT / "docs" / "staff" / "class-size.md").read_text("utf-8")
    ranks = []
    for asking in ("Two tellers, asking", "Asking"):
        table = sizes.partition(f"**{asking} about eleven features: how well")[2]
        ranks.append(float(table.partition("| 500 |")[2].split("|")[1].split()[0]))
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert "With 500 it ranks {:.0%} of pairs rightly at epsilon 1, not {:.0%}.".format(*ranks) in readme


def test_the_first_screen_names_the_sizes_of_the_rule_of_thumb() -> None:
    """Of eleven features at the epsilons 2 and 1, and of a belief at 2; that rule is compared with the tables."""
    sizes, readme = ((ROOT / name).read_text("utf-8") for name in ("docs/staff/class-size.md", "README.md"))
    summed, believed = (
        re.search(rf"^\| {row} \| .* \| from ([\d,]+) \| from ([\d,]+) \|$", sizes, re.MULTILINE)
        for row in ("eleven features, with two tellers", "any features, with two tellers, from what you believe")
    )
    assert summed and believed and {*summed.groups()} == {*re.findall(r"helps from ([\d,]+) people on", readme)}
    assert " epsilon " not in readme.partition("helps from")[2].partition(":")[0], "it holds at both of them"
    told = f"belief; if wrong, [{believed[1]} people](docs/staff/class-size.md) at epsilon 2 show it."
    assert told in " ".join(readme.split())


def test_the_first_screen_says_what_holds_with_tellers() -> None:
    """The factor is of a changed answer; a sum's has a delta, and rests on a teller."""
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    told = readme.partition("**The noise comes first.**")[2].partition("* **")[0]
    changed, _, summed = told.partition("With [tellers]")
    assert "local differential privacy" in changed and "factor of at most" in changed
    assert "If one is honest" in summed and "one in a million" in summed
