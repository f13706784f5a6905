"""Reading forms: what is not as a page of ours writes it is refused with what to do."""

from __future__ import annotations

from aiohttp import BodyPartReader, MultipartReader, web

from anon.errors import Malformed, Refused
from anon.kit.page.gate import FORM_FIELD
from anon.kit.page.guard import UNREADABLE
from anon.text.sentences import Term, say
from peer.web.languages import figure
from peer.web.site import SITE

_FIELD = 4096
_MOST_FIELDS = 16


async def form_text(request: web.Request, name: str) -> str:
    """A field, without blanks around it; empty when there is none."""
    value = (await request.post()).get(name, "")
    return value.strip() if isinstance(value, str) else ""


async def form_decimal(request: web.Request, name: str) -> str:
    """A number as `nano` reads it: the page's own decimal comma, as it stands in the form already, is a point."""
    text = await form_text(request, name)
    return text.replace(",", ".") if figure(".") == "," and text.count(",") == 1 and "." not in text else text


async def form_whole(request: web.Request, name: str, what: str) -> int:
    """A whole number. Raises `Malformed`."""
    text = await form_text(request, name)
    if not text.isdecimal() or len(text) > 15:
        raise Malformed(say("{what}: expected a whole number; go back and correct it", what=Term(what)))
    return int(text)


async def form_file(request: web.Request, name: str) -> tuple[BodyPartReader, dict[str, str]]:
    """The file of a large form, not read yet, and the fields before it. The form's token must be one of them.

    Raises `Malformed` for what is no such form, `Refused` for one without the file or with another page's token.
    """
    site, fields = request.app[SITE], dict[str, str]()
    try:
        parts = await _multipart(request)
        while (part := await parts.next()) is not None:
            if not isinstance(part, BodyPartReader):
                break
            if part.name == name and site.gate.fits(request.cookies[site.gate.cookie], fields.get(FORM_FIELD, "")):
                return part, fields
            if len(fields) == _MOST_FIELDS:  # they are held in memory, and nothing else bounds such a form
                raise Malformed(say("a form with more fields than any of this page; load the page again"))
            fields[part.name or ""] = (await part.read_chunk(_FIELD)).decode("utf-8", "replace")
    except UNREADABLE:
        raise Malformed(say("expected a form with a file; load the page again and choose the file")) from None
    raise Refused(say("no file came with this form of this page; load the page again and choose a file"))


async def _multipart(request: web.Request) -> MultipartReader:
    if request.content_type != "multipart/form-data":
        raise Malformed(say("expected a form with a file; load the page again and choose the file"))
    return await request.multipart()
