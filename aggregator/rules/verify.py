"""The acceptance of a packet: the numbered steps of design section 6, pure, on bytes.

`PacketIntake` (`aggregator.intake.packets`) performs them in this order and answers with one word
(`anon.wire.replies`). A packet is accepted when all hold:

 1. size: every packet of a study has one                   `open_packet`
 2. unseal, with the study's key                            `open_packet`
 3. canonical decode (`anon.wire.messages.parse_packet`)    `open_packet`
 4. this study; known slot and survey                       `open_packet`
 5. digest already accepted: the same answer, also after closing   `acknowledged`
 6. window by arrival, and its packets not counted yet      `check_window`
 7. the draw matches the tag (`anon.protocols.sortition.draw`)     `check_report`
 8. report well formed for the survey's mechanism, or of the length of an exact survey's shares   `check_report`
 9. token holds (`aggregator.intake.crypto_jobs.verify_tokens`), in batches off the event loop
10. one transaction inserting unique (slot, tag)            `PacketStore.insert`, then `settle`

In a study with cover traffic a plaintext may be a dummy. It goes through steps 1 to 4 and 6 and is then dropped with
the word of an accepted packet: it has no digest, draw, report, token or row.

Decided in `PacketIntake` between steps 5 and 6: before credentials are issued, the word is `window-not-open`.
Not decided here: who sent it. Nothing of an enrolment can be reached from this module.
"""

from __future__ import annotations

from attrs import field, frozen

from aggregator.rules.accepted import Accepted
from aggregator.rules.refusal import PacketRefused
from anon import labels
from anon.credential import token_size
from anon.errors import Malformed
from anon.protocols.sortition import draw, slot_context
from anon.study.manifest import Manifest, Window
from anon.wire.cbor import sha256
from anon.wire.messages import SEAL_OVERHEAD, Packet, packet_size, parse_dummy, parse_packet, unpad, unseal
from anon.wire.replies import ACCEPTED

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
    """The parts of a study that steps 1 to 4 need. Bytes: sealing key 32."""

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
    """Steps 1 to 4. Raises `PacketRefused`."""
    if len(sealed_untrusted) != rules.sealed_bytes:  # 1.
        raise PacketRefused("wrong-size")
    try:
        padded = unseal(sealed_untrusted, rules.sealing_key)  # 2.
    except Malformed:
        raise PacketRefused("sealed-to-another-key") from None
    try:
        plaintext = unpad(padded, rules.plain_bytes)  # 3.
    except Malformed:
        raise PacketRefused("malformed") from None
    dummy = _dummy(rules, plaintext) if rules.manifest.cover.connections else None
    return dummy or read_packet(rules, plaintext)


def _dummy(rules: PacketRules, plaintext_untrusted: bytes) -> OpenedDummy | None:
    """Steps 3 and 4 for cover traffic; None for anything else. Raises `PacketRefused`."""
    try:
        dummy = parse_dummy(plaintext_untrusted)
    except Malformed:
        return None
    if dummy.study != rules.study:
        raise PacketRefused("wrong-study")
    window_named = (dummy.opens, dummy.closes)
    named = next((window for window in rules.manifest.windows if (window.opens, window.closes) == window_named), None)
    if named is None:
        raise PacketRefused("unknown-survey")
    return OpenedDummy(named)


def read_packet(rules: PacketRules, plaintext_untrusted: bytes) -> Opened:
    """Steps 3 and 4, also for a plaintext out of a transcript. Raises `PacketRefused`."""
    try:
        packet = parse_packet(plaintext_untrusted)
    except Malformed:
        raise PacketRefused("malformed") from None
    if packet.study != rules.study:
        raise PacketRefused("wrong-study")
    if len(packet.token) != rules.token_bytes:
        raise PacketRefused("malformed")
    if not 0 <= packet.slot < len(rules.manifest.slots):  # 4.
        raise PacketRefused("unknown-slot")
    if not 0 <= packet.survey < len(rules.manifest.surveys):
        raise PacketRefused("unknown-survey")
    digest = sha256(labels.PACKET_DIGEST, plaintext_untrusted)
    kept = Accepted(packet.slot, packet.token[:TAG_BYTES], packet.survey, plaintext_untrusted, digest)
    return Opened(packet, kept)


def acknowledged(opened: Opened, stored_digest: bytes | None) -> bool:
    """Step 5: whether exactly this packet was accepted before."""
    return stored_digest == opened.kept.digest


def check_window(rules: PacketRules, opened: Opened | OpenedDummy, arrived: float, frozen_until: int) -> None:
    """Step 6: by arrival, and never once the window's packets were counted. Raises `PacketRefused`."""
    window = opened.window(rules)
    if arrived < window.opens:
        raise PacketRefused("window-not-open")
    if arrived >= window.closes or window.closes <= frozen_until:
        raise PacketRefused("window-closed")


def check_report(rules: PacketRules, opened: Opened, seed: bytes) -> None:
    """Steps 7 and 8. Raises `PacketRefused`."""
    packet = opened.packet
    if draw(rules.manifest.slots[packet.slot], seed, opened.kept.tag) != packet.survey:  # 7.
        raise PacketRefused("wrong-draw")
    try:
        rules.manifest.surveys[packet.survey].demand_report(packet.report)  # 8.
    except Malformed:
        raise PacketRefused("malformed-report") from None


def settle(opened: Opened, holder: bytes) -> str:
    """Step 10: accepted when this packet holds its (slot, tag), refused when another does."""
    return ACCEPTED if holder == opened.kept.digest else "tag-spent"
