"""The protocol `trees` on the owner's machine: one private tree of its records, as an open text of one size. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from anon.crypto import labels
from anon.ldp import RandomBytes
from anon.noise.bernoulli import Coins
from anon.protocols.board import Pages
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.outgoing import OpenShares
from anon.protocols.trees.attributes import LabelledRow
from anon.protocols.trees.growing import grown
from anon.protocols.trees.layout import labelled, plan_for
from anon.protocols.trees.written import write
from anon.study.manifest import Manifest, Survey
from anon.values import frozen
from anon.wire.cbor import encode
from peer.protocols.contract import Correspondence, LettersAlone

_SEED: Final = 32


@frozen
class TreesPart(LettersAlone):
    """See `peer.protocols.contract`."""

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """None is read."""

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        """A seed of the noise: the number of draws depends on the records, so a tree expands it."""
        return _SEED

    def reads(self, manifest: Manifest, survey: Survey, tag: bytes, pages: Pages) -> bool:
        """Always."""
        return True

    def letters(
        self,
        manifest: Manifest,
        survey: Survey,
        record: Record | None,
        known: Correspondence,
        documents: Sequence[DocumentArrived],
        random_bytes: RandomBytes,
    ) -> OpenShares:
        """The tree. Of a member without records it is one of noise alone."""
        plan, rows = plan_for(manifest), labelled(manifest, record) if record is not None else []
        coins = Coins(_stream(random_bytes(_SEED), rows))
        return OpenShares(write(grown(rows, plan, coins), plan).encode("ascii"), ())


def _stream(seed: bytes, rows: Sequence[LabelledRow]) -> Callable[[int], bytes]:
    """Random bytes without end. Other records get others, also from a seed that came back."""
    grounds = [labels.TREES, seed, [[*held.row, held.label] for held in rows]]
    told = hashlib.sha256(encode(grounds)).digest()
    calls = count()
    return lambda size: hashlib.shake_256(told + next(calls).to_bytes(8, "big")).digest(size)
