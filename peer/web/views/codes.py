"""A link out of a picture: the QR code that staff show, photographed or saved."""

from __future__ import annotations

from aiohttp import BodyPartReader, web

from anon.errors import Refused
from anon.text.sentences import say
from anon.wire.invite import parse_invite
from peer.web.forms import form_file
from peer.web.qr_reader import LARGEST, text_in_picture
from peer.web.site import SITE

routes = web.RouteTableDef()
PICTURE = "/start/picture"


@routes.post(PICTURE)
async def pictured(request: web.Request) -> web.Response:
    """The link in the picture, to be looked at like a pasted one. The picture is kept nowhere."""
    site = request.app[SITE]
    part, _ = await form_file(request, "picture")
    text = await site.threads.asked(text_in_picture, await _whole(part))
    invite = parse_invite(text)
    site.invites[invite.study] = invite
    return site.onward(request, "/start")


async def _whole(part: BodyPartReader) -> bytes:
    read = bytearray()
    while piece := await part.read_chunk(2**18):
        read += piece
        if len(read) > LARGEST:
            raise Refused(say(
                "a picture of more than {largest} MB; make it smaller, or paste the link",
                largest=LARGEST // 2 ** 20,
            ))
    return bytes(read)
