"""The exchanges with an aggregator, each at one of its addresses, drawn anew, through a route (docs/protocol.md). The
result is untrusted until checked here or in `peer.rules.checks`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate

from attrs import evolve, field, frozen

from anon.errors import Malformed, Unreachable
from anon.protocols.sizes import LONGEST_UNSEEN_CHAIN, longest_chain
from anon.route import Route, Starting
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.transparency.buckets import Bucket, BucketDocument, parse_bucket
from anon.transparency.documents import Head, SignedHead, check_body, parse_chain
from anon.wire.invite import Invite
from anon.wire.packets import SealedPacket
from anon.wire.replies import REPLY_BYTES, parse_reply
from peer.rules.checks import check_continued, demand_length
from peer.store.crash_points import crash_point
from peer.threads import heads_off_loop, off_loop

Hold = Callable[[tuple[SignedHead, ...]], Awaitable[tuple[SignedHead, ...]]]
"""How a verified chain is held to what was seen of it before (`peer.network.seen_chains`)."""


@frozen
class AggregatorClient:
    """One study's aggregator, by the invite. Every call is one exchange over a fresh connection of the route.

    It goes to the invite's address. Once the manifest is known (`serving`), each call draws one of its addresses.
    """

    invite: Invite
    route: Route = field(repr=False)
    random_bytes: Callable[[int], bytes] = field(default=os.urandom, repr=False)
    addresses: tuple[str, ...] = ()

    def serving(self, manifest: Manifest) -> AggregatorClient:
        """The same, with the addresses at which the study is served to everybody. A link to this machine itself leads
        nowhere else."""
        if self.invite.address not in manifest.addresses:
            return self
        return evolve(self, addresses=manifest.addresses)

    async def ready(self) -> None:
        """Return once the route could carry something. Raises `Unreachable` when nothing can leave now."""
        if isinstance(self.route, Starting):
            await self.route.ready(self._drawn_address())

    async def chain(self, hold: Hold, longest: int = LONGEST_UNSEEN_CHAIN) -> tuple[SignedHead, ...]:
        """All heads, at most so many bytes, each signed by the pinned key, as `hold` takes them. Raises `Unreachable`,
        `Malformed`, `RejectedProof`, and what `hold` raises."""
        heads = await self._get("heads", longest)
        return await hold(await heads_off_loop(parse_chain, heads, self.invite.key, self.invite.study))

    async def longer_chain(
        self, manifest: Manifest, seen: Sequence[SignedHead]
    ) -> tuple[tuple[SignedHead, ...], bool]:
        """The longer of the chain that comes and the one seen, and True if that is the one that came.

        Raises as `chain` does, and `Distrust` where the two do not continue each other.
        """
        heads = await self._get("heads", longest_chain(manifest))

        def read() -> tuple[tuple[SignedHead, ...], bool]:
            fresh = parse_chain(heads, self.invite.key, self.invite.study, seen)
            chain = check_continued(manifest, seen, fresh)
            return chain, len(fresh) == len(chain)

        return await heads_off_loop(read)

    async def body(self, head: Head, longest: int) -> bytes:
        """The body of a verified head. Raises `Unreachable`, `Malformed`; and `Distrust`, before anything is fetched,
        for a head that claims more than the longest that there can be."""
        demand_length(head, longest)
        return await off_loop(check_body, head, await self._get(f"documents/{head.number}", head.length))

    async def bodies(self, heads: Sequence[Head]) -> list[bytes]:
        """The bodies of verified heads with consecutive numbers, in one exchange. Raises `Unreachable`, `Malformed`."""
        first, last = heads[0].number, heads[-1].number
        together = await self._get(f"documents/{first}-{last}", sum(head.length for head in heads))
        return await off_loop(_taken_apart, heads, together)

    async def bucket(self, head: Head, document: BucketDocument, number: int, longest: int) -> Bucket:
        """A bucket that leads to the root of a verified document. Raises `Unreachable`, `Malformed`."""
        return await off_loop(
            parse_bucket, await self._get(f"buckets/{head.number}/{number}", longest), document, number
        )

    async def enrol(self, sealed: bytes) -> str:
        """Send a stored enrolment; the aggregator's word."""
        crash_point("before-send-of-enrolment")
        word = await self._post("enrol", sealed)
        crash_point("after-send-of-enrolment")
        return word

    async def withdraw(self, sealed: bytes) -> str:
        """Send a stored withdrawal; the aggregator's word."""
        crash_point("before-send-of-withdrawal")
        word = await self._post("withdraw", sealed)
        crash_point("after-send-of-withdrawal")
        return word

    async def submit(self, packet: SealedPacket) -> str:
        """Send a packet out of the journal; the aggregator's word."""
        crash_point("before-send-of-packet")
        word = await self._post("packets", packet.ciphertext)
        crash_point("after-send-of-packet")
        return word

    async def _get(self, what: str, limit: int) -> bytes:
        answer = await self.route.get(self._drawn_address(), self._path(what), limit)
        if answer.status == 404:
            raise Unreachable(say(
                "the aggregator there does not serve this study (status 404): another aggregator may answer at this "
                "address, or the study is not served now; ask staff for the link again"
            ))
        if answer.status != 200:
            raise Unreachable(say(
                "the aggregator does not offer this study now (status {status}); try again later",
                status=answer.status,
            ))
        return answer.body

    async def _post(self, what: str, body: bytes) -> str:
        answer = await self.route.post(self._drawn_address(), self._path(what), body, REPLY_BYTES)
        if answer.status != 200:
            raise Unreachable(say(
                "the aggregator did not take it (status {status}); it is tried again later",
                status=answer.status,
            ))
        return parse_reply(answer.body)

    def _drawn_address(self) -> str:
        """For one exchange: uniform over the addresses, and independent of the peer, of what is sent and of the last.

        An address that stayed a peer's own for a while would tie together what arrives there."""
        return drawn_evenly(self.addresses or (self.invite.address,), self.random_bytes)

    def _path(self, what: str) -> str:
        return f"/v1/{self.invite.study.hex()}/{what}"


def drawn_evenly(among: Sequence[str], random_bytes: Callable[[int], bytes]) -> str:
    """One of at most 256, each with the same probability. A byte that would favour the first ones is drawn again."""
    whole = 256 - 256 % len(among)
    while len(among) > 1:
        if (byte := random_bytes(1)[0]) < whole:
            return among[byte % len(among)]
    return among[0]


def _taken_apart(heads: Sequence[Head], together_untrusted: bytes) -> list[bytes]:
    """The bodies that follow each other, each as long as its head says. Raises `Malformed`."""
    ends = list(accumulate(head.length for head in heads))
    starts = [0, *ends[:-1]]
    if len(together_untrusted) != ends[-1]:
        raise Malformed(say(
            "documents: expected {ends} bytes, got {together_untrusted}; they are fetched again",
            ends=ends[-1],
            together_untrusted=len(together_untrusted),
        ))
    return [check_body(head, together_untrusted[a:b]) for head, a, b in zip(heads, starts, ends, strict=True)]
