"""Reading forms: what is not as a page of ours writes it is refused with what to do."""

from __future__ import annotations

from aiohttp import web

from anon.errors import Malformed


async def form_text(request: web.Request, name: str) -> str:
    """A field, without blanks around it; empty when there is none."""
    value = (await request.post()).get(name, "")
    return value.strip() if isinstance(value, str) else ""


async def form_whole(request: web.Request, name: str, what: str) -> int:
    """A whole number. Raises `Malformed`."""
    text = await form_text(request, name)
    if not text.isdecimal() or len(text) > 15:
        raise Malformed(f"{what}: expected a whole number; go back and correct it")
    return int(text)
