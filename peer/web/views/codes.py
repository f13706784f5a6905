"""A link out of a picture: the QR code that staff show, photographed or saved."""

from __future__ import annotations

import asyncio

from aiohttp import BodyPartReader, web

from anon.errors import Malformed, Refused
from anon.invite import parse_invite
from anon.page.security import FORM_FIELD
from peer.web.codes import LARGEST, text_in_picture
from peer.web.site import SITE

routes = web.RouteTableDef()
PICTURE = "/start/picture"
_FIELD = 4096


@routes.post(PICTURE)
async def pictured(request: web.Request) -> web.Response:
    """The link in the picture, to be looked at like a pasted one. The picture is kept nowhere."""
    site = request.app[SITE]
    picture = await _picture(request)
    text = await asyncio.to_thread(text_in_picture, picture)
    invite = parse_invite(text)
    site.invites[invite.study] = invite
    return site.onward(request, "/start")


async def _picture(request: web.Request) -> bytes:
    """The form's file, read after its token was checked."""
    site = request.app[SITE]
    if request.content_type != "multipart/form-data":
        raise Malformed("picture: expected a form with a file; load the page again")
    parts, admitted = await request.multipart(), False
    while (part := await parts.next()) is not None:
        if not isinstance(part, BodyPartReader):
            raise Malformed("picture: expected a plain form; choose the picture again")
        if part.name == "picture" and admitted:
            return await _whole(part)
        text = (await part.read_chunk(_FIELD)).decode("utf-8", "replace")
        if part.name == FORM_FIELD:
            admitted = site.gate.fits(request.cookies[site.gate.cookie], text)
    raise Refused("no picture came with this form of this page; load the page again and choose one")


async def _whole(part: BodyPartReader) -> bytes:
    read = bytearray()
    while piece := await part.read_chunk(2**18):
        read += piece
        if len(read) > LARGEST:
            raise Refused(f"a picture of more than {LARGEST // 2**20} MB; make it smaller, or paste the link")
    return bytes(read)
