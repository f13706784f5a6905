"""The acceptance of a packet: the numbered steps of design section 6, pure, on bytes.

`PacketIntake` (`aggregator.intake.packets`) performs them in this order and answers with one word
(`anon.wire.replies`). A packet is accepted when all hold:

 1. size: every packet of a study has one                   `open_packet`
 2. unseal, with the study's key                            `open_packet`
 3. canonical decode                                        `open_packet`
 4. this study; known slot, of its own round, and survey     `open_packet`
 5. digest already accepted: the same answer, also after closing   `acknowledged`
 6. window by arrival, and its packets not counted yet      `check_window`
 7. the draw matches the tag (`anon.protocols.sortition.draw`)     `check_report`
 8. report well formed for the survey's mechanism, or of the length of an exact survey's public share   `check_report`
 9. token holds (`aggregator.intake.token_jobs.verify_tokens`), in batches off the event loop
10. one transaction inserting unique (slot, tag)            `PacketStore.insert`, then `settle`

In a study with cover traffic a plaintext may be a dummy. It goes through steps 1 to 4 and 6 and is then dropped with
the word of an accepted packet: it has no digest, draw, report, token or row.

Sealed shares are of their recipients' lengths (step 3). Their recipients alone can open them, and refuse them.
Decided in `PacketIntake` between steps 5 and 6: before credentials are issued, the word is `window-not-open`.
Not decided here: who sent it. Nothing of an enrolment can be reached from this module.
"""

from __future__ import annotations

from attrs import field, frozen

from aggregator.rules.accepted import AcceptedPacket
from aggregator.rules.refusal import PacketRefused
from aggregator.rules.unseal import StudyOpener
from anon.crypto import labels
from anon.errors import Malformed
from anon.protocols.posts import layout_of_packets
from anon.protocols.sortition import draw, occasion_of, tag_context
from anon.study.manifest import Manifest, Window
from anon.wire.cbor import sha256
from anon.wire.packets import (
    Dummy,
    Layout,
    Occasion,
    Packet,
    PublishedPacket,
    packet_info,
    parse_packet,
)
from anon.wire.replies import ACCEPTED


@frozen
class OpenedPacket:
    """A packet that passed steps 1 to 4, in its published form. Its token is not verified yet."""

    packet: PublishedPacket
    kept: AcceptedPacket

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
    """The parts of a study that steps 1 to 4 need. `sealing_key`: the secret one, 32 bytes; the audit has none.

    `layout`: the lengths that all packets have. `occasions`: the slots, and `contexts` the contexts of their tags.
    """

    study: bytes
    manifest: Manifest
    sealing_key: bytes = field(repr=False)
    layout: Layout = field(init=False)
    occasions: tuple[Occasion, ...] = field(init=False, repr=False)
    contexts: tuple[bytes, ...] = field(init=False, repr=False)
    opener: StudyOpener = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        manifest = self.manifest
        computed = {
            "layout": layout_of_packets(manifest),
            "occasions": tuple(occasion_of(manifest, slot.slot) for slot in manifest.slots),
            "contexts": tuple(tag_context(manifest, slot.slot) for slot in manifest.slots),
            "opener": StudyOpener(self.sealing_key),
        }
        for name, value in computed.items():
            object.__setattr__(self, name, value)

    def token_item(self, packet: PublishedPacket) -> tuple[bytes, bytes, bytes]:
        """Token, pseudonym context and presentation header: what step 9 needs."""
        return packet.token, self.contexts[packet.slot], packet.presentation_header()


def open_packet(rules: PacketRules, sealed_untrusted: bytes) -> OpenedPacket | OpenedDummy:
    """Steps 1 to 4. Raises `PacketRefused`."""
    if len(sealed_untrusted) != rules.layout.sealed_size:  # 1.
        raise PacketRefused("wrong-size")
    try:
        padded = rules.opener.open(sealed_untrusted, packet_info(rules.study))  # 2.
    except Malformed:
        raise PacketRefused("sealed-to-another-key") from None
    try:
        packet = parse_packet(padded, rules.layout)  # 3.
    except Malformed:
        raise PacketRefused("malformed") from None
    if isinstance(packet, Packet):
        return _known(rules, packet)
    if not rules.manifest.cover.connections:
        raise PacketRefused("malformed")
    return _dummy(rules, packet)


def _dummy(rules: PacketRules, dummy: Dummy) -> OpenedDummy:
    """Step 4 for cover traffic. Raises `PacketRefused`."""
    if dummy.study != rules.study:
        raise PacketRefused("wrong-study")
    window_named = (dummy.opens, dummy.closes)
    named = next((window for window in rules.manifest.windows if (window.opens, window.closes) == window_named), None)
    if named is None:
        raise PacketRefused("unknown-survey")
    return OpenedDummy(named)


def _known(rules: PacketRules, sent: Packet) -> OpenedPacket:
    packet = sent.published()
    demand_known(rules, packet)
    plaintext = packet.to_bytes()
    digest = sha256(labels.PACKET_DIGEST, plaintext)
    kept = AcceptedPacket(packet.slot, packet.tag, packet.survey, plaintext, digest, sent.shares)
    return OpenedPacket(packet, kept)


def demand_known(rules: PacketRules, packet: PublishedPacket) -> None:
    """Step 4, also for a packet out of a transcript. Raises `PacketRefused`."""
    if packet.study != rules.study:
        raise PacketRefused("wrong-study")
    if len(packet.token) != rules.layout.token or len(packet.digests) != len(rules.layout.shares):
        raise PacketRefused("malformed")
    if not 0 <= packet.slot < len(rules.manifest.slots):  # 4.
        raise PacketRefused("unknown-slot")
    if packet.occasion != rules.occasions[packet.slot]:
        raise PacketRefused("unknown-slot")
    if not 0 <= packet.survey < len(rules.manifest.surveys):
        raise PacketRefused("unknown-survey")


def acknowledged(opened: OpenedPacket, stored_digest: bytes | None) -> bool:
    """Step 5: whether exactly this packet was accepted before."""
    return stored_digest == opened.kept.digest


def check_window(rules: PacketRules, opened: OpenedPacket | OpenedDummy, arrived: float, frozen_until: int) -> None:
    """Step 6: by arrival, and never once the window's packets were counted. Raises `PacketRefused`."""
    window = opened.window(rules)
    if arrived < window.opens:
        raise PacketRefused("window-not-open")
    if arrived >= window.closes or window.closes <= frozen_until:
        raise PacketRefused("window-closed")


def check_report(rules: PacketRules, packet: PublishedPacket, seed: bytes) -> None:
    """Steps 7 and 8. Raises `PacketRefused`."""
    if draw(rules.manifest.slots[packet.slot], seed, packet.tag) != packet.survey:  # 7.
        raise PacketRefused("wrong-draw")
    try:
        rules.manifest.surveys[packet.survey].demand_report(packet.report)  # 8.
    except Malformed:
        raise PacketRefused("malformed-report") from None


def settle(opened: OpenedPacket, holder: bytes | None) -> str:
    """Step 10: accepted when this packet holds its (slot, tag), refused when another does, or when no packet does
    because its window was frozen meanwhile."""
    if holder is None:
        return "window-closed"
    return ACCEPTED if holder == opened.kept.digest else "tag-spent"
