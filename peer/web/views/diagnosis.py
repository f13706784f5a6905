"""What works and what does not, with one next action per fault."""

from __future__ import annotations

import asyncio
import shutil

from aiohttp import web

from anon.doctor import PEER_CHECKS, Check
from peer.own_data import own_data
from peer.session import LAST
from peer.web.engine import Running
from peer.web.site import SITE, Site

routes = web.RouteTableDef()
_LOW_DISK = 256 * 2**20


@routes.get("/diagnosis")
async def diagnosis(request: web.Request) -> web.StreamResponse:
    """The installation's checks (`anonml doctor`) and this home's."""
    site = request.app[SITE]
    looked = await site.work("diagnosis", lambda: asyncio.to_thread(_installation))
    if not looked.done():
        return site.waiting(request, "Looking at this installation")
    site.forget("diagnosis")
    return site.page(request, "diagnosis.html", checks=[*home_checks(site), *looked.result()])


def _installation() -> list[Check]:
    return [check() for check in PEER_CHECKS]


def home_checks(site: Site) -> list[Check]:
    """What this home needs: somebody who runs it, data that its studies read, room, and studies without a fault."""
    checks = [_running(site), _unpaused(site), _room(site)]
    for one in site.peer.status():
        if one.state in LAST:
            continue
        manifest = site.peer.store.study(one.study).manifest
        lacks = own_data(site.data_path, manifest.tables).warnings
        action = f"import what is missing on the page Data: {lacks[0]}" if lacks else ""
        checks.append(Check(f"data for {one.title}", not lacks, action, needed=False))
        if one.reason:
            checks.append(Check(f"the aggregator of {one.title}", False, f"ask staff about this: {one.reason}"))
    return checks


def _running(site: Site) -> Check:
    name = "your studies are being run"
    if site.engine.running is Running.HERE:
        return Check(name, True)
    if site.engine.running is Running.ELSEWHERE:
        return Check(f"{name} (by another process on this machine)", True)
    return Check(name, False, site.engine.fault or "close this program and start `anonml peer open` again")


def _unpaused(site: Site) -> Check:
    paused = site.peer.paused_until() is not None
    return Check("not paused", not paused, "press Go on, on the page Studies" if paused else "", needed=False)


def _room(site: Site) -> Check:
    enough = shutil.disk_usage(site.data_path.parent).free > _LOW_DISK
    return Check("room on the disk", enough, "" if enough else "free some: packets are stored before they leave")
