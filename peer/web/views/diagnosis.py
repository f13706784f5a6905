"""The findings about this home and machine, with one next step per fault."""

from __future__ import annotations

import shutil

from aiohttp import web

from anon.kit.diagnosis.checks import TOR_CHECK, Check
from anon.kit.diagnosis.installation import PEER_CHECKS
from anon.text.foreign import Quoted
from anon.text.sentences import attributed, say
from anon.wire.addresses import is_loopback
from peer.rules.lifecycle import LAST
from peer.run.supervisor import Running
from peer.web.site import SITE, Site

routes = web.RouteTableDef()
_LOW_DISK = 256 * 2**20


@routes.get("/diagnosis")
async def diagnosis(request: web.Request) -> web.StreamResponse:
    """The installation's checks (`anonml doctor`) and this home's."""
    site = request.app[SITE]
    looked = await site.work("diagnosis", lambda: site.threads.asked(_installation, _may_need_tor(site)))
    if not looked.done():
        return site.waiting(request, say("Looking at this installation"))
    site.forget("diagnosis")
    return site.page(request, "diagnosis.html", checks=[*await home_checks(site), *looked.result()])


def _installation(with_tor: bool) -> list[Check]:
    return [check() for check in PEER_CHECKS if with_tor or check is not TOR_CHECK]


def _may_need_tor(site: Site) -> bool:
    """False where every study and link of this home is for this machine alone."""
    joined = (site.peer.store.study(status.study).invite for status in site.peer.status() if status.state not in LAST)
    addresses = [invite.address for invite in (*joined, *site.invites.values())]
    return not addresses or not all(map(is_loopback, addresses))


async def home_checks(site: Site) -> list[Check]:
    """The needs of this home: somebody who runs it, data that its studies read, room, and studies without a fault."""
    checks = [_running(site), _unpaused(site), _room(site)]
    for status in site.peer.status():
        if status.state in LAST:
            continue
        stored = site.peer.store.study(status.study)
        if stored.refused:
            checks.append(Check(say("the study {title}", title=Quoted(status.title)), False, stored.refused))
            continue
        lacks = (await site.own(stored.manifest.tables)).warnings
        action = say("import what is missing on the page Data: {lacks}", lacks=lacks[0]) if lacks else ""
        checks.append(Check(say("data for {title}", title=Quoted(status.title)), not lacks, action, needed=False))
        if fault := site.peer.store.troubles(status.study).fault:
            checks.append(Check(say("the study {title} goes on", title=Quoted(status.title)), False, fault))
        elif status.reason:
            checks.append(Check(say("the aggregator of {title}", title=Quoted(status.title)), False, say(
                "ask staff about this: {reason}",
                reason=attributed(status.reason),
            )))
    return checks


def _running(site: Site) -> Check:
    name = say("your studies are being run")
    if site.supervisor.running is Running.HERE:
        return Check(name, True)
    if site.supervisor.running is Running.ELSEWHERE:
        return Check(say("{name} (by another process on this machine)", name=name), True)
    return Check(name, False, site.supervisor.fault or say("close this program and start `anonml peer open` again"))


def _unpaused(site: Site) -> Check:
    paused = site.peer.paused_until() is not None
    return Check(say("not paused"), not paused, say("press Go on, on the page Studies") if paused else "", needed=False)


def _room(site: Site) -> Check:
    enough = shutil.disk_usage(site.data_path.parent).free > _LOW_DISK
    return Check(say(
        "room on the disk",
    ), enough, "" if enough else say("free some: packets are stored before they leave"))
