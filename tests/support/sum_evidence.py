"""The claims that hold of a study of sums that is over, whoever was offline or killed: found again in everybody's
files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import product

from attrs import define, field

from aggregator.rules.acceptance import OpenedPacket, PacketRules, open_packet
from aggregator.store.home import open_home
from anon.protocols.contract import Record
from anon.protocols.sum.standing import arrangement_of, read_sums, standing_after
from anon.sharing.round_document import RoundSums, read_round_sums
from anon.sharing.statements import parse_list
from anon.wire.packets import Occasion
from peer.protocols.sum.part import vector_of
from tests.support.sum_peers import is_offline, row_of
from tests.support.sum_programs import SumStudy
from tests.support.sums import NAMES


@define
class Evidence:
    """The packets of a study as its peers noted them: by round and tag, the peer."""

    study: SumStudy
    left: dict[int, dict[bytes, int]] = field(factory=dict)
    acknowledged: dict[int, dict[bytes, int]] = field(factory=dict)
    bodies: Counter[tuple[int, int]] = field(factory=Counter)
    """By peer and round, how many different packets left."""

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
            self.bodies[peer, seen[body][0]] += 1
        turn, tag = seen[body]
        for place, words in ((self.left, None), (self.acknowledged, ("accepted",))):
            if words is None or note["word"] in words:
                assert place.setdefault(turn, {}).setdefault(tag, peer) == peer, "one tag of two peers"

    def demand_all(self) -> None:
        """Nothing lost, nothing counted twice, nothing noised twice, and everybody charged once."""
        for turn in range(self.study.plan.rounds):
            self._demand_offline_silent(turn)
            self._demand_listed(turn)
            self._demand_one_noise(turn)
            self._demand_exact(turn)
        for one in self.study.outcomes:
            self._demand_settled(one)

    def listed(self, turn: int) -> list[bytes]:
        """The tags of the one list of a round."""
        slot = self._document(turn).slots[0]
        return list(parse_list(slot.accepted, self._occasion(turn)).tags)

    def online(self, turn: int) -> int:
        """How many peers were not offline."""
        return sum(not is_offline(number, turn) for number in range(self.study.plan.peers))

    def _demand_offline_silent(self, turn: int) -> None:
        assert all(not is_offline(peer, turn) for peer in self.left[turn].values()), "a peer sent while offline"
        assert all(count == 1 for count in self.bodies.values()), "two packets of one peer and round"

    def _demand_listed(self, turn: int) -> None:
        """Acknowledged packets are listed once, and listed ones were sent. An answer can be lost on its way."""
        tags = self.listed(turn)
        assert len(set(tags)) == len(tags)
        assert set(self.acknowledged[turn]) <= set(tags), "an acknowledged packet was lost"
        assert set(tags) <= set(self.left[turn]), "a packet that no peer sent was summed"
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
        senders = [self.left[turn][tag] for tag in self.listed(turn)]
        manifest, documents = self.study.manifest, self.study.documents()
        sums = read_sums(manifest, documents, turn + 1)
        weights = standing_after(manifest, sums[:turn]).weights
        vectors = [vector_of(manifest, manifest.surveys[turn], _record(peer), weights) for peer in senders]
        exact = [sum(entries) for entries in zip(*vectors, strict=True)]
        rest = tuple(noisy - entry for noisy, entry in zip(sums[turn].values, exact, strict=True))
        drawn = [tuple(map(sum, zip(*pair, strict=True))) for pair in product(*map(self.draws, NAMES))]
        assert drawn.count(rest) == 1, "not the sum of the listed packets with one noise of each teller"

    def draws(self, name: str) -> list[list[int]]:
        """Every noise that a teller ever drew, also those that a killing kept from being journalled."""
        return [json.loads(line) for line in (self.study.folder / f"{name}.noise").read_text().splitlines()]

    def _demand_settled(self, one: dict[str, object]) -> None:
        """Each packet that was listed is found again by its peer, and costs what it says; no reservation is left."""
        manifest, peer = self.study.manifest, one["peer"]
        assert (one["state"], one["reserved"]) == ("finished", 0), one
        sent = [turn for turn in range(self.study.plan.rounds) if peer in self.left[turn].values()]
        listed = {turn: {self.left[turn][tag] for tag in self.listed(turn)} for turn in sent}
        statuses = one["slots"]
        assert isinstance(statuses, list)
        for turn, status in enumerate(statuses):
            assert (status == "included") == (turn in sent and peer in listed[turn]), one
        made = sum(manifest.surveys[turn].epsilon for turn in sent)
        assert isinstance(one["spent"], int) and made <= one["spent"] <= manifest.epsilon

    def _document(self, turn: int) -> RoundSums:
        return read_round_sums(self.study.documents()["sums", turn], self.study.manifest.study_id, turn)

    def _occasion(self, turn: int) -> Occasion:
        return Occasion(self.study.manifest.study_id, turn, arrangement_of(self.study.manifest).sums[turn].slot)


def _record(number: int) -> Record:
    age, sleep, _cups, tired = row_of(number)
    return Record({"age": age, "sleep": sleep}, tired)


def shown(seconds: Sequence[float]) -> str:
    """Seconds, for a line of figures."""
    return ", ".join(f"{one:.1f}" for one in seconds)
