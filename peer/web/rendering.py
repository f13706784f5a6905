"""Pages from templates: everything is escaped, and each kind of figure has one way to be said."""

from __future__ import annotations

import io
from datetime import datetime

import segno
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from anon.extras import install
from anon.ldp import format_epsilon
from anon.page.wording import coded, sentence
from peer.web.codes import available

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60))


def environment() -> Environment:
    """The templates of this package."""
    found = Environment(
        loader=PackageLoader("peer.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"epsilon": format_epsilon, "instant": instant, "code": code, "lasting": lasting}
    found.filters["share"] = share
    found.filters |= {"coded": coded, "sentence": sentence}
    found.globals["reads_codes"] = available()
    found.globals["install_qr"] = install("qr")
    return found


def instant(seconds: float) -> Markup:
    """Unix seconds as this machine's clock shows them, for people and for programs."""
    at = datetime.fromtimestamp(seconds).astimezone()
    machine, shown = at.isoformat(timespec="seconds"), at.strftime("%a %d %b %Y, %H:%M")
    return Markup('<time datetime="{}">{}</time>').format(machine, shown)


def lasting(seconds: float) -> str:
    """About how long, in the largest unit of which there are at least two, or one minute, or seconds."""
    for unit, size in _UNITS:
        if seconds >= 2 * size or (unit == "minute" and seconds >= size):
            count = round(seconds / size)
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return f"{max(0, round(seconds))} seconds"


def code(text: str) -> Markup:
    """A QR code as a drawing within the page, dark on light in any colour scheme."""
    written = io.BytesIO()
    made = segno.make(text, error="m", boost_error=False, micro=False)
    made.save(written, kind="svg", xmldecl=False, svgns=False, scale=4, border=4, dark="#000", light="#fff", nl=False)
    drawing = Markup(written.getvalue().decode())  # noqa: S704 segno writes numbers only
    return Markup('<span class="code" role="img" aria-label="QR code of {}">{}</span>').format(text, drawing)


def share(part: float, whole: float) -> str:
    """A length in a drawing that is 100 wide."""
    return f"{100 * part / whole:.2f}" if whole else "0"
