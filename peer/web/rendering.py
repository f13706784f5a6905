"""Pages from templates: everything is escaped, and each kind of figure has one way to be said."""

from __future__ import annotations

from datetime import datetime

from jinja2 import Environment
from markupsafe import Markup

from anon.extras import install
from anon.ldp import SCALE, format_epsilon, odds_moved
from anon.page.rendering import qr_drawing, templates_of
from anon.protocols.words import Probability
from anon.text.foreign import seen
from peer.rules.durations import text_of
from peer.web.qr_reader import available

PERSON, MARGIN = 20, 3
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60))


def environment() -> Environment:
    """The templates of this package."""
    environment = templates_of("peer.web")
    environment.filters |= {"epsilon": format_epsilon, "instant": instant, "code": code, "lasting": lasting}
    environment.filters |= {"duration": text_of, "share": share, "odds_moved": odds_moved, "people": people_filled}
    environment.globals["reads_codes"] = available()
    environment.globals["install_qr"] = install("qr")
    return environment


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
    span = Markup('<span class="code" role="img" aria-label="QR code of {}">{}</span>')
    return span.format(seen(text), qr_drawing(text))


def people_filled(chance: Probability) -> str:
    """How far a row of ten people, each `PERSON` wide with `MARGIN` at either side, is filled for this chance."""
    person, rest = divmod(10 * chance.numerator, SCALE)
    return f"{PERSON * person + (MARGIN + (PERSON - 2 * MARGIN) * rest / SCALE if rest else 0):.3f}"


def share(part: float, whole: float) -> str:
    """A length in a drawing that is 100 wide."""
    return f"{100 * part / whole:.2f}" if whole else "0"
