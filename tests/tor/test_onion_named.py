"""The one address that a study names: chosen at publishing, given out in links, and the only one served as its own."""

import asyncio
import os
from pathlib import Path

import pytest
from attrs import evolve

from aggregator.app import AggregatorApp
from aggregator.network.onion_address import address_of_links, onion_addresses
from aggregator.store.home import open_home
from anon.errors import Malformed, Refused
from anon.serving.onion_key import draw_key, keep_key, keep_keys, kept_key
from anon.wire.cbor import decode, encode
from anon.wire.onion_address import onion_host
from tests.support.command_line import anonml, attempt
from tests.support.onion_commands import onion_study
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.studies import ONE_PACKET

STUDY = onion_study("Named", ONE_PACKET, enrol=600, settle=6, collect=60)
OTHER = f"{onion_host(bytes(32))}:80"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A study file."""
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


@pytest.mark.process
async def test_publishing_draws_the_key_and_names_its_address(tmp_path: Path, file: Path) -> None:
    home = tmp_path / "staff"
    published = await anonml("study", "publish", file, "--home", home)
    key = kept_key(home)
    assert key is not None and published["address"] == key.address()
    (link,) = await anonml("aggregator", "invite", "--home", home)
    assert link.startswith(f"anonml://{key.address()}/")
    refused = await attempt("aggregator", "invite", "--home", home, "--address", OTHER)
    assert refused.code != 0 and key.address() in refused.err, refused
    (local,) = await anonml("aggregator", "invite", "--home", home, "--address", "127.0.0.1:1")
    assert local.startswith("anonml://127.0.0.1:1/")


@pytest.mark.process
async def test_the_same_title_again_is_published_with_a_caution(tmp_path: Path, file: Path) -> None:
    words = ("study", "publish", file, "--loopback", "--home", tmp_path / "staff")
    first, again = await attempt(*words), await attempt(*words)
    assert first.code == again.code == 0 and "caution" not in first.err
    assert "a study of this title is open already" in " ".join(again.err.split())


@pytest.mark.process
async def test_loopback_names_none_and_another_tor_is_named(tmp_path: Path, file: Path) -> None:
    home = tmp_path / "staff"
    assert (await anonml("study", "publish", file, "--loopback", "--home", home))["address"] == ""
    assert kept_key(home) is None
    (link,) = await anonml("aggregator", "invite", "--home", home)
    assert link.startswith("anonml://127.0.0.1:8750/")
    assert (await anonml("study", "publish", file, "--address", OTHER, "--home", home))["address"] == OTHER
    for words in (["--address", OTHER, "--loopback"], ["--address", "example.org:80"], ["--address", "x" + OTHER]):
        refused = await attempt("study", "publish", file, "--home", home, *words)
        assert "--address" in refused.err and refused.code != 0, words


async def test_old_manifests_parse_and_none_has_one_spelling(tmp_path: Path) -> None:
    async with AggregatorApp(tmp_path / "staff") as app:
        old = (await app.create_study(parse_proposal(STUDY))).to_bytes()
        new = (await app.create_study(parse_proposal(STUDY), OTHER)).to_bytes()
    assert b"address" not in old and parse_manifest(old).address == ""
    assert parse_manifest(new).address == OTHER
    plain = decode(old, "manifest")
    assert isinstance(plain, dict)
    for address in ("", "127.0.0.1:80", "example.org:80", OTHER.replace(":80", ":81"), OTHER.upper(), "x." + OTHER):
        with pytest.raises(Malformed):
            parse_manifest(encode({**plain, "address": address}))
    with pytest.raises(ValueError, match="address"):
        evolve(parse_manifest(old), address="nowhere")


def test_a_passing_address_is_named_while_it_is_served_and_no_longer(tmp_path: Path) -> None:
    home = open_home(tmp_path / "staff", os.urandom)
    passing = draw_key(os.urandom).address()
    assert home.served_at() == ""
    with home.place(passing):
        assert onion_addresses(home, os.urandom) == passing
        assert kept_key(home.path) is None
    assert home.served_at() == "", "what is left in the file is not believed"
    with home.place("127.0.0.1:8750"):
        assert home.served_at() == "127.0.0.1:8750"
        assert onion_addresses(home, os.urandom) == keep_key(home.path, os.urandom).address()


def test_several_addresses_are_named_as_they_are_kept_or_served(tmp_path: Path) -> None:
    home = open_home(tmp_path / "staff", os.urandom)
    first = onion_addresses(home, os.urandom)
    assert len(first.split(" ")) == 1, "one, unless more are asked for"
    three = onion_addresses(home, os.urandom, 3)
    assert three.startswith(first + " ") and len(set(three.split(" "))) == 3
    assert (
        onion_addresses(home, os.urandom)
        == three
        == " ".join(key.address() for key in keep_keys(home.path, os.urandom))
    )
    assert onion_addresses(home, os.urandom, 2) == " ".join(three.split(" ")[:2])
    passing = " ".join(draw_key(os.urandom).address() for _ in range(2))
    with home.place(passing):
        assert onion_addresses(home, os.urandom) == passing
        assert onion_addresses(home, os.urandom, 1) == passing.split(" ")[0]
        with pytest.raises(Refused, match="2 onion addresses are served now; stop, and serve with --onions 3 first"):
            onion_addresses(home, os.urandom, 3)


def test_all_links_to_a_study_have_one_address() -> None:
    """That of the study which is served; whatever else is."""
    one, two, three = (f"{onion_host(bytes([number] * 32))}:80" for number in range(3))
    named = f"{one} {two}"
    assert (
        address_of_links("", named) == address_of_links(f"{two} {one}", named) == address_of_links(three, named) == one
    )
    assert address_of_links(f"{three} {two}", named) == two
    assert address_of_links("127.0.0.1:8750", named) == "127.0.0.1:8750"
    assert address_of_links("", "") == address_of_links(three, "") == ""


@pytest.mark.process
async def test_publishing_names_several_and_invites_lead_to_the_first(tmp_path: Path, file: Path) -> None:
    home = tmp_path / "staff"
    published = await anonml("study", "publish", file, "--onions", "2", "--home", home)
    kept = [key.address() for key in keep_keys(home, os.urandom)]
    assert published["addresses"] == kept and published["address"] == kept[0] and len(kept) == 2
    (link,) = await anonml("aggregator", "invite", "--home", home)
    assert link.startswith(f"anonml://{kept[0]}/")
    words = ("study", "publish", file, "--home", home, "--address", OTHER)
    assert (await anonml(*words, "--address", kept[1]))["addresses"] == [OTHER, kept[1]]
    for more in (["--address", OTHER], ["--onions", "2"], ["--loopback"]):
        assert (await attempt(*words, *more)).code != 0, more


async def test_serving_another_address_than_a_study_names_is_refused(tmp_path: Path) -> None:
    async with AggregatorApp(tmp_path / "staff") as app:
        named = keep_key(app.home.path, os.urandom).address()
        manifest = await app.create_study(parse_proposal(STUDY), named)
        passing = draw_key(os.urandom)
        with pytest.raises(Refused, match="without --ephemeral") as refused:
            await asyncio.wait_for(app.serve_onion(lambda home: (passing,)), 20)
        assert named in str(refused.value) and passing.address() in str(refused.value)
        assert not (app.home.path / "tor").exists(), "no tor was started for it"
        await app.create_study(parse_proposal(STUDY), passing.address())
        app._demand_named((passing.address(),))  # one study is served there, and of the other it is said that it is not
        with pytest.raises(Refused, match="nowhere else"):
            await app.create_invites(manifest.study_id, 1, passing.address())
