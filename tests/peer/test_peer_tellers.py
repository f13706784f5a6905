"""An owner sees who the tellers are, and what of it can be checked: names, words and addresses before the yes, words
that are remembered, a known name with other words, and no teller that stands twice."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from attrs import evolve

from anon.errors import InvalidValue, Malformed
from anon.ldp.epsilon import NANO
from anon.protocols.charge import Measure, Unit
from anon.sharing.arrangement import Arrangement, TellerEntry, parse_arrangement, parse_entry
from anon.study.manifest import Manifest
from anon.study.proposal import TellerPlace
from anon.teller.home import Place
from anon.transparency.fingerprint import teller_words
from anon.wire.addresses import TELLER_ADDRESS
from anon.wire.cbor import encode
from anon.wire.onion_address import onion_host
from peer.cli.equivocation import fingerprint
from peer.cli.show import sheet_json, show_sheet
from peer.data.readiness import own_data
from peer.rules.consent import ConsentSheet, Policy, explain
from peer.rules.ledger import Ledger
from peer.rules.limits import BudgetLimit
from tests.support.clock import START, Clock
from tests.support.fake_aggregator import FakeAggregator, peer
from tests.support.protocols import parse_proposal
from tests.support.sums import MOMENTS, countersigned, entry, manifest_of, opener, signing_key, sum_study
from tests.support.visiting import visited

ONION = onion_host(bytes([1]) * 32)
CHECK = "Each teller publishes its words itself, in a place that the aggregator does not control."
OTHER = "The teller “students” had other words in a study that you joined"


def words_of(number: int) -> str:
    return teller_words(bytes(signing_key(number).verify_key))


def told(offers: list[TellerEntry]) -> str:
    return "".join(
        f'[[tellers]]\nname = "{one.name}"\naddress = "{one.address}"\nentry = "{one.to_bytes().hex()}"\n'
        for one in offers
    )


def offer(number: int, name: str, address: str = "") -> TellerEntry:
    key = bytes(signing_key(number).verify_key)
    return TellerEntry(name, address or f"127.0.0.1:900{number}", key, opener(number).public_key, bytes([number]) * 32)


def sheet_of(manifest: Manifest, known: dict[str, list[bytes]] | None = None) -> ConsentSheet:
    return explain(manifest, Policy(), Ledger(10 * NANO, ()), START, "", known)


def shown(
    manifest: Manifest, folder: Path, capsys: pytest.CaptureFixture[str], known: dict[str, list[bytes]] | None = None
) -> str:
    capsys.readouterr()
    show_sheet(sheet_of(manifest, known), own_data(folder / "data.sqlite", manifest.tables), folder, queries=False)
    return " ".join(capsys.readouterr().out.split())


# Before the yes


@pytest.mark.slow
def test_the_terminal_shows_each_tellers_name_words_and_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = shown(manifest_of(MOMENTS), tmp_path, capsys)
    for number, name in enumerate(("clinic", "students")):
        assert f"Teller “{name}” at “127.0.0.1:900{number}”: {words_of(number)}" in said
    assert CHECK in said and "could run all of them under these names" in said and OTHER not in said


@pytest.mark.slow
def test_the_json_has_them_too(tmp_path: Path) -> None:
    manifest = manifest_of(MOMENTS)
    plain = sheet_json(sheet_of(manifest), own_data(tmp_path / "data.sqlite", manifest.tables))
    assert json.loads(json.dumps(plain))["tellers"][1] == {
        "name": "students",
        "words": words_of(1),
        "address": "127.0.0.1:9001",
        "known": False,
        "earlier": [],
    }
    assert any(CHECK in line for line in plain["statements"])


@pytest.mark.slow
async def test_the_page_has_them_before_the_question(tmp_path: Path) -> None:
    async with visited(tmp_path, sum_study(MOMENTS)) as page:
        page.aggregator.publish("tellers", countersigned(page.aggregator.manifest))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        words = (await page.get(page.invite)).words
    before, _, _after = words.partition("Do you take part?")
    for number, name in enumerate(("clinic", "students")):
        assert f"{name} 127.0.0.1:900{number} {words_of(number)}" in before
    assert CHECK in before and "Different words, or none to be found: count that teller as the aggregator's." in before


@pytest.mark.parametrize(
    ("spare", "rests"), [(False, "The promise rests on one of these"), (True, "The promise rests on two of these")]
)
def test_the_sentence_says_on_how_many_the_promise_rests(spare: bool, rests: str) -> None:
    from anon.protocols.consent_words import to_check

    assert to_check(spare)[0].startswith(rests)


# Remembered words


@pytest.mark.slow
async def test_a_yes_is_remembered_and_other_words_of_a_known_name_warn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = FakeAggregator.with_study(sum_study(MOMENTS, minimum=20), Clock(START))
    first.publish("tellers", countersigned(first.manifest))
    app = peer(tmp_path, first)
    app.set_policy(Policy(limits=(BudgetLimit(Measure.ZCDP, Unit.PERSON, NANO, NANO),)))
    assert [one.known for one in (await app.look(first.invite)).tellers] == [False, False]
    assert app.known_tellers() == {}
    await app.join(first.invite, first.manifest.epsilon)
    known = app.known_tellers()
    app.close()
    capsys.readouterr()
    fingerprint(home=tmp_path)
    said = " ".join(capsys.readouterr().out.split())
    assert "1 the tellers' signatures:" in said and "1 tellers:" not in said
    for number, name in enumerate(("clinic", "students")):
        assert f"teller “{name}”, words of its own, to compare with its own page: {words_of(number)}" in said
    fingerprint(home=tmp_path, as_json=True)
    assert [one["words"] for one in json.loads(capsys.readouterr().out)["tellers"]] == [words_of(0), words_of(1)]
    assert known == {"clinic": [bytes(signing_key(0).verify_key)], "students": [bytes(signing_key(1).verify_key)]}
    same = shown(first.manifest, tmp_path, capsys, known)
    assert same.count("with the words of before") == 2 and OTHER not in same
    for name in ("students", "Students ", "ＳＴＵＤＥＮＴＳ"):
        changed = manifest_of(MOMENTS, told([offer(0, "clinic"), offer(2, name)]))
        sheet = sheet_of(changed, known)
        assert [one.earlier for one in sheet.tellers] == [(), (words_of(1),)]
        assert any(
            "had other words in a study that you joined" in line and words_of(1) in line for line in sheet.statements
        )
    assert OTHER in shown(
        manifest_of(MOMENTS, told([offer(0, "clinic"), offer(2, "students")])), tmp_path, capsys, known
    )


@pytest.mark.slow
async def test_the_page_warns_beside_the_teller(tmp_path: Path) -> None:
    async with visited(tmp_path, sum_study(MOMENTS, told([entry(0, "clinic"), offer(2, "students")]))) as page:
        study = page.aggregator.manifest
        page.aggregator.publish("tellers", _signed(study, (0, 2)))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        with page.peer.store._writing("consent") as connection:
            connection.execute("INSERT INTO tellers VALUES ('students', ?)", (bytes(signing_key(1).verify_key),))
        words = (await page.get(page.invite)).words
    assert f"{words_of(2)} {OTHER}: {words_of(1)}" in words


def _signed(study: Manifest, keys: tuple[int, ...]) -> bytes:
    from anon.protocols.sum.standing import arrangement_of
    from anon.sharing.statements import Countersignature, arrangement_digest, encode_countersignatures

    digest = arrangement_digest(arrangement_of(study))
    said = [Countersignature(study.study_id, at, digest).sign(signing_key(key)) for at, key in enumerate(keys)]
    return encode_countersignatures(study.study_id, said)


# No teller twice


def test_one_address_twice_is_refused_where_a_study_is_written_and_where_a_peer_reads_it() -> None:
    offers = [offer(0, "clinic", f"{ONION}:80"), offer(1, "students", f"{ONION}:80")]
    with pytest.raises(Malformed, match="two at one address are one teller"):
        parse_proposal(sum_study(MOMENTS, told(offers)))
    _demand_refused(offers, "a different address for each")


OTHER_SPELLINGS = [
    *(
        f"{ONION}{rest}"
        for rest in ("", ":", ":81", ":080", ":+80", ":8_0", ":٨٠", " :80", ".:80", ":80 ", ":80/", ":80:80", ":65616")
    ),
    *(f"{before}{ONION}:80" for before in (" ", "www.", "user@", "user:80@", "http://", "//", "\u200b", ".")),
    f"{ONION.upper()}:80", f"{ONION.removesuffix('.onion')}.ONION:80", f"{ONION.removesuffix('.onion')}:80",
    f"z{ONION[1:]}:80", f"{ONION.removesuffix('onion')}ｏnion:80", f"{ONION.replace('.', '。')}:80",
    *(
        f"127.0.0.1{rest}"
        for rest in (
            "", ":", ":0", ":08761", ":+8761", ":8_761", ":٨٧٦١", ":65536", ":74297", ":-1", ".:8761", ":8761 ",
            ":8761/",
        )
    ),
    *(f"{host}:8761" for host in (
        "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.000.000.001", "127.0.0.2",
        "127.255.255.254", "0", "0.0.0.0", "[::1]", "::1", "[0:0:0:0:0:0:0:1]", "[::0001]", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "[::1%lo]", "[::]", "localhost", "LOCALHOST", "localhost.", "ip6-localhost",
        "user@127.0.0.1", "http://127.0.0.1", "１２７.0.0.1", "127。0。0。1",
    )),
    *(
        f"{host}:80"
        for host in (
            "example.org", "Example.org", "example.org.", "xn--bcher-kva.example", "bücher.example", "192.0.2.1",
            "[2001:db8::1]",
        )
    ),
    "place 0", "", " ", "\n",
]
"""Of three places, and of places that no teller has."""


@pytest.mark.parametrize("spelled", OTHER_SPELLINGS)
def test_a_teller_s_place_has_one_spelling_wherever_it_is_written_or_read(spelled: str) -> None:
    """Else two spellings of one place stand for two tellers, and one reader of both shares knows every answer."""
    right, teller = offer(0, "clinic"), Place("clinic", "127.0.0.1:9000")
    crafted = encode([spelled if one == right.address else one for one in right.as_plain()])
    with pytest.raises(InvalidValue, match="address: expected the teller's onion address"):
        parse_entry(crafted)
    for written in (right, teller, TellerPlace("clinic", right.address)):
        with pytest.raises(InvalidValue, match="copy the address that `anonml teller words` shows"):
            evolve(written, address=spelled)


@pytest.mark.parametrize("spelled", [f"{ONION}:80", "127.0.0.1:1", "127.0.0.1:8760", "127.0.0.1:65535"])
def test_the_one_spelling_is_taken_everywhere_and_by_an_editor(spelled: str) -> None:
    assert (
        offer(0, "clinic", spelled).address
        == Place("clinic", spelled).address
        == TellerPlace("clinic", spelled).address
    )
    assert re.search(TELLER_ADDRESS, spelled)
    assert [one for one in OTHER_SPELLINGS if re.search(TELLER_ADDRESS, one)] == [
        f"z{ONION[1:]}:80",
        "127.0.0.1:65536",
        "127.0.0.1:74297",
    ]


@pytest.mark.parametrize("second", ["Clinic", "clinic ", "ｃｌｉｎｉｃ"])
def test_a_name_that_looks_the_same_is_refused_too(second: str) -> None:
    """Else a yes would remember both keys under one name, and the second teller would be known by the first one's."""
    _demand_refused([offer(0, "clinic"), offer(1, second, "127.0.0.1:9001")], "a different name for each")


def test_one_key_twice_is_refused_too() -> None:
    offers = [
        offer(0, "clinic"),
        TellerEntry("students", "127.0.0.1:9001", offer(0, "x").key, opener(1).public_key, bytes([9]) * 32),
    ]
    with pytest.raises((Malformed, InvalidValue), match="a different key for each"):
        manifest_of(MOMENTS, told(offers))
    _demand_refused(offers, "a different key for each")


def _demand_refused(offers: list[TellerEntry], said: str) -> None:
    """As a peer reads the bytes of a manifest."""
    from anon.protocols.sum.standing import arrangement_of

    honest = arrangement_of(manifest_of(MOMENTS))
    crafted = encode([2, honest.minimum, [one.as_plain() for one in offers], [one.as_plain() for one in honest.sums]])
    with pytest.raises(InvalidValue, match=said):
        parse_arrangement(crafted)
    with pytest.raises(InvalidValue, match=said):
        Arrangement(honest.minimum, tuple(offers), honest.sums)


def test_tellers_of_one_machine_on_two_ports_are_two() -> None:
    """As on the machine of somebody who tries it out."""
    offers = [offer(0, "clinic", "127.0.0.1:1"), offer(1, "students", "127.0.0.1:2")]
    assert len({one.address for one in parse_proposal(sum_study(MOMENTS, told(offers))).tellers}) == 2
