"""A teller's answers to the calls of `anon.sharing.exchange`: bytes in, bytes out; who may ask is decided here.

A call about a study is answered to the aggregator whose key is in the manifest that was countersigned. A teller whose
person named aggregators gives offers and countersignatures to these alone. Of any other teller a stranger may ask for
an offer, and may have a study of its own countersigned: neither shows or changes anything of another study.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from attrs import field

from anon.crypto.nacl import SigningKey
from anon.errors import AnonmlError, Refused, RejectedProof
from anon.sharing.arrangement import parse_arrangement
from anon.sharing.exchange import CallOpening, SignedCall, read_request, read_signed, reply
from anon.sharing.quorum import quorums
from anon.study.manifest import parse_manifest
from anon.teller.dates import runs_ahead
from anon.teller.home import Place
from anon.teller.journal import MOST_STUDIES, Journal
from anon.teller.news import Event, News
from anon.teller.session import Teller
from anon.transparency.closing import Bodies
from anon.values import frozen
from anon.wire.packets import Occasion

Answer = Callable[[list[Any]], Any]
_NOT_NAMED = (
    "this teller serves aggregators alone that the person who runs it named; tell that person this aggregator's key "
    "(`anonml aggregator init` prints it), to be named by `anonml teller allow`"
)


@frozen
class Calls:
    """Nothing here waits, and one call is made at a time. `allowed`: the keys of the aggregators that were named; None
    where any may ask. `tell`: hears the news once aggregators were named. A stranger writes no line.

    `now`: unix seconds, by this machine.

    `caller` alone may be asked meanwhile, in another thread.
    """

    key: SigningKey = field(repr=False)
    place: Place
    journal: Journal
    random_bytes: Callable[[int], bytes]
    allowed: Callable[[], Collection[bytes] | None] = lambda: None
    tell: Callable[[News], None] = lambda news: None
    now: Callable[[], float] = time.time
    _aggregators: set[bytes] = field(factory=set, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        for manifest in self.journal.manifests():
            with suppress(AnonmlError):  # a study of a version that this one does not read
                self._aggregators.add(_aggregator_of(manifest))

    @property
    def teller(self) -> Teller:
        """The decisions."""
        return Teller(self.key, self.journal, self.random_bytes)

    def answer(self, name: str, body_untrusted: bytes) -> bytes:
        """The reply to a call. Raises what the teller does, and `RejectedProof` for a request of another signer."""
        if name == "entry":
            return self._offer(read_signed(name, body_untrusted))
        if name == "countersign":
            return self._countersign(body_untrusted)
        signed, own = read_signed(name, body_untrusted), bytes(self.key.verify_key)
        manifest = self.journal.manifest(signed.study)
        if manifest is None:
            raise Refused("this teller did not countersign the study")
        given = signed.fields(_aggregator_of(manifest), own)
        ran = self.journal.runs(signed.study)
        begun = name != "admit" or self.journal.has_begun(signed.study, given[1])
        said = self._answers()[name](given)
        if not begun and self.journal.has_begun(signed.study, given[1]):
            study = parse_manifest(manifest)
            early = runs_ahead(study, [given[1]], self.now())
            self._tell(News(Event.ADDING_UP, study, given[1], early))
        if ran and not self.journal.runs(signed.study):
            self._tell(News(Event.OVER, parse_manifest(manifest), others=self.journal.running()))
        return reply([] if said is None else said)

    def _tell(self, news: News) -> None:
        if self.allowed() is not None:
            self.tell(news)

    def caller(self, opening: CallOpening) -> bytes:
        """The key of who asks, by the beginning of a body, before the rest is read; empty for a stranger where
        strangers may ask. Raises `Refused` where they may not, `RejectedProof` for a signature of somebody else."""
        allowed, offers = self.allowed(), opening.name in ("entry", "countersign")
        if offers and allowed is not None and opening.signer not in allowed:
            raise Refused(_NOT_NAMED)
        if not offers and opening.signer not in self._aggregators:
            raise Refused("this teller did not countersign the study")
        if not opening.is_for(bytes(self.key.verify_key)):
            raise RejectedProof("a request is not signed by the study's aggregator")
        return b"" if offers and allowed is None else opening.signer

    def _offer(self, asked: SignedCall) -> bytes:
        """Raises `Refused` unless the study names this teller as it calls itself."""
        self._demand_named(asked)
        name, address = read_request("entry", asked.request)
        if (name, address) != (self.place.name, self.place.address):
            raise Refused(f"this teller is named {self.place.name} and served at {self.place.address}; name it so")
        return self.teller.offer(name, address).to_bytes()

    def _countersign(self, body_untrusted: bytes) -> bytes:
        signed, own = read_signed("countersign", body_untrusted), bytes(self.key.verify_key)
        named = self._demand_named(signed)
        (manifest_untrusted,) = read_request("countersign", signed.request)
        manifest = parse_manifest(manifest_untrusted)
        signed.fields(manifest.aggregator_key, own)
        most, pairs = None if named else MOST_STUDIES, quorums(manifest.study_id, parse_arrangement(manifest.part))
        known = any(self.journal.study(pair.id) for pair in pairs)
        said = self.teller.countersign(manifest.study_id, manifest.part, manifest_untrusted, most)
        self._aggregators.add(manifest.aggregator_key)
        if not known:
            self._tell(News(Event.COUNTERSIGNED, manifest))
        return said

    def _demand_named(self, signed: SignedCall) -> bool:
        """True where a named aggregator signed; False where none is named. Raises `Refused` or `RejectedProof`, before
        anything is read that a stranger wrote."""
        allowed, signer = self.allowed(), signed.opening.signer
        if allowed is not None and signer not in allowed:
            raise Refused(_NOT_NAMED)
        if not signed.is_by(signer, bytes(self.key.verify_key)):
            raise RejectedProof("a request is not signed by who asks")
        return allowed is not None

    def _answers(self) -> Mapping[str, Answer]:
        teller = self.teller
        return {
            "key-shares": lambda given: dict(teller.key_shares(*given)),
            "key-share": lambda given: teller.take_key_share(*given),
            "roll": lambda given: self._take_roll(*given),
            "admit": lambda given: _admitted(teller, *given),
            "settle": lambda given: sorted(teller.settle(Occasion(*given[:3]), given[3])),
            "accepted": lambda given: sorted(teller.accepted(Occasion(*given))),
            "list": lambda given: teller.sign_list(Occasion(*given[:3]), given[3]),
            "noise": lambda given: teller.add_noise(Occasion(*given[:3]), given[3]),
            "finish": lambda given: teller.finish(given[0], int(self.now())),
        }

    def _take_roll(
        self, study: bytes, heads: bytes, roster: bytes, seed: bytes, credentials: bytes, beside: list[bytes]
    ) -> None:
        manifest = self.journal.manifest(study) or b""
        self.teller.take_roll(study, manifest, heads, Bodies(roster, seed, credentials, beside=tuple(beside)))


@lru_cache(maxsize=8)
def _aggregator_of(manifest: bytes) -> bytes:
    """The key of a manifest that was read before."""
    return parse_manifest(manifest).aggregator_key


def _admitted(teller: Teller, study: bytes, number: int, slot: int, items: list[bytes]) -> list[Any]:
    admitted = teller.admit(Occasion(study, number, slot), items)
    return [admitted.statement, dict(admitted.refused)]

