"""The tellers that make a sum together: all of a study, or with a spare one pair of the three.

A pair works as a study of two tellers does. Its shares, statements and lists are about an id of its own, which follows
from the study's id and the pair's number. So nothing that was made for one pair is taken by another one. Packets and
tokens are about the study itself: a packet carries the shares of every pair.
"""

from __future__ import annotations

from functools import cached_property

from attrs import evolve

from anon.crypto import labels
from anon.errors import Malformed
from anon.sharing.arrangement import PAIRS, Arrangement, parse_arrangement
from anon.values import frozen
from anon.wire.cbor import decode, encode, sha256
from anon.wire.packets import Occasion


@frozen
class Quorum:
    """One of `quorums`. `study`: the study's own id; `whole`: all of its tellers; `number`: the pair's."""

    study: bytes
    whole: Arrangement
    number: int = 0

    @cached_property
    def id(self) -> bytes:
        """The id that shares, statements and lists of it are about; without a spare the study's own."""
        if not self.whole.has_spare:
            return self.study
        return sha256(labels.PAIR, self.study, bytes([self.number]))

    @property
    def arrangement(self) -> Arrangement:
        """Its own tellers alone."""
        return self.whole.groups[self.number]

    @property
    def members(self) -> tuple[int, ...]:
        """The numbers of its tellers among all of them."""
        return PAIRS[self.number] if self.whole.has_spare else tuple(range(len(self.whole.tellers)))

    @property
    def first(self) -> int:
        """The place of its first share in a packet."""
        return self.number * self.whole.summing

    def occasion(self, of: Occasion) -> Occasion:
        """The occasion of the study as this quorum's statements name it."""
        return evolve(of, study=self.id)

    def origin(self, of: Occasion) -> Occasion:
        """The occasion of the study, of one that this quorum's statements name."""
        return evolve(of, study=self.study)

    def public_share(self, of: Occasion, report: bytes) -> bytes:
        """Its part of a packet's report."""
        size = self.arrangement.prio3(self.arrangement.sum_of(of)).public_share_size
        return report[self.number * size : (self.number + 1) * size]

    def to_bytes(self) -> bytes:
        """The canonical bytes, as a teller keeps them: the arrangement's own, or [label, study, number, arrangement].
        """
        whole = self.whole.to_bytes()
        return encode([labels.PAIR, self.study, self.number, whole]) if self.whole.has_spare else whole


def quorums(study: bytes, arrangement: Arrangement) -> tuple[Quorum, ...]:
    """All quorums of a study, in the order in which they are asked for a sum. One of them makes each sum."""
    return tuple(Quorum(study, arrangement, number) for number in range(len(arrangement.groups)))


def own_ids(study: bytes, arrangement: Arrangement) -> tuple[bytes, ...]:
    """For each teller an id under which it knows the study: that of its first quorum."""
    known = quorums(study, arrangement)
    numbers = range(len(arrangement.tellers))
    return tuple(next(quorum.id for quorum in known if number in quorum.members) for number in numbers)


def parse_quorum(quorum_id: bytes, data_untrusted: bytes) -> Quorum:
    """A quorum from its canonical bytes. Raises `Malformed`."""
    plain = decode(data_untrusted, "quorum")
    if not isinstance(plain, list) or plain[:1] != [labels.PAIR]:
        return Quorum(quorum_id, parse_arrangement(data_untrusted))
    if [type(field) for field in plain] != [bytes, bytes, int, bytes]:
        raise Malformed("quorum: expected four fields of the documented kinds")
    _, study, number, whole = plain
    for quorum in quorums(study, parse_arrangement(whole)):
        if (quorum.number, quorum.id) == (number, quorum_id):
            return quorum
    raise Malformed("quorum: of another id than the study and the pair have")


def quorum_of(study: bytes, arrangement: Arrangement, statement_study: bytes) -> Quorum:
    """The study's quorum that an id names. Raises `Malformed` where there is none."""
    for quorum in quorums(study, arrangement):
        if quorum.id == statement_study:
            return quorum
    raise Malformed("list: of no tellers that make a sum of this study")
