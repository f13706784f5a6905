"""Onion addresses in invites, and the key that an aggregator's address is made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aggregator.store.home import backup, open_home, restore
from anon.errors import Malformed
from anon.serving.onion_key import ONION_KEYS, OnionKey, draw_key, keep_key, keep_keys, kept_key, parse_key
from anon.serving.onion_service import leave_socket, socket_of
from anon.wire.invite import Invite, parse_invite
from anon.wire.onion_address import is_onion, onion_fault, onion_host

# Addresses that are in public use: the Tor Project's and DuckDuckGo's.
REAL = [
    "2gzyxa5ihm7nsggfxnu52rck2vv4rvmdlkiu3zzui5du4xyclen53wid.onion",
    "duckduckgogg42xjoc72x3sjasowoarfbgcmvfimaftt6twagswzczad.onion",
]
# RFC 8032, section 7.1, test 1.
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")


@pytest.mark.parametrize("host", REAL)
def test_real_addresses_are_accepted(host: str) -> None:
    assert onion_fault(host) == ""
    assert Invite(f"{host}:80", bytes(32), bytes(32)).address == f"{host}:80"


@pytest.mark.parametrize(
    ("host", "fault"),
    [
        (REAL[0].replace("wid.", "wib."), "version|checksum"),
        ("3" + REAL[0][1:], "checksum"),
        (REAL[0].upper().replace(".ONION", ".onion"), "lower-case"),
        ("you." + REAL[0], "without a subdomain"),
        (REAL[0] + ".", "lower-case characters"),
        ("expyuzz4wqqyqhjn.onion", "56"),
        ("1" + REAL[0][1:], "character that none has"),
        (".onion", "56"),
    ],
)
def test_every_other_spelling_is_refused(host: str, fault: str) -> None:
    assert is_onion(host)
    with pytest.raises(Malformed, match=fault):
        Invite(f"{host}:80", bytes(32), bytes(32))


@pytest.mark.parametrize("port", ["81", "080", "0"])
def test_a_port_cannot_mark_a_link(port: str) -> None:
    with pytest.raises(Malformed, match="port 80"):
        parse_invite(f"anonml://{REAL[0]}:{port}/{'00' * 32}?key={'00' * 32}")


def test_loopback_links_stay_as_they_were() -> None:
    for address in ("127.0.0.1:8750", "[::1]:9"):
        assert parse_invite(Invite(address, bytes(32), bytes(32)).link()).address == address


def test_the_address_is_the_public_half() -> None:
    key = draw_key(lambda size: SEED[:size])
    assert key.address() == f"{onion_host(PUBLIC)}:80"
    assert parse_key(key.text() + "\n") == key
    assert repr(key) == "OnionKey()"


@pytest.mark.parametrize(
    "text", ["", "ED25519-V3:", "ED25519-V3:AAAA", "RSA1024:" + "A" * 88, "x ED25519-V3:" + "A" * 86 + "==", "\ufffd"]
)
def test_a_damaged_key_says_what_to_do(text: str) -> None:
    with pytest.raises(Malformed, match="restore the backup"):
        parse_key(text)
    with pytest.raises(Malformed):
        OnionKey(bytes(64))


def test_the_key_is_drawn_once_kept_private_and_backed_up(tmp_path: Path) -> None:
    home = tmp_path / "home"
    open_home(home, os.urandom)
    assert kept_key(home) is None
    key = keep_key(home, os.urandom)
    assert keep_key(home, os.urandom) == kept_key(home) == key
    assert (home / "onion.key").stat().st_mode & 0o777 == 0o600
    backup(home, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "other")
    assert kept_key(tmp_path / "other") == key


def test_each_of_several_keys_is_drawn_once_kept_private_and_backed_up(tmp_path: Path) -> None:
    home = tmp_path / "home"
    open_home(home, os.urandom)
    first = keep_key(home, os.urandom)
    assert keep_keys(home, os.urandom) == (first,)
    eight = keep_keys(home, os.urandom, 8)
    assert len(set(eight)) == 8 and eight[0] == first
    assert keep_keys(home, os.urandom, 3) == eight[:3] and keep_keys(home, os.urandom) == eight
    assert {(home / name).stat().st_mode & 0o777 for name in ONION_KEYS} == {0o600}
    backup(home, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "other")
    assert keep_keys(tmp_path / "other", os.urandom) == eight
    for name in ONION_KEYS[:1] + ONION_KEYS[2:]:
        (tmp_path / "other" / name).unlink()
    assert keep_keys(tmp_path / "other", os.urandom) == eight[1:2], "a copy that has one key serves its address alone"
    (home / "onion-5.key").write_text("damaged")
    with pytest.raises(Malformed, match="restore the backup"):
        keep_keys(home, os.urandom)


def test_a_long_home_keeps_its_socket_elsewhere(tmp_path: Path) -> None:
    near, far = tmp_path / "a", tmp_path / ("b" * 120)
    near.mkdir()
    far.mkdir()
    assert socket_of(near).parent == near.resolve()
    elsewhere = socket_of(far)
    assert len(os.fsencode(elsewhere)) <= 100
    assert elsewhere.parent.stat().st_mode & 0o777 == 0o700
    leave_socket(elsewhere)
    assert not elsewhere.parent.exists()
    leave_socket(socket_of(near))
    assert near.exists()
