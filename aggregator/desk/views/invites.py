"""The pages that hand out a study: links as cards, as a table and as a mail, and one page for a whole class."""

from __future__ import annotations

import asyncio

from aiohttp import web

from aggregator.desk.views.desk_page import DeskPage, field_of
from aggregator.study.handout import PLACE, installing, limits, limits_to_change, link_table, mail, wheel
from aggregator.study.live import LiveStudy
from anon.errors import Malformed, Refused
from anon.protocols.tellers import presented_tellers
from anon.transparency.fingerprint import words
from anon.wire.invite import parse_invite

MOST_INVITES = 1000
QR_INVITES = 200
"""So many invites at once are also drawn as codes."""


class InvitePages(DeskPage):
    """Links are shown by the answer that draws them, and kept nowhere."""

    async def invites(self, request: web.Request) -> web.Response:
        """Draw invites."""
        live = self._live(request)
        wanted, address = await field_of(request, "count"), (await field_of(request, "address")).strip()
        if not wanted.isascii() or not wanted.isdigit() or not 1 <= int(wanted[:9]) <= MOST_INVITES:
            raise Malformed(f"count: expected a whole number from 1 to {MOST_INVITES}")
        if live.phase != "enrolling":
            raise Refused(f"enrolment of this study has closed ({live.state}); an invite would admit nobody")
        count = int(wanted) if live.manifest.cohort.admission == "invite" else 1
        links = [link.link() for link in await self._aggregator.create_invites(live.study, count, address)]
        return await self._handout(request, live, links, address)

    async def class_page(self, request: web.Request) -> web.Response:
        """One page for a whole class: the link that all use, or the way to a card for each."""
        live = self._live(request)
        address = self._address(live)
        if live.manifest.cohort.admission == "invite" or not address or live.phase != "enrolling":
            return await self._handout(request, live, [], address)
        (link,) = await self._aggregator.create_invites(live.study, 1, address)
        return await self._handout(request, live, [link.link()], address)

    async def invite_table(self, request: web.Request) -> web.Response:
        """The links of a page that was just shown, as a CSV file."""
        live = self._live(request)
        links = (await field_of(request, "links")).split()
        if not links or any(parse_invite(link).study != live.study for link in links):
            raise Malformed("links: expected links to this study; draw them again")
        named = {"Content-Disposition": f'attachment; filename="invites-{live.study.hex()[:8]}.csv"'}
        return web.Response(text=link_table(links), content_type="text/csv", headers=named)

    async def _handout(self, request: web.Request, live: LiveStudy, links: list[str], address: str) -> web.Response:
        own = live.manifest.cohort.admission == "invite"
        return await asyncio.to_thread(
            self._html,
            "invites.html",
            request,
            live=live,
            links=links,
            own=own,
            with_codes=len(links) <= QR_INVITES,
            limits=limits(address, live.manifest, desk=True) if address else "",
            mail=mail(live.manifest, PLACE if own or not links else links[0]),
            lower=limits_to_change(live.manifest),
            wheel=wheel(),
            installing=installing(live.manifest),
            words=words(live.study),
            tellers=presented_tellers(live.manifest),
            address=address,
            closed=live.phase != "enrolling",
            most_invites=MOST_INVITES,
        )
