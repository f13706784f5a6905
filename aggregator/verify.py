"""Whether a packet is accepted: the numbered steps of design section 6, pure, on bytes.

`accept` (in `door`) performs them in this order and answers with one word:

 1. size             `open_packet`
 2. unseal           `open_packet`
 3. canonical decode `open_packet`
 4. known slot and survey                                   `open_packet`
 5. digest already accepted: the same answer, also after closing   `acknowledged`
 6. window by arrival                                       `check_report`
 7. the draw matches the tag                                `check_report`
 8. report well formed                                      `check_report`
 9. token            `aggregator.work.verify_tokens`, in batches off the event loop
10. one transaction inserting unique (slot, tag)            `PacketStore.insert`, then `settle`

In a study with cover traffic a plaintext may be a dummy. It goes through steps 1 to 4 and 6 and is then dropped with
the word of an accepted packet: it has no digest, draw, report, token or row.

Not decided here: who sent it. Nothing of an enrolment can be reached from this module.
"""

from __future__ import annotations

from attrs import field, frozen

from aggregator.answer import Turned
from aggregator.packet_store import Accepted
from anon import labels
from anon.answers import ACCEPTED
from anon.credential import token_size
from anon.encoding import sha256
from anon.errors import Malformed
from anon.messages import SEAL_OVERHEAD, Packet, packet_size, parse_dummy, parse_packet, unpad, unseal
from anon.protocols.histogram.tables import draw, slot_context
from anon.study.manifest import Manifest, Window

TAG_BYTES = 48


@frozen
class Opened:
    """A packet that passed steps 1 to 4. Its token is not verified yet."""

    packet: Packet
    kept: Accepted

    def token_item(self) -> tuple[bytes, bytes, bytes]:
        """Token, pseudonym context and presentation header: what step 9 needs."""
        packet = self.packet
        return packet.token, slot_context(packet.study, packet.slot), packet.presentation_header()

    def window(self, rules: PacketRules) -> Window:
        """When it may arrive."""
        return rules.manifest.surveys[self.packet.survey].window


@frozen
class OpenedDummy:
    """Cover traffic that passed steps 1 to 4."""

    named: Window

    def window(self, _rules: PacketRules) -> Window:
        """When it may arrive."""
        return self.named


@frozen
class PacketRules:
    """What steps 1 to 4 need of a study. Bytes: sealing key 32."""

    study: bytes
    manifest: Manifest
    sealing_key: bytes = field(repr=False)
    token_bytes: int = field(init=False)
    plain_bytes: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "token_bytes", token_size(self.manifest.packets))
        object.__setattr__(self, "plain_bytes", packet_size(self.manifest.report_size, self.token_bytes))

    @property
    def sealed_bytes(self) -> int:
        """The size of every packet of the study on the wire."""
        return self.plain_bytes + SEAL_OVERHEAD


def open_packet(rules: PacketRules, sealed_untrusted: bytes) -> Opened | OpenedDummy:
    """Steps 1 to 4. Raises `Turned`."""
    if len(sealed_untrusted) != rules.sealed_bytes:  # 1.
        raise Turned("wrong-size")
    try:
        padded = unseal(sealed_untrusted, rules.sealing_key)  # 2.
    except Malformed:
        raise Turned("sealed-to-another-key") from None
    try:
        plaintext = unpad(padded, rules.plain_bytes)  # 3.
    except Malformed:
        raise Turned("malformed") from None
    dummy = _dummy(rules, plaintext) if rules.manifest.cover.connections else None
    return dummy or read_packet(rules, plaintext)


def _dummy(rules: PacketRules, plaintext_untrusted: bytes) -> OpenedDummy | None:
    """Steps 3 and 4 for cover traffic; None for anything else. Raises `Turned`."""
    try:
        dummy = parse_dummy(plaintext_untrusted)
    except Malformed:
        return None
    if dummy.study != rules.study:
        raise Turned("wrong-study")
    asked = (dummy.opens, dummy.closes)
    named = next((one for one in rules.manifest.windows if (one.opens, one.closes) == asked), None)
    if named is None:
        raise Turned("unknown-survey")
    return OpenedDummy(named)


def read_packet(rules: PacketRules, plaintext_untrusted: bytes) -> Opened:
    """Steps 3 and 4, also for a plaintext out of a transcript. Raises `Turned`."""
    try:
        packet = parse_packet(plaintext_untrusted)
    except Malformed:
        raise Turned("malformed") from None
    if packet.study != rules.study:
        raise Turned("wrong-study")
    if len(packet.token) != rules.token_bytes:
        raise Turned("malformed")
    if not 0 <= packet.slot < len(rules.manifest.slots):  # 4.
        raise Turned("unknown-slot")
    if not 0 <= packet.survey < len(rules.manifest.surveys):
        raise Turned("unknown-survey")
    digest = sha256(labels.PACKET_DIGEST, plaintext_untrusted)
    kept = Accepted(packet.slot, packet.token[:TAG_BYTES], packet.survey, plaintext_untrusted, digest)
    return Opened(packet, kept)


def acknowledged(opened: Opened, stored_digest: bytes | None) -> bool:
    """Step 5: whether exactly this packet was accepted before."""
    return stored_digest == opened.kept.digest


def check_window(rules: PacketRules, opened: Opened | OpenedDummy, arrived: float, frozen_until: int) -> None:
    """Step 6: by arrival, and never once the window's packets were counted. Raises `Turned`."""
    window = opened.window(rules)
    if arrived < window.opens:
        raise Turned("window-not-open")
    if arrived >= window.closes or window.closes <= frozen_until:
        raise Turned("window-closed")


def check_report(rules: PacketRules, opened: Opened, seed: bytes) -> None:
    """Steps 7 and 8. Raises `Turned`."""
    packet = opened.packet
    if draw(rules.manifest.slots[packet.slot], seed, opened.kept.tag) != packet.survey:  # 7.
        raise Turned("wrong-draw")
    try:
        rules.manifest.surveys[packet.survey].build().parse(packet.report)  # 8.
    except Malformed:
        raise Turned("malformed-report") from None


def settle(opened: Opened, holder: bytes) -> str:
    """Step 10: accepted when this packet holds its (slot, tag), refused when another does."""
    return ACCEPTED if holder == opened.kept.digest else "tag-spent"
