"""Keys, phones, the folder and the command, without tor: what is drawn, what is stored, what outlives a kill."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from typer.testing import CliRunner

from anon.errors import Malformed, Refused
from anon.wire.onion_address import onion_host
from anonml import application
from peer.app import PeerApp
from peer.pairing.client_key import ClientKey, draw_client_key
from peer.pairing.listener import PhoneListener
from peer.pairing.onion import PhoneOnion, torrc_of_pairing
from peer.pairing.phones import MOST_PHONES, PhoneGate, PhoneRecord
from peer.pairing.service import TIME_OVER, Pairing, _Standing
from peer.pairing.state import PairingFolder, PairingState, Wishes
from peer.store.home import PeerHome
from tests.support.patience import PATIENCE

HOST = onion_host(bytes(32))
STATE = PairingState(1.0, 901.0, (PhoneRecord(1, "phone", 2.0, 3.0), PhoneRecord(2, "tablet", revoked=True)))


def test_a_key_is_a_clamped_x25519_key_as_tor_spells_it() -> None:
    key = draw_client_key(os.urandom)
    assert key.secret[0] & 7 == 0 and key.secret[31] & 0xC0 == 0x40
    public = X25519PrivateKey.from_private_bytes(key.secret).public_key().public_bytes_raw()
    assert key.public_text() == base64.b32encode(public).decode().rstrip("=") and len(key.public_text()) == 52
    assert base64.b32decode(key.secret_text() + "====") == key.secret
    assert key.file_line(HOST) == f"{HOST[:56]}:descriptor:x25519:{key.secret_text()}"
    assert key.address(HOST) == f"http://{HOST}/?key={key.secret_text()}"
    assert key.secret_text() not in repr(key)
    with pytest.raises(ValueError, match="32"):
        ClientKey(bytes(31))


def test_every_phone_has_a_key_and_a_link_of_its_own_and_every_pairing_others() -> None:
    gates = [PhoneGate(("a", "b"), os.urandom, lambda: 1.0) for _ in range(2)]
    phones = [phone for gate in gates for phone in gate.phones]
    assert len({one.key.secret for one in phones}) == len({one.token for one in phones}) == 4
    assert not [one for one in phones if one.token in repr(one) or one.key.secret_text() in repr(one)]


@pytest.mark.parametrize("names", [
    (), ("a",) * (MOST_PHONES + 1), ("phone", "Phone"), ("",), (" x",), ("a\nb",), ("a/b",), ("x" * 41,), ("-x",),
    ("a[red]",), ("b", "1"),
])
def test_names_that_cannot_be_told_apart_or_shown_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match="--name"):
        PhoneGate(names, os.urandom, lambda: 1.0)


def test_a_used_link_is_not_shown_again() -> None:
    gate = PhoneGate(("a",), os.urandom, lambda: 1.0)
    assert gate.exchange(gate.link("http://x").partition("token=")[2]) is not None
    with pytest.raises(Refused, match="was used"):
        gate.link("http://x")


async def test_no_service_is_made_for_nobody() -> None:
    """Without a client key tor would make one that everybody finds."""
    with pytest.raises(Refused, match="open to everybody"):
        await PhoneOnion(None, Path("/x")).open(())  # type: ignore[arg-type]


def test_pairings_tor_listens_to_nobody_but_its_owner() -> None:
    lines = torrc_of_pairing(Path("/home/x/tor"), ["Bridge x"]).splitlines()
    assert (
        "SocksPort 0" in lines
        and "DataDirectory /home/x/tor" in lines
        and lines.index("Bridge x") > lines.index("ClientOnly 1")
    )


# The folder


def test_what_is_stored_is_read_again_by_its_owner_alone(tmp_path: Path) -> None:
    folder = PairingFolder(tmp_path / "pairing")
    assert folder.state() is None and not folder.on()
    with folder.held():
        folder.write(STATE)
        assert folder.state() == STATE
        assert (folder.path / "state.json").stat().st_mode & 0o777 == 0o600
        assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "state.json").write_text("{")
    with pytest.raises(Exception, match=r"state\.json"):
        folder.state()


@pytest.mark.slow
def test_one_pairing_at_a_time_and_off_when_it_ends(tmp_path: Path) -> None:
    folder = PairingFolder(tmp_path / "pairing")
    with folder.held():
        assert PairingFolder(folder.path).on()
        with pytest.raises(Refused, match="on already"), PairingFolder(folder.path).held():
            pass
    assert not folder.on()


def test_wishes_are_heard_by_the_pairing_that_is_on_and_by_no_later_one(tmp_path: Path) -> None:
    folder = PairingFolder(tmp_path / "pairing")
    for wish in (folder.wish_off, lambda: folder.wish_revoked(1)):
        with pytest.raises(Refused, match="off"):
            wish()
    with folder.held():
        assert folder.wishes() == Wishes()
        folder.wish_revoked(2)
        folder.wish_revoked(2)
        folder.wish_off()
        assert folder.wishes() == Wishes(True, frozenset({2}))
    with folder.held():
        assert folder.wishes() == Wishes()


_HOLDING = """
import sys, time
from pathlib import Path
from peer.pairing.state import PairingFolder
folder = PairingFolder(Path(sys.argv[1]))
with folder.held():
    (folder.path / "incoming" / "x").mkdir(parents=True)
    (folder.path / "incoming" / "x" / "diary.csv").write_text("secret")
    (folder.path / "sock").touch()
    print("held", flush=True)
    time.sleep(60)
"""


def test_after_a_kill_pairing_is_off_and_the_next_one_removes_what_was_left(tmp_path: Path) -> None:
    folder = PairingFolder(tmp_path / "pairing")
    process = subprocess.Popen([sys.executable, "-c", _HOLDING, str(folder.path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n" and folder.on()
    folder.wish_off()
    process.kill()
    process.communicate()
    assert not folder.on()
    with folder.held():
        assert not (folder.path / "incoming").exists() and not (folder.path / "sock").exists()
        assert folder.wishes() == Wishes()


@pytest.mark.parametrize("name", ["x" * 90, "with blank", "späte"])
def test_a_path_that_tor_cannot_spell_gets_a_private_folder_instead(tmp_path: Path, name: str) -> None:
    folder = PairingFolder(tmp_path / name)
    with folder.held(), folder.socket() as socket:
        assert folder.path not in socket.parents and socket.parent.stat().st_mode & 0o777 == 0o700
    assert not socket.parent.exists()


# The command


def _pair(home: Path, *words: str) -> object:
    return CliRunner().invoke(application("peer"), ["pair", "--home", str(home), *words])


def test_without_pairing_there_is_nothing_to_list_revoke_or_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    listed = _pair(home, "--list")
    assert listed.exit_code == 0 and listed.output == "pairing is off\n" and not home.exists()
    for words in (["--off"], ["--revoke", "phone"], ["--list", "--off"]):
        assert isinstance(_pair(home, *words).exception, Refused), words


def test_a_pairing_that_is_over_is_listed_as_over(tmp_path: Path) -> None:
    folder = PairingFolder(tmp_path / "home" / "pairing")
    with folder.held():
        folder.write(STATE)
        assert "pairing is on until" in _pair(tmp_path / "home", "--list").output
    said = _pair(tmp_path / "home", "--list").output
    assert "pairing is off" in said and "1 phone: paired; came in" in said and "2 tablet: revoked" in said
    assert isinstance(_pair(tmp_path / "home", "--revoke", "phone").exception, Refused)


@pytest.mark.parametrize("words", [["--minutes", "0"], ["--minutes", "121"], ["--minutes", "x"]])
def test_the_time_limit_is_bounded(tmp_path: Path, words: list[str]) -> None:
    assert _pair(tmp_path / "home", *words).exit_code == 2


def test_what_is_no_invite_or_name_is_refused_before_tor_starts(tmp_path: Path) -> None:
    assert isinstance(_pair(tmp_path / "home", "nonsense").exception, Malformed)
    assert isinstance(_pair(tmp_path / "home", "--name", "a", "--name", "A").exception, Refused)


@pytest.mark.slow
async def test_a_tor_that_does_not_answer_lengthens_nothing(tmp_path: Path) -> None:
    """One phone is revoked, and taking its key off hangs; the other's time is over all the same."""
    folder = PairingFolder(tmp_path / "pairing")
    gate = PhoneGate(("a", "b"), os.urandom, time.time)

    async def never(_keys: object) -> None:
        await asyncio.sleep(60)

    onion = cast(PhoneOnion, SimpleNamespace(narrow=never, alive=True))
    listener = cast(PhoneListener, SimpleNamespace(cut_off=lambda _number: None))
    pairing = Pairing(cast(PeerApp, None), PeerHome(tmp_path), ("a", "b"), 1.0, lambda _offers: None)
    with folder.held():
        folder.wish_revoked(1)
        standing = _Standing(folder, gate, onion, listener, "x.onion")
        assert await asyncio.wait_for(pairing._until_over(standing, asyncio.Event()), PATIENCE) == TIME_OVER
