"""Federated jobs on the owner's page: what each asks and costs, what was answered, and the owner's yes or no."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from aiohttp import web

from anon.text.sentences import Sentence, say
from peer.ledger.job_store import JobState, JobStore
from peer.store.home import PeerHome
from peer.web.site import SITE, Site

routes = web.RouteTableDef()
PLACE = "/federated"
STATES: dict[JobState, Sentence] = {
    JobState.ASKED: say("It waits for your answer. Nothing leaves for it before a yes."),
    JobState.AGREED: say("You said yes."),
    JobState.STOPPED: say("It was stopped, and nothing leaves for it until you answer again."),
    JobState.ENDED: say("You said no. Nothing more leaves for it."),
}


@routes.get(PLACE)
async def federated(request: web.Request) -> web.Response:
    """All jobs."""
    site = request.app[SITE]
    with _opened(site) as store:
        return site.page(request, "federated.html", jobs=store.jobs(), states=STATES)


@routes.post(PLACE + "/{study}/yes")
async def said_yes(request: web.Request) -> web.Response:
    """The owner's yes."""
    site = request.app[SITE]
    with _opened(site) as store:
        store.agree(site.study_of(request))
    return site.onward(request, PLACE, say("Agreed. Its messages leave when they are asked for."))


@routes.post(PLACE + "/{study}/no")
async def said_no(request: web.Request) -> web.Response:
    """The owner's no, before or after a yes."""
    site = request.app[SITE]
    with _opened(site) as store:
        store.refuse(site.study_of(request))
    return site.onward(request, PLACE, say("Nothing more leaves for it. What was reserved and not spent is back."))


def asking(home: Path) -> list[tuple[str, str]]:
    """The titles of the jobs that are not over, each with its page."""
    with closing(JobStore(PeerHome(home).store_path, os.urandom)) as store:
        return [(known.terms.title, PLACE) for known in store.jobs() if known.state is not JobState.ENDED]


@contextmanager
def _opened(site: Site) -> Iterator[JobStore]:
    with closing(JobStore(PeerHome(site.data_path.parent).store_path, os.urandom)) as store:
        yield store
