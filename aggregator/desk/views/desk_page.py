"""The common part of the desk's pages: templates, the fields of a form, the study that a page is about."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from aggregator.app import AggregatorApp
from aggregator.desk.rendering import environment, secret
from aggregator.intake.workers import Workers
from aggregator.network.onion_address import address_of_links
from aggregator.study.live import LiveStudy
from anon.errors import Malformed, Refused
from anon.kit.page.gate import Gate
from anon.kit.page.guard import form_token


class DeskPage:
    """One aggregator, which the same process serves to peers, and the browser's way to it."""

    def __init__(self, aggregator: AggregatorApp, gate: Gate, processes: int) -> None:
        self._workers = Workers(processes)  # not those that verify packets: they must not wait for an audit
        self._aggregator = aggregator
        self._gate = gate
        self._templates = environment()

    def refusal(self, status: int, reason: str) -> web.Response:
        """The page for a request that is not answered."""
        return self._html("refused.html", None, status, reason=reason, code=status)

    @property
    def _serving(self) -> str:
        return self._aggregator.home.served_at()

    def _address(self, live: LiveStudy) -> str:
        """The address in the links to a study."""
        return address_of_links(self._serving, live.manifest.address)

    @property
    def _home(self) -> Path:
        return self._aggregator.home.path

    def _live(self, request: web.Request) -> LiveStudy:
        try:
            return self._aggregator.study(bytes.fromhex(request.match_info["study"]))
        except Refused:
            raise web.HTTPNotFound(reason="no such study here") from None

    def _html(self, template: str, request: web.Request | None, status: int = 200, **known: Any) -> web.Response:
        token = "" if request is None else form_token(request, self._gate)
        body = self._templates.get_template(template).render(
            form_token=token, secret=partial(secret, token), now=time.time(), **known
        )
        return web.Response(text=body, status=status, content_type="text/html")


async def field_of(request: web.Request, name: str) -> str:
    """A field of the form, or the text of an uploaded file. Raises `Malformed`."""
    value = (await request.post()).get(name)
    if isinstance(value, web.FileField):
        try:
            return value.file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Malformed(f"{name}: expected a text file in UTF-8") from None
    if not isinstance(value, str):
        raise Malformed(f"{name}: missing from the form; load the page again")
    return value.replace("\r\n", "\n")


async def optional_field(request: web.Request, name: str) -> str:
    """A text field of the form, or nothing."""
    value = (await request.post()).get(name)
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""
