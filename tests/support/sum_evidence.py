"""The claims that hold of a study of sums that is over, whoever was away or killed: found again in everybody's
files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from sqlite3 import connect

from attrs import define, field

from aggregator.rules.acceptance import OpenedPacket, PacketRules, open_packet
from aggregator.store.home import open_home
from anon.protocols.contract import Record
from anon.protocols.sum.design import roles
from anon.protocols.sum.parties import GIVEN
from anon.protocols.sum.standing import arrangement_of, read_sums, told_before
from anon.protocols.sum.vector import vector_of
from anon.sharing.round_document import RoundSums, read_round_sums
from anon.sharing.statements import parse_list
from anon.wire.packets import Occasion, PublishedPacket
from peer.data.evaluate import evaluated
from peer.store.home import PeerHome
from peer.store.records import COVER_FROM
from tests.support.sum_programs import AGGREGATOR, SumStudy
from tests.support.sums import NAMES
from tests.support.views import found, held, kept, of_integers

SECONDS = 60.0
SOUGHT = 3
"""So many members' secrets are sought in the homes of all others."""


@define
class Evidence:
    """The packets of a study as its peers noted them: by round and tag, the peer."""

    study: SumStudy
    left: dict[int, dict[bytes, int]] = field(factory=dict)
    acknowledged: dict[int, dict[bytes, int]] = field(factory=dict)
    packets: dict[tuple[int, int], PublishedPacket] = field(factory=dict)
    """By peer and round, as the aggregator opens it."""
    bodies: Counter[tuple[int, int]] = field(factory=Counter)
    """By peer and round, how many different packets left."""
    records: dict[int, Record] = field(factory=dict)

    @classmethod
    def of(cls, study: SumStudy) -> Evidence:
        """Open every packet that left, as the aggregator does."""
        made = cls(study)
        secrets = open_home(study.home, lambda size: bytes(size)).load_secrets(study.manifest.study_id)
        rules = PacketRules(study.manifest.study_id, study.manifest, secrets.sealing_key)
        seen: dict[str, tuple[int, bytes]] = {}
        for file in sorted(study.folder.glob("peers-*/posts.jsonl")):
            for line in file.read_text().splitlines():
                note = json.loads(line)
                if note["what"] == "packets":
                    made._take(rules, seen, note)
        return made

    def _take(self, rules: PacketRules, seen: dict[str, tuple[int, bytes]], note: dict[str, str | int]) -> None:
        body, peer = str(note["body"]), int(note["peer"])
        if body not in seen:
            opened = open_packet(rules, bytes.fromhex(body))
            assert isinstance(opened, OpenedPacket)
            seen[body] = self.study.manifest.surveys[opened.packet.survey].round, opened.packet.tag
            self.packets[peer, seen[body][0]] = opened.packet
            self.bodies[peer, seen[body][0]] += 1
        turn, tag = seen[body]
        for place, words in ((self.left, None), (self.acknowledged, ("accepted",))):
            if words is None or note["word"] in words:
                assert place.setdefault(turn, {}).setdefault(tag, peer) == peer, "one tag of two peers"

    def demand_all(self) -> None:
        """Nothing lost, nothing counted twice, nothing noised twice, and everybody charged once."""
        for turn in range(self.rounds):
            self._demand_away_silent(turn)
            self._demand_listed(turn)
            self._demand_one_noise(turn)
            self._demand_exact(turn)
        for one in self.study.outcomes:
            self._demand_settled(one)

    @property
    def rounds(self) -> int:
        """How many the study has."""
        return len(self.study.manifest.surveys)

    def listed(self, turn: int) -> list[bytes]:
        """The tags of the one list of a round."""
        slot = self._document(turn).slots[0]
        return list(parse_list(slot.accepted, self._occasion(turn)).tags)

    def online(self, turn: int) -> int:
        """How many peers were not away."""
        return sum(not self.study.plan.is_away(number, turn) for number in range(self.study.plan.peers))

    def _demand_away_silent(self, turn: int) -> None:
        away = self.study.plan.is_away
        assert not any(away(peer, turn) for peer in self.left[turn].values()), "a peer sent while it was away"
        assert all(count == 1 for count in self.bodies.values()), "two packets of one peer and round"

    def _demand_listed(self, turn: int) -> None:
        """Acknowledged packets are listed once, and listed ones were sent. An answer can be lost on its way."""
        tags = self.listed(turn)
        assert len(set(tags)) == len(tags)
        assert set(self.acknowledged[turn]) <= set(tags), "an acknowledged packet was lost"
        assert set(tags) <= set(self.left[turn]), "a packet that no peer sent is there"
        if not self.study.plan.tor:
            assert set(tags) == set(self.acknowledged[turn])

    def _demand_one_noise(self, turn: int) -> None:
        """Each teller's one noisy share is the published one; its journal never held another, and holds no share
        now."""
        for name, share in zip(NAMES, self._document(turn).slots[0].shares, strict=True):
            assert self.study.kept[name, turn] == {share}, "a second noisy share"
            rows = self.study.journal(name, "SELECT noisy, evidence FROM ends WHERE round = ?", turn)
            assert rows == [(share, None)]
            assert self.study.journal(name, "SELECT count(*) FROM shares") == [(0,)]

    def _demand_exact(self, turn: int) -> None:
        """The published sum without one draw of each teller's noise is the exact sum of the packets on its list."""
        sums = read_sums(self.study.manifest, self.study.documents(), turn + 1)
        exact = self.exact(turn, self.listed(turn))
        rest = tuple(noisy - entry for noisy, entry in zip(sums[turn].values, exact, strict=True))
        pairs = product(*(drawn_in(self.study.folder / f"{name}.noise") for name in NAMES))
        drawn = [tuple(map(sum, zip(*pair, strict=True))) for pair in pairs]
        assert drawn.count(rest) == 1, "not the sum of the listed packets with one noise of each teller"

    def exact(self, turn: int, tags: Sequence[bytes]) -> list[int]:
        """The sum of the vectors that those with these tags have for a round, without any noise."""
        vectors = [self.vector(turn, self.left[turn][tag]) for tag in tags]
        return [sum(entries) for entries in zip(*vectors, strict=True)]

    def vector(self, turn: int, peer: int) -> Sequence[int]:
        """The vector that a peer has for a round, computed anew from the data on its disk."""
        manifest, documents = self.study.manifest, self.study.documents()
        survey = manifest.surveys[turn]
        sums = read_sums(manifest, documents, turn) if manifest.protocol == "sum" else []  # others have pages
        told = told_before(manifest, survey, sums)
        if manifest.protocol == "sum" and not self._costs(peer).get(turn):
            return [0] * survey.m
        return vector_of(manifest, survey, self._record(peer), told, documents.get(GIVEN, b""))

    def secrets(self, turn: int, peer: int) -> dict[str, bytes]:
        """All that a peer made for a round and keeps, as `views` spells it."""
        given = self.study.documents().get(GIVEN, b"")
        survey, name = self.study.manifest.surveys[turn], f"peer {peer}"
        own = kept(name, self.study.manifest, survey, self._record(peer), given)
        return of_integers(f"{name}'s vector", self.vector(turn, peer)) | own

    def rows(self, peer: int) -> dict[str, bytes]:
        """The exact numbers of each of its records, as text."""
        return {
            f"{name} {place} of peer {peer}": repr(row.values[name]).encode()
            for place, row in enumerate(self._record(peer).rows or [self._record(peer)])
            for name in ("age", "sleep")
        }

    def told(self, turn: int) -> dict[str, bytes]:
        """All that a round's sum is made of: nobody hides it."""
        return dict(zip(NAMES, self._document(turn).slots[0].shares, strict=True))

    def demand_unseen(self, turn: int) -> None:
        """Nothing that peers keep stands at the aggregator or at a teller, nor in a packet that the aggregator opened.

        All that they were told for the sum is found there.
        """
        homes = (AGGREGATOR, *self.study.plan.subject.tellers)
        there = {f"{home}: {place}": value for home in homes for place, value in held(self.study.folder / home).items()}
        there |= {log.name: log.read_bytes() for home in homes for log in self.study.folder.glob(f"{home}.*")}
        there |= {f"packet {place}": packet.to_bytes() for place, packet in self.packets.items()}
        for peer in self.left[turn].values():
            assert found(there, self.secrets(turn, peer)) == []
        told = self.told(turn)
        assert {name for name, _ in found(there, told)} == told.keys()

    def demand_unseen_by_members(self, turn: int) -> None:
        """None of it, and no record of such a member, stands in another member's home. In its own its records do."""
        homes = {int(home.parent.name): home.parent for home in self.study.folder.glob("peers-*/*/peer.sqlite")}
        there = {number: held(home) for number, home in homes.items()}
        for peer in sorted(self.left[turn].values())[:SOUGHT]:
            records = self.rows(peer)
            secrets = self.secrets(turn, peer) | records
            assert {name for name, _ in found(there[peer], secrets)} >= records.keys(), "the search is blind"
            for number, files in there.items():
                assert number == peer or found(files, secrets) == []

    def _record(self, peer: int) -> Record:
        if peer not in self.records:
            (folder,) = self.study.folder.glob(f"peers-*/{peer}")
            snapshot = evaluated(self.study.manifest, PeerHome(folder).data_path, SECONDS)
            self.records[peer] = snapshot.record
        return self.records[peer]

    def _costs(self, peer: int) -> dict[int, int]:
        """By slot, the charge of each packet that a peer made: none of one that is of the other role."""
        (folder,) = self.study.folder.glob(f"peers-*/{peer}")
        with closing(connect(PeerHome(folder).store_path)) as store:
            return dict(store.execute("SELECT slot, epsilon FROM outbox WHERE slot < ?", (COVER_FROM,)))

    def _demand_settled(self, one: dict[str, object]) -> None:
        """Each packet that was listed is found again by its peer, and costs what it says; no reservation is left.

        A peer that is gone for good finds nothing. It paid for what it sent, and for what it was about to send.
        """
        manifest, peer = self.study.manifest, one["peer"]
        assert isinstance(peer, int) and isinstance(one["spent"], int) and isinstance(one["slots"], list)
        sent = [turn for turn in range(self.rounds) if peer in self.left[turn].values()]
        paid = self._costs(peer) if manifest.protocol == "sum" else {at: manifest.surveys[at].epsilon for at in sent}
        charged = {turn for turn, cost in paid.items() if cost}
        assert any(charged <= {*places} for places in roles(manifest.surveys)), "a peer has one role"
        assert all(paid[turn] == manifest.surveys[turn].epsilon for turn in charged)
        assert sum(paid[turn] for turn in sent) <= one["spent"] <= manifest.epsilon
        if peer in self.study.plan.gone:
            assert one["state"] != "finished", one
            return
        assert (one["state"], one["reserved"]) == ("finished", 0), one
        listed = {turn: {self.left[turn][tag] for tag in self.listed(turn)} for turn in sent}
        for turn, status in enumerate(one["slots"]):
            assert (status == "included") == (turn in sent and peer in listed[turn]), one

    def _document(self, turn: int) -> RoundSums:
        return read_round_sums(self.study.documents()["sums", turn], self.study.manifest.study_id, turn)

    def _occasion(self, turn: int) -> Occasion:
        return Occasion(self.study.manifest.study_id, turn, arrangement_of(self.study.manifest).sums[turn].slot)


def drawn_in(notes: Path) -> list[list[int]]:
    """Every noise that a program ever drew, also those that a killing kept from being journalled."""
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def shown(seconds: Sequence[float]) -> str:
    """Seconds, for a line of figures."""
    return ", ".join(f"{one:.1f}" for one in seconds)
