"""Pages from templates: everything is escaped, and each kind of figure has one way to be said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from anon.kit.page.rendering import coded, qr_drawing, sentence, templates_of
from anon.ldp import SCALE, format_epsilon, odds_moved
from anon.machine.extras import install
from anon.protocols import consent_words
from anon.protocols.cost_words import percent
from anon.protocols.words import Probability
from anon.study.manifest import Manifest
from anon.study.translations import Wording, wording
from anon.text.foreign import Marked, paragraphs, whole_place
from anon.text.html import alike
from anon.text.sentences import NOTHING, Sentence, listed, say, say_many
from peer.rules.durations import text_of
from peer.web.languages import (
    NAMES,
    current,
    figure,
    gettext,
    instant,
    language_name,
    localised,
    ngettext,
    shown,
)
from peer.web.qr_reader import available

PERSON, MARGIN = 20, 3


@cache
def environment() -> Environment:
    """The templates of this package, in the language that `languages.set_current` named."""
    environment = templates_of("peer.web", shown)
    environment.add_extension("jinja2.ext.i18n")
    environment.policies["ext.i18n.trimmed"] = True
    environment.newstyle_gettext = True  # type: ignore[attr-defined]
    environment.globals |= {"gettext": gettext, "ngettext": ngettext, "language": current, "languages": NAMES}
    environment.filters |= {"epsilon": format_epsilon, "instant": instant, "code": code, "lasting": lasting}
    environment.filters |= {"duration": text_of, "share": share, "odds_moved": odds_moved, "people": people_filled}
    environment.filters |= {"coded": _spoken(coded), "sentence": _spoken(sentence), "lower": _spoken(str.lower)}
    environment.filters |= {"join": _join, "listed": listed, "attribute": _attribute, "figure": figure}
    environment.filters |= {"capital": _spoken(_capital), "paragraphs": paragraphs}
    environment.filters |= {"percent": percent}
    environment.globals |= {"told": told, "language_note": language_note}
    environment.globals["reads_codes"] = available()
    environment.globals["heads"] = consent_words
    environment.globals["install_qr"] = install("qr")
    return environment


def told(manifest: Manifest) -> Wording:
    """A study's own texts in the page's language where it has them. Each has a `language`."""
    return wording(manifest, current().code)


def language_note(manifest: Manifest) -> Sentence:
    """The language that a study was written in, where its texts are not all in the page's and written in it."""
    if not manifest.language or told(manifest).languages == {manifest.language} == {current().code}:
        return NOTHING
    written, found = language_name(manifest.language), told(manifest).languages
    if found == {manifest.language}:
        return say("This study's own texts are in {language}, in which it was written.", language=written)
    if manifest.language in found:
        return say(
            "This study was written in {language}. Some of its texts are in that language alone; the others here are a "
            "translation by those who ask.",
            language=written,
        )
    return say(
        "This study was written in {language}. Its texts here are a translation by those who ask.", language=written
    )


def _spoken(of: Callable[[str], str]) -> Callable[[object], str]:
    """A filter of text, applied to the text in the page's language."""
    def spoken(value: object) -> str:
        text = str(localised(value))
        return alike(text, of(text))

    return spoken


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _join(values: Iterable[object], separator: str = "") -> str:
    texts = [localised(value) for value in values]
    joint = separator.join(map(str, texts))
    return Marked(joint) if all(isinstance(text, Marked) for text in texts) else joint


def _attribute(text: Markup) -> str:
    """A sentence as the value of an attribute, which holds no element."""
    return text.striptags()


def lasting(seconds: float) -> Sentence:
    """About how long, in the largest unit of which there are at least two, or one minute, or seconds."""
    if seconds >= 2 * 86400:
        return say_many("{count} day", "{count} days", round(seconds / 86400))
    if seconds >= 2 * 3600:
        return say_many("{count} hour", "{count} hours", round(seconds / 3600))
    if seconds >= 60:
        return say_many("{count} minute", "{count} minutes", round(seconds / 60))
    return say_many("{count} second", "{count} seconds", max(0, round(seconds)))


def code(text: str) -> Markup:
    """A QR code as a drawing within the page, dark on light in any colour scheme."""
    label = localised(say("QR code of {text}", text=whole_place(text)))
    return Markup('<span class="code" role="img" aria-label="{}">{}</span>').format(label, qr_drawing(text))


def people_filled(chance: Probability) -> str:
    """How far a row of ten people, each `PERSON` wide with `MARGIN` at either side, is filled for this chance."""
    person, rest = divmod(10 * chance.numerator, SCALE)
    return f"{PERSON * person + (MARGIN + (PERSON - 2 * MARGIN) * rest / SCALE if rest else 0):.3f}"


def share(part: float, whole: float) -> str:
    """A length in a drawing that is 100 wide."""
    return f"{100 * part / whole:.2f}" if whole else "0"
