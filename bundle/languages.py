"""The catalogues of the owner's page (`peer/web/languages/*.po`), brought up to date with the sentences in the program.

Run by `make languages` after a sentence changed. Translations that still fit are kept, new sentences are added empty,
and those no longer in the program are dropped. It prints how many wait for a translation in each language.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from peer.web.languages import ENGLISH, NAMES

PLACE: Final = Path("peer/web/languages")
ROOTS: Final = ("anon", "peer")
_METHODS: Final = [("**.py", "python"), ("web/templates/**.html", "jinja2")]
_KEYWORDS: Final = {"say": None, "say_many": (1, 2), "gettext": None, "ngettext": (1, 2), "_": None}
_OPTIONS: Final = {"web/templates/**.html": {"trimmed": "true", "newstyle_gettext": "true"}}


def found_in(root: Path) -> Catalog:
    """Every sentence of the program, without translations. `root` is the checkout."""
    found = Catalog(project="AnonML", copyright_holder="the AnonML authors", charset="utf-8", fuzzy=False)
    for path, message, comments in _messages(root):
        found.add(message, None, [(path, 0)], auto_comments=comments)
    return found


def _messages(root: Path) -> Iterator[tuple[str, str | tuple[str, ...], list[str]]]:
    for top in ROOTS:
        extracted = extract_from_dir(root / top, _METHODS, _OPTIONS, _KEYWORDS, ("Translators:",))
        for path, _line, message, comments, _context in extracted:
            yield f"{top}/{path}", message, comments


def updated(known: Catalog, found: Catalog) -> Catalog:
    """The found sentences with the known translations. A sentence that was reworded waits for a new one."""
    fresh = Catalog(locale=known.locale, project="AnonML", copyright_holder="the AnonML authors", fuzzy=False)
    for message in sorted((message for message in found if message.id), key=_order):
        before = known.get(message.id)
        fits = before is not None and isinstance(before.id, tuple) == isinstance(message.id, tuple)
        fresh.add(
            message.id,
            before.string if before is not None and fits else None,
            message.locations,
            auto_comments=message.auto_comments,
        )
    return fresh


def _order(message: object) -> tuple[str, str]:
    identity, locations = getattr(message, "id"), getattr(message, "locations")  # noqa: B009
    return min(locations)[0], identity if isinstance(identity, str) else identity[0]


def written(catalogue: Catalog) -> bytes:
    """A catalogue as its file has it: without line numbers and dates, which would change with every edit."""
    buffer = BytesIO()
    write_po(buffer, catalogue, width=120, omit_header=True, include_lineno=False)
    return buffer.getvalue()


def missing(catalogue: Catalog) -> list[str]:
    """The sentences without a translation."""
    return [
        message.id if isinstance(message.id, str) else message.id[0]
        for message in catalogue
        if message.id and not (all(message.string) if isinstance(message.string, tuple) else message.string)
    ]


def main() -> None:
    """Bring every catalogue up to date."""
    found = found_in(Path())
    PLACE.mkdir(exist_ok=True)
    for code in NAMES:
        if code == ENGLISH:
            continue
        place = PLACE / f"{code}.po"
        known = Catalog(locale=code)
        if place.exists():
            with place.open("rb") as stream:
                known = read_po(stream, locale=code)
        fresh = updated(known, found)
        place.write_bytes(written(fresh))
        print(f"{code}: {len(fresh)} sentences, {len(missing(fresh))} wait for a translation")  # noqa: T201


if __name__ == "__main__":
    main()
