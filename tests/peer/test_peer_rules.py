"""The pure rules: ledger, consent, schedule, session, settings."""

import json
from itertools import product

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from anon.crypto.nacl import passphrase_key
from anon.errors import Conflict, Malformed, Refused
from anon.protocols.charge import Budget, Measure, Unit
from anon.study.manifest import Timetable, Window
from anon.wire.onion_address import onion_host
from peer.rules.consent import Policy, decide, explain, objections
from peer.rules.ledger import Entry, Ledger
from peer.rules.lifecycle import LAST, TABLE, Event, State, Unlisted, move
from peer.rules.schedule import (
    MAX_ATTEMPTS,
    draw_backoff,
    draw_fetch_time,
    draw_send_time,
    evaluation_allowance,
    overdue,
    uniform,
)
from peer.rules.study_secrets import Vault
from peer.store.home import PeerHome, Settings
from tests.support.clock import START
from tests.support.fake_aggregator import DECLARED, PAPER, FakeAggregator

STUDY, OTHER = b"a" * 32, b"b" * 32
NANO = 10**9


def entry(study: bytes = STUDY, reserved: int = 2 * NANO, **more: object) -> Entry:
    return Entry(study, "title", b"key", "default", reserved=reserved, **more)


# Ledger


def test_reserve_spend_return_and_what_is_left() -> None:
    ledger = Ledger(5 * NANO).reserve(entry()).spend(STUDY, NANO // 2)
    assert (ledger.held, ledger.available) == (2 * NANO, 3 * NANO)
    ledger = ledger.return_rest(STUDY)
    assert ledger.available == 5 * NANO - NANO // 2


def test_a_reservation_beyond_the_budget_is_refused_and_says_what_to_do() -> None:
    with pytest.raises(Refused, match="raise the budget"):
        Ledger(3 * NANO).reserve(entry()).reserve(entry(OTHER))
    Ledger(4 * NANO).reserve(entry()).reserve(entry(OTHER))


def test_no_packet_costs_more_than_was_reserved() -> None:
    with pytest.raises(Refused, match="nothing is sent"):
        Ledger(9 * NANO).reserve(entry()).spend(STUDY, 2 * NANO + 1)


def test_a_study_reserves_once() -> None:
    with pytest.raises(Conflict):
        Ledger(9 * NANO).reserve(entry()).reserve(entry())


def test_other_budgets_are_listed_and_never_summed() -> None:
    central = Budget(Measure.CENTRAL, Unit.PERSON)
    ledger = Ledger(3 * NANO, others={central: 100 * NANO})
    ledger = ledger.reserve(entry(OTHER, 100 * NANO, measure=Measure.CENTRAL)).reserve(entry())
    assert (ledger.held_of(central), ledger.available_of(central)) == (100 * NANO, 0)
    assert ledger.held == 2 * NANO
    assert len(ledger.entries) == 2
    assert sum(ledger.by_data_set().values()) == 2 * NANO


def test_forfeiting_counts_the_whole_reservation_as_spent() -> None:
    held = Ledger(9 * NANO).reserve(entry()).spend(STUDY, 1).forfeit_rest(STUDY).entry(STUDY)
    assert held is not None
    assert (held.reserved, held.spent) == (0, 2 * NANO)


@given(st.lists(st.tuples(st.sampled_from(["reserve", "spend", "return", "forfeit"]), st.integers(0, 3),
                          st.integers(0, 4 * NANO))))
def test_whatever_happens_the_ledger_holds_no_more_than_the_lifetime(moves: list[tuple[str, int, int]]) -> None:
    ledger, spent = Ledger(6 * NANO), 0
    for what, which, amount in moves:
        study = bytes([which]) * 32
        try:
            ledger = {
                "reserve": lambda ledger=ledger, study=study, amount=amount: ledger.reserve(entry(study, amount)),
                "spend": lambda ledger=ledger, study=study, amount=amount: ledger.spend(study, amount),
                "return": lambda ledger=ledger, study=study: ledger.return_rest(study),
                "forfeit": lambda ledger=ledger, study=study: ledger.forfeit_rest(study),
            }[what]()
        except (Refused, Conflict):
            continue
        assert ledger.held <= ledger.lifetime
        total = sum(one.spent for one in ledger.entries)
        assert total >= spent  # spent never shrinks
        spent = total


# Consent


@pytest.fixture(scope="module")
def manifest():
    return FakeAggregator.with_study(DECLARED).manifest


def test_consent_is_given_for_exactly_the_declared_epsilon(manifest) -> None:
    policy = Policy(minimum_cohort=7)
    consent = decide(manifest, policy, Ledger(policy.lifetime), manifest.epsilon, START)
    assert (consent.epsilon, consent.minimum_cohort) == (manifest.epsilon, 7)


@pytest.mark.parametrize(
    ("change", "ledger", "said"),
    [
        ({"max_epsilon": NANO}, 10 * NANO, "allow more"),
        ({}, NANO, "lifetime budget"),
        ({"designs": ("paper",)}, 10 * NANO, "design"),
        ({"admissions": ("open",)}, 10 * NANO, "admission"),
        ({"minimum_window": 86400}, 10 * NANO, "window"),
        ({"minimum_cohort": 1_000_001}, 10 * NANO, "at most"),
    ],
)
def test_each_objection_refuses_and_says_so(manifest, change: dict, ledger: int, said: str) -> None:
    served = evolve(manifest, address=f"{onion_host(bytes(32))}:80")
    with pytest.raises(Refused, match=said):
        decide(served, Policy(**change), Ledger(ledger), manifest.epsilon, START)


def test_approval_of_less_than_declared_is_no_yes(manifest) -> None:
    with pytest.raises(Refused, match="you approved"):
        decide(manifest, Policy(), Ledger(10 * NANO), manifest.epsilon - 1, START)


def test_after_closing_there_is_nothing_to_join(manifest) -> None:
    assert "closed" in objections(manifest, Policy(), Ledger(10 * NANO), manifest.timetable.enrol_closes)[0]


def test_the_sheet_says_what_matters() -> None:
    manifest = FakeAggregator.with_study(PAPER).manifest
    sheet = explain(manifest, Policy(), Ledger(10 * NANO), START)
    text = " ".join(sheet.statements)
    assert "AnonML eq. 6" in text
    assert "not the guarantee" in text
    assert "visible" in text
    assert sheet.budget_after == 10 * NANO - manifest.epsilon
    assert sheet.epsilon == sum(sheet.epsilon_per_packet)
    assert sheet.epsilon_eq6 < sheet.epsilon
    assert all("SELECT" in feature.query for feature in (*sheet.features, sheet.label))
    assert sheet.odds
    assert len(sheet.fingerprint.split("-")) == 12


def test_an_expected_direction_stands_beside_its_feature() -> None:
    """And the sheet says what it is for. Without one there is no word of it."""
    learned = DECLARED.replace("[schedule]", '[learning]\nclassifier = "additive"\n[schedule]')
    told = learned.replace('cuts = [30, 60]', 'cuts = [30, 60]\nexpects = -1')
    with_one, without = (
        explain(FakeAggregator.with_study(text).manifest, Policy(), Ledger(10 * NANO), START)
        for text in (told, learned)
    )
    assert [one.expects for one in with_one.features] == [
        "Staff expect that the higher “age” is, the less often “tired” is a yes.",
        "",
    ]
    assert "says nothing about you and costs you nothing" in " ".join(with_one.statements)
    assert not any(one.expects for one in without.features) and "expect" not in " ".join(without.statements)


def test_open_admission_gets_no_anonymity_claim() -> None:
    manifest = FakeAggregator.with_study(DECLARED + 'admission = "open"\n').manifest
    text = " ".join(explain(manifest, Policy(), Ledger(10 * NANO), START).statements)
    assert "cannot tell which packet" not in text
    assert "Do not count on hiding" in text


# Schedule


def draws(*values: float):
    left = list(values)
    return lambda count: int(left.pop(0) * 2**64).to_bytes(8, "big")


def test_a_send_time_is_uniform_within_the_margins() -> None:
    window = Window(1000, 2000)
    assert draw_send_time(window, 100, 0, draws(0.0)) == 1100
    assert draw_send_time(window, 100, 0, draws(0.5)) == 1500
    assert draw_send_time(window, 100, 1500, draws(0.0)) == 1500
    assert draw_send_time(window, 100, 1899, draws(0.999)) < 1900


def test_a_window_whose_rest_is_margin_is_missed() -> None:
    assert draw_send_time(Window(1000, 2000), 100, 1900, draws(0.5)) is None


def test_late_packets_are_drawn_again_and_at_most_four_attempts_are_made() -> None:
    assert not overdue(1000, 100, 1009)
    assert overdue(1000, 100, 1011)
    assert overdue(1000, 2, 1003)
    assert MAX_ATTEMPTS == 4


def test_fetches_are_spread_over_the_gap_and_late_ones_go_at_once() -> None:
    assert 1005 <= draw_fetch_time(1000, 1100, 0, draws(0.5)) <= 1060
    assert draw_fetch_time(1000, 1100, 5000, draws(0.5)) == 5000


def test_send_times_fill_the_window_evenly() -> None:
    """Kolmogorov-Smirnov against uniform, 2,000 fixed draws, level 1e-6: critical distance 2.69 / sqrt(n)."""
    from random import Random

    source = Random(7)
    window = Window(0, 1000)
    times = sorted(draw_send_time(window, 100, 0, source.randbytes) for _ in range(2000))
    distance = max(abs((time - 100) / 800 - (rank + 0.5) / 2000) for rank, time in enumerate(times))
    assert distance < 2.69 / 2000**0.5


@given(st.integers(0, 2**64 - 1), st.integers(0, 100))
def test_draws_stay_in_range(raw: int, failures: int) -> None:
    assert 10 <= uniform(10, 20, lambda count: raw.to_bytes(count, "big")) <= 20
    assert 0 < draw_backoff(failures, 1.0, lambda count: raw.to_bytes(count, "big")) <= 96


# Session


def test_every_pair_is_in_the_table_or_raises() -> None:
    for state, event in product(State, Event):
        if (state, event) in TABLE:
            assert move(state, event) == TABLE[state, event]
        else:
            with pytest.raises(Unlisted):
                move(state, event)


def test_last_states_have_no_way_out_and_return_and_erase_on_the_way_in() -> None:
    assert not any(state in LAST for state, _event in TABLE)
    for moved in TABLE.values():
        if moved.state in LAST:
            assert len(moved.effects) == 2


# Home and secrets


def test_unknown_settings_are_refused_by_name(tmp_path) -> None:
    home = PeerHome(tmp_path)
    home.settings_path.write_text(json.dumps({"head_check": 3}))
    with pytest.raises(Malformed, match="head_check"):
        home.settings()


def test_the_home_is_the_owners_alone(tmp_path) -> None:
    home = PeerHome(tmp_path / "peer")
    home.write_settings(evolve(Settings(), head_checks=1))
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert home.settings_path.stat().st_mode & 0o777 == 0o600
    assert home.settings().head_checks == 1


def test_one_runner_per_home(tmp_path) -> None:
    home = PeerHome(tmp_path)
    with home.running(), pytest.raises(Refused, match="another process"), PeerHome(tmp_path).running():
        pass


def test_secrets_rest_under_the_passphrase() -> None:
    key = passphrase_key("correct horse", b"s" * 16)
    stored = Vault(key, lambda count: b"n" * count).close(b"secret")
    assert b"secret" not in stored
    assert Vault(key, lambda count: b"").open(stored) == b"secret"
    for other in (None, b"k" * 32):
        with pytest.raises(Refused, match="passphrase"):
            Vault(other, lambda count: b"").open(stored)




@pytest.mark.parametrize(("settling", "expected"), [(2, 1.0), (4, 1.0), (40, 10.0), (240, 60.0), (86_400, 60.0)])
def test_evaluating_is_treated_as_taking_a_fixed_time(settling: int, expected: float) -> None:
    assert evaluation_allowance(Timetable(0, 1_000, 1_000 + settling, 10**6, 5)) == expected
