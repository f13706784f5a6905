"""The half of a private network that decides: who takes part, what each is told, when the first vote falls."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from anon.errors import Refused
from anon.kit.testnet import torrcs
from anon.kit.testnet.background import stop
from anon.kit.testnet.layout import HIGHEST, LOWEST, PORTS, NetworkLayout, literal
from anon.kit.testnet.memory import memory_of
from anon.kit.testnet.ports import free_ports
from anon.kit.testnet.state import NetworkState
from anon.kit.testnet.timing import LEADS, VOTING, missing, votes
from anon.route.tor.torrc import checked_extra

IDENTITY, FINGERPRINT = "A" * 40, "B" * 40


def layout(address: str = "127.0.0.1") -> NetworkLayout:
    return NetworkLayout(Path("/net"), tuple(range(20_000, 20_000 + PORTS)), address)


def test_an_onion_service_needs_an_authority_and_four_relays() -> None:
    names = [relay.name for relay in layout().relays]
    assert names == ["authority", "relay1", "relay2", "relay3", "relay4"]
    listening = [relay.or_port for relay in layout().relays] + [layout().dir_port]
    assert len(set(listening)) == PORTS


@pytest.mark.parametrize("ports", [(), (1, 2, 3), (1,) * PORTS])
def test_a_layout_has_as_many_ports_as_it_needs(ports: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="different ports"):
        NetworkLayout(Path("/net"), ports)


@pytest.mark.parametrize("address", ["localhost", "", "::1", "127.0.0.1:9", "300.1.1.1"])
def test_only_a_literal_address_is_taken(address: str) -> None:
    with pytest.raises(Refused, match="literal IPv4"):
        literal(address)


def test_what_is_exported_may_be_added_to_any_tor_of_ours() -> None:
    """The lines pass the same check as an owner's bridges, and name no folder, port to open, log or service."""
    lines = torrcs.joining(layout("10.9.8.7"), IDENTITY, FINGERPRINT)
    assert checked_extra("\n".join(lines)) == lines
    assert lines[1] == f"DirAuthority authority orport=20001 v3ident={IDENTITY} 10.9.8.7:20000 {FINGERPRINT}"


def test_relays_listen_where_they_are_told_and_let_nothing_out() -> None:
    there = layout("10.9.8.7")
    lines = torrcs.joining(there, IDENTITY, FINGERPRINT)
    for relay in there.relays:
        text = torrcs.relay_torrc(relay, lines).splitlines()
        assert f"ORPort 10.9.8.7:{relay.or_port}" in text
        assert {"SocksPort 0", "ExitPolicy reject *:*", "ExitRelay 0", "TestingTorNetwork 1"} <= set(text)
        assert not any(line.startswith("AuthoritativeDirectory") for line in text)
    authority = torrcs.authority_torrc(there, lines, votes(0, 0.0)).splitlines()
    assert {"AuthoritativeDirectory 1", "DirPort 10.9.8.7:20000", "TestingV3AuthVotingStartOffset 8"} <= set(authority)


@pytest.mark.parametrize("attempt", range(len(LEADS) + 1))
@pytest.mark.parametrize("now", [0.0, 3.9, 1_795_251_359.99, 1_795_251_341.0])
def test_the_first_vote_falls_after_the_descriptors_and_none_falls_before_it(attempt: int, now: float) -> None:
    """Valid-after is the next second that is `offset` modulo `interval`; voting begins four seconds earlier."""
    clock = votes(attempt, now)
    valid_after = next(
        second for second in range(int(now) + 1, int(now) + 100) if second % clock.interval == clock.offset
    )
    assert clock.lead - 1 < valid_after - now <= clock.lead
    assert valid_after - VOTING - now > 2.9, "descriptors take about 1.5 s"
    assert valid_after - clock.interval - VOTING < now, "an earlier vote would decide without the relays"
    assert 1800 % clock.interval == 0


def test_later_attempts_leave_more_time() -> None:
    leads = [votes(attempt, 0.0).lead for attempt in range(4)]
    assert leads == sorted(leads)
    assert leads[0] < leads[1] < leads[2] == leads[3]


def test_a_relay_is_missed_unless_it_runs_and_keeps_service_descriptors() -> None:
    listed = (
        "r one AAAA BBBB 2026-01-01 00:00:00 127.0.0.1 1 0\ns Fast HSDir Running V2Dir Valid\n"
        "r two AAAA BBBB 2026-01-01 00:00:00 127.0.0.1 2 0\ns Fast Running V2Dir Valid\n"
        "r three AAAA BBBB 2026-01-01 00:00:00 127.0.0.1 3 0\ns HSDir Valid\n"
    )
    assert missing(listed, {"one", "two", "three", "four"}) == {"two", "three", "four"}
    assert missing("", {"one"}) == {"one"}


def test_ports_are_free_and_below_those_of_outgoing_connections() -> None:
    ports = free_ports("127.0.0.1", 40, os.urandom)
    assert len(set(ports)) == 40
    assert all(LOWEST <= port < HIGHEST for port in ports)


def test_a_port_that_somebody_listens_on_is_passed_over() -> None:
    taken, free = free_ports("127.0.0.1", 2, os.urandom)
    draws = iter((port - LOWEST).to_bytes(4, "big") for port in (taken, taken, free))
    with socket.create_server(("127.0.0.1", taken)):
        assert free_ports("127.0.0.1", 1, lambda _: next(draws)) == (free,)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(Refused, match="not an address of this machine"):
        free_ports("192.0.2.1", 1, os.urandom)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(Refused, match="other files"), NetworkState(tmp_path).owned():
        pass
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_folder_has_one_owner_and_forgets_a_dead_one(tmp_path: Path) -> None:
    state = NetworkState(tmp_path / "net")
    assert not state.is_owned()
    with state.owned():
        assert state.is_owned()
        (state.network / "relay1").mkdir(parents=True)
        with pytest.raises(Refused, match="already"), NetworkState(tmp_path / "net").owned():
            pass
        assert (state.network / "relay1").exists(), "the second one must not touch the first one's files"
    (state.network / "relay1").mkdir(parents=True)  # as after SIGKILL
    with state.owned():
        assert not state.network.exists()
    assert not state.is_owned()


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_another_user_put_there_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """In a temporary folder that all share another user makes it first, and names a process of ours to be ended."""
    there = tmp_path / "net"
    there.mkdir()
    (there / "network.json").write_text('{"phase": "ready", "pid": 1, "since": 1.0, "address": "x"}')
    if kind == "link":
        there.rename(tmp_path / "theirs")
        there.symlink_to(tmp_path / "theirs")
    else:
        monkeypatch.setattr(os, "getuid", lambda: there.stat().st_uid + 1)
    state = NetworkState(there)
    for asked in (state.told, state.is_owned, state.prepare, lambda: stop(state)):
        with pytest.raises(Refused, match="another user"):
            asked()


def test_memory_of_nobody_is_unknown() -> None:
    assert memory_of([]) is None
    own = memory_of([os.getpid()])
    assert own is None or 0 < own.pss <= own.rss <= own.peak
