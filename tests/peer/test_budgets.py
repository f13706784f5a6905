"""A budget for each measure and unit: limits that hold whatever happens, and amounts that never meet."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from attrs import asdict, evolve
from hypothesis import given
from hypothesis import strategies as st

import peer.store.database.store_file
from anon.errors import Conflict, Malformed, Refused
from anon.protocols.charge import LOCAL, USUAL_LIMITS, Budget, Charge, Measure, Neighbours, Unit
from anon.protocols.cost_words import Amount, enough, in_budget, with_odds
from anon.protocols.registry import charge_of
from peer.cli.steps import with_command
from peer.rules.advice import Advice
from peer.rules.consent import Policy, decide, explain, objections
from peer.rules.ledger import Entry, Ledger
from peer.rules.limits import SAFE, BudgetLimit, limits_shown, with_limit
from peer.store import rows
from peer.store.store import Store
from tests.support.clock import START
from tests.support.fake_aggregator import DECLARED, FakeAggregator

NANO = 10**9
_, MOST = USUAL_LIMITS[Budget(Measure.ZCDP, Unit.PERSON)]
IF = "one of two servers keeps its share to itself"
BUDGETS = [Budget(measure, unit) for measure in Measure for unit in Unit]
LIMITS = {budget: (place + 1) * NANO for place, budget in enumerate(BUDGETS) if budget != LOCAL}
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["join", "spend", "settle", "forfeit", "restore"]),
        st.integers(0, 5),
        st.sampled_from(BUDGETS),
        st.integers(0, 3 * NANO),
    ),
    max_size=40,
)


def entry(study: bytes, budget: Budget, reserved: int) -> Entry:
    condition = "" if budget.measure is Measure.LOCAL else IF
    return Entry(study, "title", b"key", "default", reserved, 0, budget.measure, budget.unit, condition)


@given(MOVES)
def test_no_sequence_of_events_passes_a_limit_and_no_charge_is_lost_or_doubled(moves) -> None:
    ledger, charged, restores = Ledger(2 * NANO, others=LIMITS), Counter[bytes](), 0
    for what, which, budget, amount in moves:
        study = bytes([which]) * 32
        known = ledger.entry(study)
        try:
            if what == "join":
                ledger = ledger.reserve(entry(study, budget, amount))
            elif what == "spend":
                ledger = ledger.spend(study, amount)
                charged[study] += amount
            elif what == "settle":
                ledger = ledger.return_rest(study)
            elif what == "forfeit":
                ledger = ledger.forfeit_rest(study)
                charged[study] += known.reserved if known else 0
            else:
                restores += 1
                ledger = evolve(ledger, entries=(*ledger.entries, *ledger.all_spent("lost", bytes([restores]) * 8)))
                assert not any(ledger.available_of(one) for one in ledger.budgets)
        except (Refused, Conflict):
            continue
        for one in BUDGETS:
            assert ledger.held_of(one) <= ledger.lifetime_of(one)
        assert all((found := ledger.entry(one)) is not None and found.spent == spent for one, spent in charged.items())
        assert sum(map(ledger.held_of, BUDGETS)) == sum(one.held for one in ledger.entries)


def test_a_full_budget_leaves_every_other_one_as_it_was() -> None:
    for full in LIMITS:
        ledger = Ledger(NANO, others=LIMITS).reserve(entry(b"a" * 32, full, LIMITS[full]))
        assert ledger.available_of(full) == 0
        assert all(ledger.available_of(one) == ledger.lifetime_of(one) for one in BUDGETS if one != full)
        with pytest.raises(Refused, match=f"costs {full.symbol} 0.000000001 and 0 of the lifetime"):
            ledger.reserve(entry(b"b" * 32, full, 1))


def test_a_budget_without_a_limit_has_none_of_it() -> None:
    with pytest.raises(Refused):
        Ledger(NANO).reserve(entry(b"a" * 32, Budget(Measure.ZCDP, Unit.RECORD), 1))
    assert Policy().limit(Budget(Measure.ZCDP, Unit.RECORD)).lifetime == 0


@pytest.mark.parametrize("limits", [SAFE + SAFE[:1], (BudgetLimit(Measure.LOCAL, Unit.PERSON, 1, 1),)])
def test_limits_that_contradict_each_other(limits) -> None:
    with pytest.raises(Malformed):
        Policy(limits=limits)
    with pytest.raises(Malformed):
        BudgetLimit(Measure.ZCDP, Unit.PERSON, -1, 1)


# Consent


@pytest.fixture(scope="module")
def manifest():
    return FakeAggregator.with_study(DECLARED).manifest


@pytest.fixture
def costing(manifest, monkeypatch: pytest.MonkeyPatch):
    """The study with another charge: the one that its protocol states is replaced."""

    def made(charge: Charge):
        monkeypatch.setattr(type(_protocol(manifest)), "exposure", lambda *_: charge)
        return evolve(manifest, epsilon=charge.replacing().amount)

    return made


def _protocol(manifest):
    from anon.protocols.registry import protocol_of

    return protocol_of(manifest)


def rho(amount: int, unit: Unit = Unit.PERSON, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Charge:
    return Charge(Measure.ZCDP, amount, unit, neighbours, IF)


def ledger_of(policy: Policy) -> Ledger:
    return Ledger(policy.lifetime, (), policy.lifetimes())


def test_a_study_within_the_limits_of_its_measure_is_joined_whatever_the_local_budget_holds(costing) -> None:
    study, policy = costing(rho(NANO // 10)), Policy(lifetime=0, max_epsilon=0)
    consent = decide(study, policy, ledger_of(policy), NANO // 10, START)
    assert (consent.charge, consent.epsilon) == (charge_of(study), NANO // 10)


@pytest.mark.parametrize(
    ("charge", "said", "command"),
    [
        (rho(MOST + 1), "takes 34 % of your budget for noisy sums about a person", "--per-study 2.17"),
        (rho(MOST // 4 + 1, neighbours=Neighbours.ADD_REMOVE), "takes 34 % of your budget", "2.17 --measure zcdp"),
        (rho(1, Unit.RECORD), "you allow nothing for noisy sums about a single record", "--measure zcdp --unit record"),
        (Charge(Measure.CENTRAL, 2 * NANO + 1, condition=IF), "takes 51 % of your budget", "--measure pure-central"),
    ],
)
def test_each_measure_has_its_own_objections(costing, charge: Charge, said: str, command: str) -> None:
    study, policy = costing(charge), Policy(lifetime=1000 * NANO, max_epsilon=1000 * NANO)
    reasons = objections(study, policy, ledger_of(policy), START)
    assert any(said in reason for reason in reasons) and any(command in with_command(reason) for reason in reasons)
    assert all(isinstance(reason, Advice) for reason in reasons) and len(set(reasons)) == len(reasons)
    with pytest.raises(Refused):
        decide(study, policy, ledger_of(policy), study.epsilon, START)


def test_what_other_studies_hold_of_the_measure_counts(costing) -> None:
    study, policy = costing(rho(NANO // 10)), Policy()
    held = ledger_of(policy).reserve(entry(b"a" * 32, Budget(Measure.ZCDP, Unit.PERSON), NANO // 5 + 1))
    with pytest.raises(Refused, match=r"takes 34 % of your budget for .*, and 33 % of it is left"):
        decide(study, policy, held, study.epsilon, START)


def test_the_sheet_names_the_promise_and_its_condition(costing) -> None:
    policy = Policy()
    sheet = explain(costing(rho(NANO // 10)), policy, ledger_of(policy), START)
    text = " ".join(sheet.cost)
    assert "Epsilon 2.15 about you, of what is published." in text
    assert "The arithmetic: rho 0.1, recomputed 0.1. Your budget of it goes from 0.3 to 0.2." in text
    assert "move by at most a factor of 8.59, and by one in a million more" in text and f"holds if “{IF}”" in text
    assert (sheet.budget_before, sheet.budget_after) == (3 * NANO // 10, NANO // 5)
    assert "perturbed" not in text and "eq. 6" not in text and "each record by itself" not in text
    record = explain(
        costing(Charge(Measure.CENTRAL, NANO, Unit.RECORD, condition=IF)), policy, ledger_of(policy), START
    )
    assert "each record by itself" in " ".join(record.cost) and "factor of 2.72" in " ".join(record.cost)


def test_rho_is_shown_as_an_epsilon_rounded_up_with_its_odds() -> None:
    budget = Budget(Measure.ZCDP, Unit.PERSON)
    said = "epsilon 3.93: the chances of whatever is published move by at most a factor of 51.0, and by one in"
    assert with_odds(Amount(budget, 3 * NANO // 10)).startswith(said) and Amount(budget, 0).epsilon == 0
    local = with_odds(Amount(LOCAL, NANO))
    assert local == "epsilon 1: the odds of anything about you move by at most a factor of 2.72"


@pytest.mark.slow
@pytest.mark.parametrize("amount", [1, NANO // 10, NANO // 10 + 1, 3 * NANO // 10])
@pytest.mark.parametrize("known", [0, NANO // 10, 3 * NANO // 10])
def test_an_advised_limit_allows_what_it_was_advised_for(known: int, amount: int) -> None:
    budget = Budget(Measure.ZCDP, Unit.PERSON)
    assert in_budget(budget, known, enough(budget, known, amount)) >= amount


def test_a_list_shows_a_budget_that_holds_something_or_whose_limit_was_chosen() -> None:
    other, policy = Budget(Measure.CENTRAL, Unit.RECORD), Policy()
    assert limits_shown(ledger_of(policy), policy.limits) == ()
    held = evolve(ledger_of(policy), entries=(entry(b"a" * 32, other, 1),))
    assert [limit.budget for limit in limits_shown(held, policy.limits)] == [other]
    chosen = BudgetLimit(Measure.ZCDP, Unit.PERSON, 1, 1)
    assert limits_shown(ledger_of(policy), with_limit(policy.limits, chosen)) == (chosen,)


# The store


def test_policy_and_entries_of_every_budget_are_stored_and_read_back(tmp_path: Path) -> None:
    policy = Policy(limits=with_limit(SAFE, BudgetLimit(Measure.CENTRAL, Unit.RECORD, 7, 5)))
    with closing(Store(tmp_path / "peer.sqlite", os.urandom, policy)) as store:
        entries = [entry(bytes([place]) * 32, budget, place) for place, budget in enumerate(BUDGETS)]
        with store._writing("test") as connection:
            for one in entries:
                rows.insert(connection, "ledger", asdict(one))
        store.close()
        assert store.policy() == policy and store.ledger() == Ledger(
            policy.lifetime, tuple(entries), policy.lifetimes()
        )


def test_after_a_restore_nothing_is_left_of_any_budget(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "peer.sqlite", os.urandom, Policy())) as store:
        store.restored((), "restored", b"restored")
        ledger = store.ledger()
        assert [ledger.available_of(budget) for budget in ledger.budgets] == [0, 0, 0] and len(ledger.entries) == 3


class Killed(BaseException):
    """The process would have ended here."""


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_kill_around_a_commit_leaves_the_whole_change_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: Budget, side: str
) -> None:
    """Reserve, then spend: the file is opened again as a restarted program would."""

    def killing(point: str) -> None:
        if point == f"{side}-commit-of-release":
            raise Killed

    path, study = tmp_path / "peer.sqlite", b"a" * 32
    policy = Policy(lifetime=NANO, limits=tuple(BudgetLimit(one.measure, one.unit, NANO, NANO) for one in LIMITS))
    with closing(Store(path, os.urandom, policy)) as store:
        _change(store, study, lambda ledger: ledger.reserve(entry(study, budget, NANO)))
        monkeypatch.setattr(peer.store.database.store_file, "crash_point", killing)
        with pytest.raises(Killed):
            _change(store, study, lambda ledger: ledger.spend(study, NANO // 4))
    with closing(Store(path, os.urandom)) as store:
        found = store.ledger().entry(study)
        spent = NANO // 4 if side == "after" else 0
        assert found is not None and (found.spent, found.reserved) == (spent, NANO - spent)
        assert store.ledger().available_of(budget) == 0


def _change(store: Store, study: bytes, change) -> None:
    with store._writing("release") as connection:
        rows.write_entry(connection, change(rows.read_ledger(connection)), study)
