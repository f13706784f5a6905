"""Talking to an aggregator through a route (docs/protocol.md). What comes back is untrusted until checked here or in
`peer.checks`."""

from __future__ import annotations

from attrs import field, frozen

from anon.answers import ANSWER_BYTES, parse_answer
from anon.documents import Head, SignedHead, check_body, parse_chain
from anon.errors import Unreachable
from anon.invite import Invite
from anon.messages import SealedPacket
from anon.route import Route, Starting
from peer.crash import crash_point

MAX_CHAIN = 4 * 1024 * 1024
"""Bytes of the longest chain read: some 12,000 heads."""


@frozen
class AggregatorClient:
    """One study's aggregator, by the invite. Every call is one exchange over a fresh connection of the route."""

    invite: Invite
    route: Route = field(repr=False)

    async def ready(self) -> None:
        """Return once the route could carry something. Raises `Unreachable` when nothing can leave now."""
        if isinstance(self.route, Starting):
            await self.route.ready(self.invite.address)

    async def chain(self) -> tuple[SignedHead, ...]:
        """All heads, each signed by the pinned key. Raises `Unreachable`, `Malformed`, `RejectedProof`."""
        return parse_chain(await self._get("heads", MAX_CHAIN), self.invite.key, self.invite.study)

    async def body(self, head: Head) -> bytes:
        """The body of a verified head. Raises `Unreachable`, `Malformed`."""
        return check_body(head, await self._get(f"documents/{head.number}", head.length))

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
        answer = await self.route.get(self.invite.address, self._path(what), limit)
        if answer.status != 200:
            raise Unreachable(f"the aggregator does not offer this study now (status {answer.status}); try again later")
        return answer.body

    async def _post(self, what: str, body: bytes) -> str:
        answer = await self.route.post(self.invite.address, self._path(what), body, ANSWER_BYTES)
        if answer.status != 200:
            raise Unreachable(f"the aggregator did not take it (status {answer.status}); it is tried again later")
        return parse_answer(answer.body)

    def _path(self, what: str) -> str:
        return f"/v1/{self.invite.study.hex()}/{what}"
