"""A torrc of ours keeps our promises, and an owner may add certain lines only.

The program tor is looked for under the name that was set, then on the path.
"""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

import pytest

from anon.errors import Refused
from anon.route.tor import extra_lines, find_tor, torrc_of_client
from anon.route.tor.program import places
from anon.route.tor.torrc import checked_extra, owned_lines, quoted_path


def test_a_client_carries_onion_traffic_only_and_writes_no_log() -> None:
    lines = torrc_of_client(Path("/home/me/tor data"), ("UseBridges 1",)).splitlines()
    assert lines == [
        'DataDirectory "/home/me/tor data"',
        "SocksPort 127.0.0.1:auto OnionTrafficOnly IsolateSOCKSAuth ExtendedErrors",
        "SafeSocks 1",
        "ClientOnly 1",
        "MaxCircuitDirtiness 10",
        "Log notice stdout",
        "SafeLogging 1",
        "AvoidDiskWrites 1",
        "GeoIPFile /dev/null",
        "GeoIPv6File /dev/null",
        "UseBridges 1",
    ]


def test_the_owner_gets_a_socket_a_cookie_and_the_last_word() -> None:
    lines = owned_lines(Path("/a/control"), Path("/a/cookie"), 42)
    assert lines[0] == "ControlPort 0"
    assert "__OwningControllerProcess 42" in lines
    assert "CookieAuthentication 1" in lines


@pytest.mark.parametrize("path", ['/a"b', "/a\nSocksPort 9050", "/a\\b"])
def test_a_path_cannot_smuggle_a_line(path: str) -> None:
    with pytest.raises(Refused, match="choose another --home"):
        torrc_of_client(Path(path), ())


def test_bridges_transports_and_private_networks_may_be_added() -> None:
    text = """
# my bridge
Bridge obfs4 192.0.2.1:443 0123456789ABCDEF0123456789ABCDEF01234567 cert=abc iat-mode=0
UseBridges 1
  ClientTransportPlugin obfs4 exec /usr/bin/obfs4proxy
TestingTorNetwork 1
DirAuthority one orport=1 v3ident=A 127.0.0.1:2 B
"""
    assert [line.split()[0] for line in checked_extra(text)] == [
        "Bridge",
        "UseBridges",
        "ClientTransportPlugin",
        "TestingTorNetwork",
        "DirAuthority",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "SocksPort 9050", "socksport 9050", "SocksPo 9050", "+SocksPort 9050", "/SocksPort", "ControlPort 9051",
        "ControlSocket /tmp/x", "DataDirectory /tmp", "Log notice file /tmp/log", "Log debug stdout",
        "HiddenServiceDir /tmp/x", "HiddenServicePort 80", "HiddenServiceNonAnonymousMode 1", "TransPort 9040",
        "NATDPort 1", "DNSPort 53", "HTTPTunnelPort 1", "ORPort 9001", "SafeLogging 0", "CookieAuthentication 0",
        "HashedControlPassword x", "PidFile /tmp/x", "User nobody", "%include /etc/tor/torrc", "SafeSocks 0",
        "__OwningControllerProcess 1", "CacheDirectory /tmp", "MapAddress a b", "AutomapHostsOnResolve 1",
        "RunAsDaemon 1", "ClientOnly 0", "DisableNetwork 1", "MetricsPort 1", "ExtORPort auto", "SyslogIdentityTag x",
        "UnixSocksGroupWritable 1",
    ],
)
def test_what_would_undo_our_promises_is_refused_by_name(line: str) -> None:
    with pytest.raises(Refused, match="ANONML_TORRC, line 2: ") as caught:
        checked_extra(f"UseBridges 1\n{line}\n")
    value = line.partition(" ")[2]
    assert not value or len(value) < 4 or value not in str(caught.value)


@pytest.mark.parametrize("line", ["Bridge", "UseBridges 1 \\", "Bridge\x00 x", "Bridge a\x07b", "  ; drop"])
def test_what_is_no_line_is_refused(line: str) -> None:
    with pytest.raises(Refused, match="on one line"):
        checked_extra(line)


def test_the_environment_is_read_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANONML_TORRC", raising=False)
    assert extra_lines() == ()
    place = tmp_path / "torrc"
    monkeypatch.setenv("ANONML_TORRC", str(place))
    with pytest.raises(Refused, match="cannot be read"):
        extra_lines()
    place.write_text("UseBridges 1\nBridge 127.0.0.1:1\n")
    assert extra_lines() == ("UseBridges 1", "Bridge 127.0.0.1:1")
    place.write_bytes(b"#" * 70_000)
    with pytest.raises(Refused, match="longer than"):
        extra_lines()
    place.write_bytes(b"\xff")
    with pytest.raises(Refused, match="cannot be read"):
        extra_lines()


def test_tor_is_found_by_name_then_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tor"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("ANONML_TOR", str(program))
    with pytest.raises(Refused, match="ANONML_TOR does not name a program"):
        find_tor()
    program.chmod(0o755)
    assert find_tor() == program
    monkeypatch.delenv("ANONML_TOR")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tor() == program


@pytest.mark.parametrize(("platform", "action"), [
    ("linux", "apt install tor"), ("win32", "install Tor Browser from torproject.org"),
])
def test_no_tor_has_one_next_action(
    platform: str, action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANONML_TOR", raising=False)
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr("sys.platform", platform)
    for named in ("_PLACES", "_WINDOWS_PLACES"):
        monkeypatch.setattr(f"anon.route.tor.program.{named}", (str(tmp_path / "tor"),))
    with pytest.raises(Refused, match=f"no-tor.*{action}"):
        find_tor()


@pytest.mark.parametrize(("platform", "expected"), [
    (
        "win32",
        [
            "Desktop/Tor Browser/Browser/TorBrowser/Tor/tor.exe",
            "C:/Users/ann/AppData/Local/Tor Browser/Browser/TorBrowser/Tor/tor.exe",
        ],
    ),
    ("darwin", ["/Applications/Tor Browser.app/Contents/MacOS/Tor/tor", "/opt/homebrew/bin/tor"]),
    (
        "linux",
        [
            "/usr/sbin/tor",
            "tor-browser/Browser/TorBrowser/Tor/tor",
            ".local/share/torbrowser/tbb/x86_64/tor-browser/Browser/TorBrowser/Tor/tor",
        ],
    ),
])
def test_tor_is_looked_for_where_tor_browser_puts_it(platform: str, expected: list[str]) -> None:
    found = [path.as_posix() for path in places(platform, {"LOCALAPPDATA": "C:/Users/ann/AppData/Local"})]
    assert all(any(path.endswith(one) for path in found) for one in expected)
    assert not any("$" in path or "~" in path for path in found)
    assert any(path.endswith(".exe") for path in found) == (platform == "win32")


def test_tor_browsers_tor_is_taken_where_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "Tor Browser" / "Browser" / "TorBrowser" / "Tor" / "tor.exe"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.delenv("ANONML_TOR", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setattr("anon.route.tor.program.sys.platform", "win32")
    assert find_tor() == program


def test_without_unix_sockets_the_control_file_names_a_port_and_slashes_are_written(tmp_path: Path) -> None:
    lines = owned_lines(tmp_path / "control", tmp_path / "cookie", 7, sockets=False)
    assert "ControlPort 127.0.0.1:auto" in lines and f"ControlPortWriteToFile {tmp_path}/control" in lines
    assert "CookieAuthentication 1" in lines and not any(line.startswith("ControlSocket") for line in lines)
    assert quoted_path(PureWindowsPath(r"C:\Users\Ann B\tor")) == '"C:/Users/Ann B/tor"'  # type: ignore[arg-type]
