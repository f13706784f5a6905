"""The tables of a start: recorded lines of tor 0.4.9.11, and every pair of phase and trouble has one next action."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.route.tor.bootstrap import ACTIONS, FAILURES, PATIENCE, PHASES, REASONS, Bootstrap, BootstrapPhase, Trouble

CONN = 'NOTICE BOOTSTRAP PROGRESS=5 TAG=conn SUMMARY="Connecting to a relay"'
REFUSED = (
    'WARN BOOTSTRAP PROGRESS=5 TAG=conn SUMMARY="Connecting to a relay" WARNING="Connection refused" '
    'REASON=CONNECTREFUSED '
    'COUNT=1 RECOMMENDATION=warn HOSTID="0000000000000000000000000000000000000000" HOSTADDR="127.0.0.1:1"'
)
IGNORED = REFUSED.replace("RECOMMENDATION=warn", "RECOMMENDATION=ignore")
KEYS = 'NOTICE BOOTSTRAP PROGRESS=40 TAG=loading_keys SUMMARY="Loading authority key certs"'
DONE = 'NOTICE BOOTSTRAP PROGRESS=100 TAG=done SUMMARY="Done"'
SKEW = "WARN CLOCK_SKEW SKEW=172800 SOURCE=OR:127.0.0.1:10090"
NOROUTE = "$0501011B32C77C3FFE68DC4B3E40FC5D27F9501B FAILED REASON=NOROUTE NCIRCS=1 ID=6"
CONNECTED = "$0501011B32C77C3FFE68DC4B3E40FC5D27F9501B~name CONNECTED ID=7"


def test_a_start_that_goes_well() -> None:
    state = Bootstrap(0).heard_status(CONN, 1).heard_status(KEYS, 2)
    assert (state.phase, state.progress, state.since, state.done) == (BootstrapPhase.LOADING, 40, 2, False)
    state = state.heard_status(DONE, 3)
    assert state.done
    assert state.phase is BootstrapPhase.DONE


def test_a_refusal_that_tor_calls_lasting_is_hopeless_after_its_patience() -> None:
    state = Bootstrap(0).heard_status(CONN, 1).heard_status(REFUSED, 2).heard_status(REFUSED, 3)
    assert not state.hopeless(2 + PATIENCE[Trouble.BLOCKED] - 0.1)
    assert state.hopeless(2 + PATIENCE[Trouble.BLOCKED])
    assert "blocked while connecting" in str(state.failure())
    assert "bridge-refused" in str(Bootstrap(0, bridges=True).heard_status(REFUSED, 2).failure())


def test_a_refusal_that_tor_shrugs_at_only_names_the_reason() -> None:
    state = Bootstrap(0).heard_status(IGNORED, 1)
    assert not state.hopeless(1e6)
    assert "blocked" in str(state.failure())


def test_progress_forgets_a_refusal_but_not_a_wrong_clock() -> None:
    state = Bootstrap(0).heard_status(REFUSED, 1).heard_status(KEYS, 2)
    assert state.trouble is Trouble.NONE
    assert not state.hopeless(1e6)
    state = Bootstrap(0).heard_status(SKEW, 1).heard_status(KEYS, 2)
    assert state.trouble is Trouble.CLOCK_SKEW
    assert not state.hopeless(2 + PATIENCE[Trouble.CLOCK_SKEW] - 0.1)
    assert state.hopeless(2 + PATIENCE[Trouble.CLOCK_SKEW])
    assert "clock-skew" in str(state.heard_status(REFUSED.replace("PROGRESS=5", "PROGRESS=40"), 3).failure())


def test_a_clock_half_an_hour_off_is_none_of_ours() -> None:
    assert Bootstrap(0).heard_status("WARN CLOCK_SKEW SKEW=-1800 SOURCE=DIRSERV:1.2.3.4:80", 1) == Bootstrap(0)


def test_no_route_at_all_is_told_by_connections_only() -> None:
    state = Bootstrap(0)
    for number in range(FAILURES):
        assert not state.hopeless(1e6)
        state = state.heard_connection(NOROUTE, number)
    assert state.hopeless(FAILURES - 1 + PATIENCE[Trouble.NO_NETWORK])
    assert "no-network while starting" in str(state.failure())
    online = state.heard_connection(CONNECTED, 9)
    assert online.trouble is Trouble.NONE
    assert online.failures == 0


def test_one_failed_connection_does_not_unsettle() -> None:
    state = Bootstrap(0).heard_status(REFUSED, 1).heard_connection(NOROUTE.replace("NOROUTE", "CONNECTREFUSED"), 2)
    assert state.settled == 1


@pytest.mark.parametrize(
    ("log", "trouble", "said"),
    [
        (
            [
                "Nov 21 08:47:27.944 [warn] Failed to parse/validate config: Unknown option 'Nonsense'.  Failing.",
                "Nov 21 08:47:27.944 [err] Reading config failed--see warnings above.",
            ],
            Trouble.BAD_TORRC,
            "Unknown option 'Nonsense'",
        ),
        (
            [
                (
                    "Nov 21 08:47:27.944 [warn] It looks like another Tor process is running with the same data "
                    "directory.  Waiting 5 seconds to see if it goes away."
                ),
                "Nov 21 08:47:32.944 [err] No, it's still there.  Exiting.",
            ],
            Trouble.FOLDER_IN_USE,
            "another Tor process",
        ),
        (
            [
                (
                    "Nov 21 08:47:27.944 [warn] You are running Tor as root. You don't need to, and you probably "
                    "shouldn't."
                ),
                "x [err] set_options(): Bug: died",
            ],
            Trouble.TOR_ENDED,
            "Bug: died",
        ),
        ([], Trouble.TOR_ENDED, "no reason"),
    ],
)
def test_a_tor_that_ends_says_why(log: list[str], trouble: Trouble, said: str) -> None:
    state = Bootstrap(0).ended(log)
    assert state.trouble is trouble
    assert said in str(state.failure())
    assert state.hopeless(0)
    assert len(str(Bootstrap(0).ended(["x [err] " + "y" * 10_000]).failure())) < 600


def test_a_transport_that_does_not_start() -> None:
    line = (
        'Nov 21 09:00:00.000 [warn] Managed proxy "/nonexistent/obfs4proxy" having PID 4806 terminated with status '
        "code 1"
    )
    state = Bootstrap(0, bridges=True).heard_log(line, 1)
    assert state.hopeless(1 + PATIENCE[Trouble.NO_TRANSPORT])
    assert "no-transport" in str(state.failure())
    ordinary = 'Nov 21 09:00:00.000 [notice] Managed proxy "/usr/bin/obfs4proxy": offline'
    assert Bootstrap(0).heard_log(ordinary, 1) == Bootstrap(0)


@pytest.mark.parametrize("phase", BootstrapPhase)
@pytest.mark.parametrize("trouble", Trouble)
def test_every_phase_and_trouble_has_one_next_action(phase: BootstrapPhase, trouble: Trouble) -> None:
    text = str(Bootstrap(0, phase=phase, trouble=trouble).failure())
    assert trouble.value in text
    assert phase.value in text
    assert text.count("nothing is lost, ") == 1


def test_the_tables_are_whole() -> None:
    assert {phase for _, phase in PHASES} == set(BootstrapPhase)
    assert set(REASONS.values()) <= set(PATIENCE)
    assert {trouble for _, trouble in ACTIONS} == set(Trouble)


@pytest.mark.slow
@given(st.text(max_size=200), st.floats(0, 1e6))
def test_nonsense_changes_nothing_that_matters(text: str, now: float) -> None:
    for state in (
        Bootstrap(0).heard_status(text, now),
        Bootstrap(0).heard_connection(text, now),
        Bootstrap(0).ended([text]),
    ):
        assert not state.done
        state.failure()
    assert Bootstrap(0).heard_status('WARN BOOTSTRAP PROGRESS=x TAG="', 1) == Bootstrap(0)
