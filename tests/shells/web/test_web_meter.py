"""The budget meter equals the ledger, at every step of a study and over several data sets."""

from __future__ import annotations

import re

import attrs
import pytest

from anon.accounting.zcdp import rho_within
from anon.ldp import format_epsilon
from anon.protocols.charge import LOCAL, Budget, Measure, Unit
from anon.protocols.cost_words import DELTA, in_epsilon
from anon.text.sentences import say
from peer.rules.ledger import Entry
from peer.store import rows
from tests.support.fake_aggregator import until_closed
from tests.support.visiting import Got, Visited


def meter_of(got: Got) -> tuple[int, int, int]:
    """Spent, reserved and available as the first meter of a page says, in figures as in words."""
    for count, shown in re.findall(r'data-(?:spent|reserved|available|lifetime)="(\d+)">([^<]*)<', got.text):
        assert shown == format_epsilon(int(count))
    return tuple(int(got.attribute(f"data-{name}")[0]) for name in ("spent", "reserved", "available"))  # type: ignore[return-value]


def truth(page: Visited) -> tuple[int, int, int]:
    ledger = page.peer.budget()
    return sum(one.spent for one in ledger.entries), sum(one.reserved for one in ledger.entries), ledger.available


async def _equal_everywhere(page: Visited) -> None:
    home, budget = await page.get("/"), await page.get("/budget")
    assert meter_of(home) == truth(page)
    ledger = page.peer.budget()
    assert int(budget.attribute("data-lifetime")[0]) == ledger.lifetime
    assert {int(one) for one in budget.attribute("data-available")} == {ledger.available}
    for entry in ledger.entries:
        line = budget.text.partition(f'data-study="{entry.study.hex()}"')[2].partition("</tr>")[0]
        assert f'data-spent="{entry.spent}">{format_epsilon(entry.spent)}<' in line
        assert f'data-reserved="{entry.reserved}">{format_epsilon(entry.reserved)}<' in line
    for name, held in ledger.by_data_set().items():
        section = budget.text.partition(f'data-set="{name}"')[2].partition("</section>")[0]
        part = Got(200, {}, section, b"", "")
        assert int(part.attribute("data-spent")[0]) + int(part.attribute("data-reserved")[0]) == held


def widths(got: Got) -> tuple[float, float]:
    meter = got.text.partition('class="meter"')[2].partition("</svg>")[0]
    found = {kind: float(width) for kind, width in re.findall(r'class="(spent|reserved)"[^>]*?width="([\d.]+)"', meter)}
    return found["spent"], found["reserved"]


@pytest.mark.slow
async def test_the_meter_equals_the_ledger_from_the_yes_to_the_end(page: Visited) -> None:
    await _equal_everywhere(page)
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    shown = await page.get(page.invite)
    before, after = int(shown.attribute("data-before")[0]), int(shown.attribute("data-after")[0])
    assert before == page.peer.budget().available
    await page.submit(page.invite, page.invite, answer="yes")
    assert page.peer.budget().available == after
    await _equal_everywhere(page)
    await until_closed(page.peer, page.aggregator)
    for _ in range(200):
        due = await page.peer.step(page.aggregator.study)
        await _equal_everywhere(page)
        if due is None or due > page.aggregator.manifest.windows[-1].closes:
            break
        page.aggregator.clock.seconds = max(page.aggregator.clock(), due)
    await _equal_everywhere(page)
    assert truth(page)[0] > 0


async def test_several_data_sets_and_aggregators_add_up_to_one_budget(page: Visited) -> None:
    entries = [
        Entry(bytes([1]) * 32, "One", bytes(32), "course", reserved=250_000_000, spent=1),
        Entry(bytes([2]) * 32, "Two", bytes(32), "health", reserved=0, spent=3_333_333_333),
        Entry(bytes([3]) * 32, "Three", bytes([9]) * 32, "health", reserved=1_000_000_000, spent=0),
    ]
    with page.peer.store._writing("test") as connection:
        for entry in entries:
            rows.insert(connection, "ledger", attrs.asdict(entry))
    await _equal_everywhere(page)
    spent, reserved = widths(await page.get("/budget"))
    assert spent == pytest.approx(33.33, abs=0.011) and reserved == pytest.approx(12.5, abs=0.011)


async def test_another_unit_is_listed_and_never_summed(page: Visited) -> None:
    other = Entry(
        bytes([1]) * 32,
        "Elsewhere",
        bytes(32),
        "course",
        spent=5_000_000_000,
        measure=Measure.CENTRAL,
        condition=say("a second server is honest"),
    )
    with page.peer.store._writing("test") as connection:
        rows.insert(connection, "ledger", attrs.asdict(other))
    got = await page.get("/budget")
    assert "For perturbed packets epsilon 10 is left." in got.words and "spent 100 % reserved 0 %" in got.words
    assert (
        "0 of epsilon 4 left" in got.words
        and "“Elsewhere”: epsilon 5 spent, 0 reserved; the odds of anything about you move by" in got.words
        and "; the promise holds if a second" in got.words
    )


async def test_a_budget_lowered_below_what_is_held_shows_nothing_left(page: Visited) -> None:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    await page.submit(page.invite, page.invite, answer="yes")
    await page.submit("/budget", "/budget", lifetime="1", per_study="5", minimum_cohort="3")
    got = await page.get("/budget")
    assert meter_of(got)[2] == 0 and "lowered the budget below" in got.words
    assert sum(widths(got)) <= 100


@pytest.mark.slow
async def test_the_limits_of_another_budget_have_a_form_of_their_own(page: Visited) -> None:
    assert "Another budget" not in (await page.get("/budget")).words
    asked = await page.get("/budget?measure=zcdp&unit=record")
    assert "Another budget: noisy sums about a single record" in asked.words and "0 of rho 0 left" in asked.words
    await page.submit(
        "/budget?measure=zcdp&unit=record",
        "/budget/other",
        measure="zcdp",
        unit="record",
        lifetime="0.5",
        per_study="0",
    )
    limit = page.peer.policy().limit(Budget(Measure.ZCDP, Unit.RECORD))
    assert (limit.lifetime, limit.per_study) == (rho_within(500_000_000, DELTA), 0)
    assert in_epsilon(limit.budget, limit.lifetime) == 500_000_000
    shown = await page.get("/budget")
    assert f"{format_epsilon(limit.lifetime)} of rho {format_epsilon(limit.lifetime)} left" in shown.words
    assert 'name="lifetime" value="0.5"' in shown.text
    await page.submit("/budget", "/budget/other")
    assert page.peer.policy().limit(limit.budget) == limit, "a limit that was not changed stays as it was"
    for wrong in ({"measure": "pure-local"}, {"measure": "magic"}, {"lifetime": "much"}):
        fields = {"measure": "zcdp", "unit": "person", "lifetime": "1", "per_study": "1"} | wrong
        got = await page.submit("/budget?measure=zcdp&unit=record", "/budget/other", **fields)
        assert got.status == 400
    assert page.peer.policy().limit(LOCAL).lifetime == 10 * 10**9


async def test_the_front_page_shows_a_budget_of_sums_that_a_study_spent(page: Visited) -> None:
    """Else it says that nothing was spent."""
    entry = Entry(
        bytes([1]) * 32, "Elsewhere", bytes(32), "course", spent=75_000_000, measure=Measure.ZCDP,
        condition=say("a teller is honest"),
    )  # fmt: skip
    assert "Noisy sums" not in (await page.get("/")).words
    with page.peer.store._writing("test") as connection:
        rows.insert(connection, "ledger", attrs.asdict(entry))
    assert "Noisy sums about a person spent 25 % reserved 0 %" in (await page.get("/")).words


@pytest.mark.slow
@pytest.mark.parametrize(("field", "value"), [("lifetime", "12.4"), ("per_study", "7.4")])
async def test_a_raise_that_multiplies_odds_by_more_than_ten_is_asked_again(
    page: Visited, field: str, value: str
) -> None:
    before = page.peer.policy()
    asked = await page.submit("/budget", "/budget", **{field: value})
    assert "the odds about you move by at most a factor of 11.1" in asked.words and page.peer.policy() == before
    sure = asked.form("/budget")
    await page.post("/budget", sure | {"sure": "yes"})
    assert page.peer.policy() != before
    below = str(float(value) + 2.3)
    assert "Your limits are changed." in (await page.submit("/budget", "/budget", **{field: below})).words


@pytest.mark.slow
async def test_a_raise_of_sums_is_asked_again_in_epsilons(page: Visited) -> None:
    asked = await page.submit("/budget?measure=zcdp&unit=person", "/budget/other", lifetime="8")
    assert "You raise a limit from epsilon 3.93 to 8." in asked.words
    sure = asked.form("/budget/other") | {"sure": "yes"}
    await page.post("/budget/other", sure)
    limit = page.peer.policy().limit(Budget(Measure.ZCDP, Unit.PERSON))
    assert limit.lifetime == rho_within(8 * 10**9, DELTA) and limit.per_study == 101_000_000
