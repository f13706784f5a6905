"""The aggregator's own seat among members who write: what it says after a round, from secrets of its own.

Its random bytes follow from the study's secrets and all that it read, so that a crash repeats what was said. Only the
seat can make its documents again: an audit holds them to their place and length alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from aggregator.protocols.contract import SeatedPart
from aggregator.study.live import LiveStudy
from anon.crypto import labels
from anon.protocols.board import PAGE, mail_of, read_page
from anon.protocols.contract import Place
from anon.wire.cbor import encode
from anon.wire.letters import AGGREGATOR


def seat_document(study: LiveStudy, number: int, documents: Mapping[Place, bytes]) -> bytes:
    """The document of the seat after a round. Raises `TypeError` for a protocol in which the aggregator has no seat."""
    part, manifest = study.protocol_part, study.manifest
    if not isinstance(part, SeatedPart):
        raise TypeError("a seat's document, of a protocol in which the aggregator has none")
    pages = {at: read_page(manifest, at, body) for (kind, at), body in documents.items() if kind == PAGE}
    mail = mail_of(manifest, pages, AGGREGATOR, study.packet_intake.rules.opener.open)
    read = [[kind, at, hashlib.sha256(body).digest()] for (kind, at), body in sorted(documents.items())]
    key = study.secrets.sealing_key
    return part.answered(manifest, number, documents, mail, _drawn(key, -1, ())(32), _drawn(key, number, read))


def _drawn(secret: bytes, number: int, read: Sequence[object]) -> Callable[[int], bytes]:
    """Random bytes as long as SHAKE-256 is a pseudorandom function; the same again for the same round and board."""
    calls = count()
    return lambda size: hashlib.shake_256(
        encode([labels.LETTER_SECRET, secret, number, list(read), next(calls)])
    ).digest(size)
