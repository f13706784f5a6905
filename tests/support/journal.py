"""Checks of peers' and aggregators' files that must hold whatever process was killed, at whatever moment."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.store.home import StudySecrets, open_home
from anon.transparency.documents import SignedHead, encode_chain, parse_chain, parse_head
from anon.transparency.together import parse_with_heads
from anon.wire.cbor import decode
from anon.wire.packets import PublishedPacket, parse_published
from tests.support.packets import opened, packet_in

if TYPE_CHECKING:
    from tests.support.killed_study import KilledStudy, Resident

TAG_BYTES = 48


class Journal:
    """A peer's journal as it was seen so far: what is written in it never changes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.packets: dict[tuple[bytes, int], bytes] = {}
        self.statuses: list[str] = []
        self.spent = self.reserved = 0

    def look(self) -> None:
        """Read the files as a kill left them. Charge and packet are both there or neither; nothing is overspent."""
        path = self.home / "peer.sqlite"
        if not path.exists():
            return
        with closing(sqlite3.connect(path, timeout=30)) as store:
            store.execute("BEGIN")
            entries = store.execute("SELECT study, reserved, spent FROM ledger").fetchall()
            outbox = store.execute("SELECT study, slot, epsilon, packet, status, attempts FROM outbox").fetchall()
            studies = dict(store.execute("SELECT study, consented FROM studies").fetchall())
            ((policy,),) = store.execute("SELECT value FROM meta WHERE key = 'policy'").fetchall()
        charged: dict[bytes, int] = defaultdict(int)
        for study, slot, epsilon, packet, _status, attempts in outbox:
            charged[study] += epsilon
            assert attempts <= 4
            if packet is not None:
                assert self.packets.setdefault((study, slot), packet) == packet, "a slot was perturbed twice"
        self.statuses = [row[4] for row in outbox]
        self.reserved, self.spent = sum(row[1] for row in entries), sum(row[2] for row in entries)
        for study, reserved, spent in entries:
            assert spent == charged[study], "charge and packet are not together"
            assert spent + reserved <= studies[study], "more than was consented"
        assert self.reserved + self.spent <= json.loads(policy)["lifetime"], "overspent"


class Ended:
    """A study that is over, with what its aggregator published."""

    def __init__(self, study: KilledStudy) -> None:
        self.manifest = study.manifest
        home = open_home(study.home, lambda size: bytes(size))
        self._secrets: StudySecrets = home.load_secrets(self.manifest.study_id)
        self._key = home.public_key
        with closing(sqlite3.connect(study.home / "aggregator.sqlite", timeout=30)) as store:
            rows = store.execute(
                "SELECT kind, head, signature, body FROM documents WHERE signature != x'' ORDER BY number"
            ).fetchall()
            places = enumerate(row[0] for row in rows)
            numbers = [number for number, kind in places if kind == "transcript"]
            named = ", ".join(map(str, numbers))
            contents = store.execute(
                f"SELECT content FROM buckets WHERE number IN ({named}) ORDER BY number, bucket"
            ).fetchall()
        self.chain = encode_chain_rows([(head, signature) for _, head, signature, _ in rows])
        self.kinds = [row[0] for row in rows]
        self.kept = [decode(content)[3] for (content,) in contents]
        self.accepted = {plaintext for part in self.kept for plaintext in part}
        self.roster: list[list[bytes]] = next(
            (decode(decode(body)[6])[2] for kind, _, _, body in rows if kind == "roster"), []
        )

    def opened(self, sealed: bytes) -> tuple[bytes, PublishedPacket]:
        """A packet as the aggregator keeps it."""
        packet = packet_in(
            self.manifest, opened(self.manifest, self._secrets.sealing_key, "packets", sealed)
        ).published()
        return packet.to_bytes(), packet

    def demand_nothing_lost(self, residents: Sequence[Resident]) -> None:
        """Every acknowledged packet is in the transcript, and every packet in it was sent by exactly one peer."""
        senders: dict[bytes, set[int]] = defaultdict(set)
        for number, resident in enumerate(residents):
            for sealed in resident.wire.acknowledged():
                assert self.opened(sealed)[0] in self.accepted, "an acknowledged packet was lost"
            for sealed in resident.wire.bodies("packets"):
                senders[self.opened(sealed)[0]].add(number)
        assert all(len(senders[plaintext]) == 1 for plaintext in self.accepted)

    def demand_no_second_perturbation(self, residents: Sequence[Resident]) -> None:
        """One spelling of each slot's packet ever left a peer, the journalled one, at most four times."""
        for resident in residents:
            sent: dict[int, list[bytes]] = defaultdict(list)
            for sealed in resident.wire.bodies("packets"):
                sent[self.opened(sealed)[1].slot].append(sealed)
            for slot, bodies in sent.items():
                assert len(set(bodies)) == 1 and len(bodies) <= 4
                journalled = resident.journal.packets.get((self.manifest.study_id, slot))
                assert journalled in (None, bodies[0])
        tags = [(packet.slot, packet.token[:TAG_BYTES]) for packet in map(parse_published, sorted(self.accepted))]
        assert len(set(tags)) == len(tags) == sum(map(len, self.kept)), "two packets of one tag"

    def demand_one_story(self, residents: Iterable[Resident]) -> None:
        """All heads that any peer was shown are the beginning of the last chain."""
        final = parse_chain(self.chain, self._key, self.manifest.study_id)
        for resident in residents:
            for shown in resident.wire.exchanges:
                if shown.what.startswith("heads") and shown.answer is not None:
                    heads = shown.answer if shown.what == "heads" else parse_with_heads(shown.answer)[0]
                    chain = parse_chain(heads, self._key, self.manifest.study_id)
                    assert final[: len(chain)] == chain, "two heads with one number"

    def demand_all(self, residents: Sequence[Resident]) -> None:
        """Everything above, and honest journals."""
        for resident in residents:
            resident.journal.look()
        self.demand_nothing_lost(residents)
        self.demand_no_second_perturbation(residents)
        self.demand_one_story(residents)


def encode_chain_rows(rows: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Stored heads as the wire has them."""
    return encode_chain([SignedHead(parse_head(head), signature) for head, signature in rows])
