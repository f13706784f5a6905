"""Holding a chain that came to what the home saw of it, whoever fetched it and what for: an aggregator has one story.

The runner's fetches are held so by `peer.run.exchanges`. A look, a second yes, a prediction and a report are held here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anon.errors import Malformed, Refused
from anon.text.sentences import say
from anon.transparency.documents import SignedHead
from anon.wire.invite import Invite
from peer.rules.checks import check_continued, extend_chain
from peer.rules.distrust import Distrust
from peer.threads import heads_off_loop, off_loop

if TYPE_CHECKING:
    from peer.network.client import Hold
    from peer.store.records import Study
    from peer.store.store import Store


async def unheld(fresh: tuple[SignedHead, ...]) -> tuple[SignedHead, ...]:
    """For somebody without a home, who saw nothing before."""
    return fresh


def held_to(store: Store, invite: Invite) -> Hold:
    """How a chain of this study is taken: as the longer of it and the one seen, which is kept.

    A study that was never joined here has none. Two stories stop the study, with the evidence. Raises `Distrust`,
    `Malformed` for an invite with another key.
    """

    async def hold(fresh: tuple[SignedHead, ...]) -> tuple[SignedHead, ...]:
        try:
            study = store.study(invite.study)
        except Refused:
            return fresh
        if study.aggregator != invite.key:
            raise Malformed(say("invite: another key than the manifest names; ask for the invite again"))
        try:
            chain, longer = await heads_off_loop(_continued, study, fresh)
            if longer:
                store.see_chain(study.study, chain, extend_chain)
        except Distrust as fault:
            store.stop(study.study, str(fault), await off_loop(fault.evidence))
            raise
        return chain

    return hold


def _continued(study: Study, fresh: tuple[SignedHead, ...]) -> tuple[tuple[SignedHead, ...], bool]:
    """The longer chain, and True if it says more than was seen."""
    seen = study.chain
    chain = check_continued(study.manifest, seen, fresh)
    return chain, len(chain) > len(seen)
