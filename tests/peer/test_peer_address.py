"""An aggregator that hands each person an onion address of their own: found before anything about the owner leaves."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import define, evolve, field

from anon.errors import Malformed, Refused, Unreachable
from anon.protocols.resolve import StudyKeys, resolve
from anon.route import Response
from anon.wire.invite import Invite
from anon.wire.onion_address import onion_host
from peer.app import PeerApp
from peer.network.client import AggregatorClient, drawn_evenly
from peer.network.seen_chains import unheld
from peer.predict import fetch_model
from peer.rules.lifecycle import State
from peer.store.database.integrity import write_digest
from tests.support.fake_aggregator import DECLARED, FakeAggregator, advance, peer, reopened
from tests.support.protocols import parse_proposal
from tests.support.routes import Ask, Exchanges, Status, onward

HONEST, OWN, *FURTHER = (f"{onion_host(bytes([number] * 32))}:80" for number in range(1, 9))
EIGHT = (HONEST, *FURTHER, f"{onion_host(bytes(32))}:80")


@define
class Liar(Exchanges):
    """One aggregator behind as many addresses as it likes; `came` is what arrived at each."""

    aggregator: FakeAggregator
    came: list[tuple[str, str]] = field(factory=list)

    async def exchange(self, ask: Ask) -> Response:
        self.came.append((ask.address, ask.kind))
        return await onward(self.aggregator, ask)

    def invite(self, address: str) -> Invite:
        """The same study and fingerprint, at this address."""
        return evolve(self.aggregator.invite, address=address)


def served_at(address: str) -> FakeAggregator:
    """A published study that names this address, or several as manifests spell them."""
    aggregator = FakeAggregator.with_study(DECLARED)
    old = aggregator.manifest
    keys = StudyKeys(old.aggregator_key, old.sealing_key, old.credential_key, old.seed_commitment)
    manifest = resolve(parse_proposal(DECLARED), keys, int(aggregator.clock()), address=address)
    found = FakeAggregator(
        manifest, aggregator.key, aggregator.sealing, aggregator.issuer, aggregator.value, aggregator.clock
    )
    found.publish("manifest", manifest.to_bytes())
    return found


def facing(tmp_path: Path, liar: Liar) -> PeerApp:
    """A peer whose route is the liar."""
    app = peer(tmp_path, liar.aggregator)
    app._route_factory = lambda: liar
    return app


@pytest.mark.parametrize("named", [HONEST, ""], ids=["another", "none"])
@pytest.mark.parametrize("address", [OWN, "me.example.org:80", "10.0.0.1:80"])
async def test_an_address_of_ones_own_is_refused_before_consent(tmp_path: Path, named: str, address: str) -> None:
    liar = Liar(served_at(named))
    app = facing(tmp_path, liar)
    for act in (app.look, lambda invite: app.join(invite, liar.aggregator.manifest.epsilon)):
        with pytest.raises(Refused, match=r"[nN]othing about you was sent") as refused:
            await act(liar.invite(address))
        assert address in str(refused.value) and named in str(refused.value)
        assert "\n" not in str(refused.value)
    assert {what for _, what in liar.came} == {"get"}
    assert app.status() == [] and app.budget().entries == ()


async def test_a_study_that_was_looked_at_elsewhere_is_judged_again(tmp_path: Path) -> None:
    liar = Liar(served_at(HONEST))
    app = facing(tmp_path, liar)
    assert (await app.look(liar.invite(HONEST))).addresses == (HONEST,)
    with pytest.raises(Refused, match="mark all you send"):
        await app.join(liar.invite(OWN), liar.aggregator.manifest.epsilon)
    assert app.status() == []


@pytest.mark.parametrize("named", [HONEST, ""], ids=["onion", "loopback only"])
async def test_this_machine_itself_is_no_mark(tmp_path: Path, named: str) -> None:
    liar = Liar(served_at(named))
    app = facing(tmp_path, liar)
    await app.join(liar.aggregator.invite, liar.aggregator.manifest.epsilon)
    assert [one.state for one in app.status()] == [State.CONSENTED]


async def test_everything_goes_to_the_named_address(tmp_path: Path) -> None:
    liar = Liar(served_at(HONEST))
    aggregator, app = liar.aggregator, facing(tmp_path, liar)
    aggregator.crowd(5)
    await app.join(liar.invite(HONEST), aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.close()
    await advance(app, aggregator, aggregator.manifest.timetable.ends)
    aggregator.transcribe()
    await advance(app, aggregator)
    assert aggregator.accepted
    assert {address for address, _ in liar.came} == {HONEST}


async def _whole_life(tmp_path: Path, liar: Liar, address: str) -> FakeAggregator:
    aggregator, app = liar.aggregator, facing(tmp_path, liar)
    aggregator.crowd(5)
    await app.look(liar.invite(address))
    await app.join(liar.invite(address), aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.close()
    await advance(app, aggregator, aggregator.manifest.timetable.ends)
    aggregator.transcribe()
    await advance(app, aggregator)
    return aggregator


async def test_each_exchange_goes_to_one_of_the_named_addresses(tmp_path: Path) -> None:
    """The first contact, which reads the manifest, goes to the link's alone."""
    liar = Liar(served_at(" ".join(EIGHT)))
    aggregator = await _whole_life(tmp_path, liar, HONEST)
    assert aggregator.accepted
    first, later = liar.came[0], [address for address, _ in liar.came[1:]]
    assert first == (HONEST, "get")
    assert len(later) >= 6 and len(set(later)) > 1 and set(later) <= set(EIGHT)


async def test_a_link_to_this_machine_leads_to_no_onion_address(tmp_path: Path) -> None:
    liar = Liar(served_at(" ".join(EIGHT)))
    await _whole_life(tmp_path, liar, liar.aggregator.invite.address)
    assert {address for address, _ in liar.came} == {liar.aggregator.invite.address}


@pytest.mark.parametrize("address", EIGHT)
async def test_a_link_may_lead_to_any_of_the_named_addresses_and_to_no_other(tmp_path: Path, address: str) -> None:
    liar = Liar(served_at(" ".join(EIGHT)))
    app = facing(tmp_path, liar)
    assert (await app.look(liar.invite(address))).addresses == EIGHT
    with pytest.raises(Refused, match="mark all you send"):
        await app.join(liar.invite(OWN), liar.aggregator.manifest.epsilon)


def _client(random_bytes: Callable[[int], bytes]) -> AggregatorClient:
    aggregator = served_at(" ".join(EIGHT[:3]))
    client = AggregatorClient(evolve(aggregator.invite, address=HONEST), Status(200), random_bytes)
    return client.serving(aggregator.manifest)


def test_draws_are_even_and_depend_on_no_peer_and_on_no_draw_before() -> None:
    """Of 20 peers, 600 draws each. Chi-square at level 1e-6 for: all draws (3 addresses), each peer's, and pairs of
    draws that follow one another (9 pairs)."""
    random = Random(5)
    counts, pairs, worst = Counter[str](), Counter[tuple[str, str]](), 0.0
    for _ in range(20):
        client = _client(random.randbytes)
        drawn = [client._drawn_address() for _ in range(600)]
        worst = max(worst, chi_square(Counter(drawn), 3))
        counts.update(drawn)
        pairs.update(pairwise(drawn))
    assert worst < 33.7, "2 degrees of freedom, level 1e-6 / 20"
    assert chi_square(counts, 3) < 27.7
    assert chi_square(pairs, 9) < 42.8


def chi_square(counts: Mapping[Any, int], cells: int) -> float:
    """Of equal probabilities; every cell was seen."""
    expected = sum(counts.values()) / cells
    assert len(counts) == cells
    return sum((seen - expected) ** 2 / expected for seen in counts.values())


def test_bytes_that_would_favour_an_address_are_drawn_again() -> None:
    drawn = Counter[str]()
    for byte in range(256):
        given = iter([bytes([byte]), b"\x01"])
        drawn[drawn_evenly("abc", lambda _, given=given: next(given))] += 1  # type: ignore[misc]
    assert drawn == {"a": 85, "b": 86, "c": 85}, "byte 255 alone took a second one, which was 1"


async def test_every_exchange_asks_the_systems_randomness_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer's client of before, a client of the same study made again, and a retry: none keeps an address."""
    asked: list[int] = []

    def random_bytes(size: int) -> bytes:
        asked.append(size)
        return os.urandom(size)

    client = _client(random_bytes)
    for number in range(1, 6):
        before = len(asked)
        with pytest.raises(Malformed):
            await client.opening(unheld)
        assert len(asked) > before, number
    assert AggregatorClient.__attrs_attrs__.random_bytes.default is os.urandom


@pytest.mark.parametrize("leaving", [False, True])
async def test_a_study_joined_earlier_sends_nothing_elsewhere(tmp_path: Path, leaving: bool) -> None:
    """As a version before this one stored it: consented, at an address that the manifest does not name."""
    liar = Liar(served_at(""))
    aggregator, app = liar.aggregator, facing(tmp_path, liar)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    with closing(sqlite3.connect(app._home.store_path)) as store, store:
        store.execute("UPDATE studies SET address = ?", (OWN,))
        write_digest(store)
    app = reopened(app._home, aggregator)
    app._route_factory = lambda: liar
    liar.came.clear()
    if leaving:
        await app.leave(aggregator.study)
    await advance(app, aggregator)
    assert liar.came == [], "something went to an address of one's own"
    (status,) = app.status()
    assert status.state is (State.WITHDRAWN if leaving else State.STOPPED)
    assert "names no onion address" in status.reason and status.reserved == 0


async def test_a_model_is_not_fetched_for_an_address_of_ones_own(tmp_path: Path) -> None:
    liar = Liar(served_at(HONEST))
    with pytest.raises(Refused, match="mark all you send"):
        await fetch_model(AggregatorClient(liar.invite(OWN), liar), unheld)
    with pytest.raises(Refused, match="no model is published yet"):
        await fetch_model(AggregatorClient(liar.invite(HONEST), liar), unheld)


@pytest.mark.parametrize(("status", "said"), [(404, "another aggregator may answer"), (503, "try again later")])
async def test_a_study_unknown_at_the_address_may_be_anothers_address(status: int, said: str) -> None:
    invite = served_at(HONEST).invite
    with pytest.raises(Unreachable, match=said):
        await AggregatorClient(invite, Status(status)).opening(unheld)


def test_the_liar_cannot_name_two_addresses_under_one_fingerprint() -> None:
    honest, own = served_at(HONEST), served_at(OWN)
    again = evolve(honest.manifest, address=OWN)
    assert len({honest.study, own.study, again.study_id, evolve(again, address="").study_id}) == 4
