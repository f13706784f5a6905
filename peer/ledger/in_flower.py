"""The ledger around a Flower ClientApp (flwr 1.42, its Message API).

A reply is made anew: of the journal's bytes, the declared constants and the identifiers of the question. Nothing of
the reply that training made goes along, nor of an error that it raised. Messages of other kinds than training are
refused before the app sees them.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.ledger.declaration import UNREADABLE, DeclaredArray, JobTerms, Offer, OfferedArray, declaration_of
from peer.ledger.node import LOG, REFUSED, LedgerNode

if TYPE_CHECKING:
    from flwr.clientapp import ClientApp

ARRAYS: Final = "arrays"
METRICS: Final = "metrics"
"""The names of the records, as Flower's strategies have them."""
ROUND: Final = "server-round"
_NUMPY: Final = "numpy.ndarray"
_TYPES: Final = {"float32": "<f4", "float64": "<f8"}


def flower(app: ClientApp, home: str | Path, declared: JobTerms | Mapping[str, Any] | str | Path) -> ClientApp:
    """The app behind the ledger of this home. Needs the extra `flower`; raises `InvalidValue` for the declaration.

    Any failure of its own is a refusal, of which the server learns one constant text.
    """
    from flwr.app import ArrayRecord, Error, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.common.constant import ErrorCode

    node = LedgerNode(home, declaration_of(declared), os.urandom, time.time)

    class LedgerApp(ClientApp):  # type: ignore[misc]
        """The app as Flower calls it."""

        def __call__(self, message: Any, context: Any) -> Any:
            """Answer a message of the server."""
            refusal = Message(Error(ErrorCode.MOD_FAILED_PRECONDITION, REFUSED), reply_to=message)
            # Made before training, which could write into the message that it is given.
            reply = Message(RecordDict(), reply_to=message)
            try:
                name, base = _asked(message, node.terms)
                sent = node.begin(name)
                if sent is None:
                    sent = node.finish(name, _offered(app, message, context, node), base)
                parts = node.terms.split(sent)
                arrays = ArrayRecord({array.name: _made(array, parts[array.name]) for array in node.terms.arrays})
                reply.content = RecordDict({ARRAYS: arrays, METRICS: MetricRecord({**node.terms.constants})})
            except Exception as fault:
                LOG.error("nothing left: %s", fault if fault.__class__.__module__ == "anon.errors" else type(fault))
                return refusal
            return reply

    return LedgerApp()


def _asked(message: Any, terms: JobTerms) -> tuple[str, dict[str, Sequence[float]] | None]:
    """The server's name of the round, and the arrays that it sent where the job is relative to them. Raises `Refused`
    for anything but training."""
    from anon.errors import Refused

    if message.metadata.message_type != "train":
        raise Refused("the server asked for something else than training")
    configs = [config[ROUND] for config in message.content.config_records.values() if ROUND in config]
    name = f"round {configs[0]}" if configs else f"group {message.metadata.group_id or message.metadata.message_id}"
    if not terms.relative:
        return name, None
    offer = Offer({key: _read(array) for key, array in message.content.array_records[ARRAYS].items()})
    if (fault := terms.fault(offer)) is not None:
        raise Refused(fault)
    return name, {key: array.values for key, array in offer.arrays.items()}


def _offered(app: ClientApp, message: Any, context: Any, node: LedgerNode) -> Offer | None:
    """All that training would send; None where it failed."""
    try:
        reply = app(message, context)
        if reply.has_error():
            return None
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # its text may hold data, and would reach the server
        LOG.warning("training failed (%s): the declared missing answer leaves", type(fault))
        return None
    try:
        return _offer(reply.content)
    except Exception:
        return Offer({}, UNREADABLE)


def _offer(content: Any) -> Offer:
    arrays = content.array_records.get(ARRAYS, {})
    others = {
        name if record == METRICS else f"{record}.{name}"
        for records in (content.metric_records, content.config_records)
        for record, values in records.items()
        for name in (values or {""})
    }
    others |= {name for name in content.array_records if name != ARRAYS}
    return Offer({name: _read(array) for name, array in arrays.items()}, frozenset(others))


def _read(array: Any) -> OfferedArray:
    found = array.numpy()
    return OfferedArray(str(found.dtype), tuple(found.shape), found.ravel().tolist())


def _made(array: DeclaredArray, data: bytes) -> Any:
    """A Flower array of these bytes, in NumPy's format (its version 1.0)."""
    from flwr.app import Array

    about = f"{{'descr': '{_TYPES[array.dtype]}', 'fortran_order': False, 'shape': {array.shape}, }}"
    about += " " * (-(len(about) + 11) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(about)) + about.encode("ascii")
    return Array(array.dtype, array.shape, _NUMPY, head + data)
