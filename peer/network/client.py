"""The exchanges with an aggregator, each at one of its addresses, drawn anew, through a route (docs/protocol.md). The
result is untrusted until checked here or in `peer.rules.checks`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence

from attrs import evolve, field

from anon.errors import Unreachable
from anon.protocols.kinds import LONGEST_MANIFEST
from anon.protocols.sizes import LONGEST_UNSEEN_CHAIN, longest_beside, longest_chain
from anon.route import Route, Starting
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.transparency.buckets import Bucket, BucketDocument, parse_bucket
from anon.transparency.documents import Head, SignedHead, check_body, parse_chain
from anon.transparency.together import HeadGroup, heads_of, parse_with_heads, taken_apart
from anon.values import frozen
from anon.wire.invite import Invite
from anon.wire.packets import SealedPacket
from anon.wire.replies import REPLY_BYTES, parse_reply
from peer.rules.checks import check_continued, demand_length
from peer.store.crash_points import crash_point
from peer.threads import heads_off_loop, off_loop

LONGEST_OPENING = 4 + LONGEST_UNSEEN_CHAIN + LONGEST_MANIFEST + 64 * 1024
"""Bytes of heads and first documents, read before the manifest is known."""
Hold = Callable[[tuple[SignedHead, ...]], Awaitable[tuple[SignedHead, ...]]]
"""How a verified chain is held to what was seen of it before (`peer.network.seen_chains`)."""


@frozen
class ChainAnswer:
    """A verified chain. `came`: it is the one that came, and not a longer one seen before. `wanted`: the heads of the
    group that was asked for, `rest`: all that followed the heads, which nobody checked yet."""

    chain: tuple[SignedHead, ...]
    came: bool
    wanted: tuple[Head, ...] = ()
    rest: bytes = field(default=b"", repr=False)


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

    async def opening(self, hold: Hold) -> tuple[tuple[SignedHead, ...], dict[str, bytes]]:
        """All heads, each signed by the pinned key, as `hold` takes them, and the first documents by kind. Raises
        `Unreachable`, `Malformed`, `RejectedProof`, what `hold` raises, and `Distrust` for too long a manifest."""
        answer = await self._get(f"heads/{HeadGroup.OPENING}", LONGEST_OPENING)
        heads, rest = parse_with_heads(answer)
        fresh = await heads_off_loop(parse_chain, heads, self.invite.key, self.invite.study)
        wanted = heads_of(HeadGroup.OPENING, fresh, 0)
        for head in wanted[:1]:
            demand_length(head, LONGEST_MANIFEST)
        chain = await hold(fresh)
        return chain, {head.kind: body for head, body in (await off_loop(taken_apart, wanted, rest)).items()}

    async def longer_chain(
        self, manifest: Manifest, seen: Sequence[SignedHead], group: HeadGroup | None = None
    ) -> ChainAnswer:
        """The longer of the chain that comes and the one seen, with what comes of the group.

        Raises as `opening` does, and `Distrust` where the two do not continue each other.
        """
        longest = longest_chain(manifest)
        if group is None:
            heads, rest = await self._get("heads", longest), b""
        else:
            heads, rest = parse_with_heads(
                await self._get(f"heads/{group}", longest + longest_beside(manifest, group))
            )

        def read() -> ChainAnswer:
            fresh = parse_chain(heads, self.invite.key, self.invite.study, seen)
            chain = check_continued(manifest, seen, fresh)
            wanted = () if group is None else tuple(heads_of(group, fresh, len(manifest.slots)))
            return ChainAnswer(chain, len(fresh) == len(chain), wanted, rest)

        return await heads_off_loop(read)

    async def body(self, head: Head, longest: int) -> bytes:
        """The body of a verified head. Raises `Unreachable`, `Malformed`; and `Distrust`, before anything is fetched,
        for a head that claims more than the longest that there can be."""
        demand_length(head, longest)
        return await off_loop(check_body, head, await self._get(f"documents/{head.number}", head.length))

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

