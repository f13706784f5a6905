"""Drafts of studies in the home: a text, and where it was begun with the form, the form's fields and text.

Each is kept as it is typed, until its study is published or somebody discards it; no restart loses one. The form of a
published study stays, to begin another like it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from anon.errors import Malformed
from anon.storage.private_files import write_private
from anon.wire.strict_json import read_json

_ID = re.compile(r"[0-9a-f]{16}\Z")
_TITLE = re.compile(r'^title\s*=\s*"(.*)"', re.MULTILINE)
_FOLDER, _TEXT, _FIELDS, _WRITTEN, _FORM = "drafts", ".toml", ".json", ".written", ".form"
_OF_A_SAMPLE = ("_counts", "_sample")  # the ends of names of fields that hold figures of a sample file
LONGEST = 256 * 1024
"""Characters of a text."""


@frozen
class Draft:
    """A draft for the list of studies. `changed`: unix seconds; `text`, `form`: what is kept of it."""

    id: str
    title: str
    changed: float
    text: bool
    form: bool


class Drafts:
    """The drafts of one home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / _FOLDER

    @staticmethod
    def new() -> str:
        """The id of a draft that is not kept yet."""
        return secrets.token_hex(8)

    @staticmethod
    def demand(draft_untrusted: str) -> str:
        """The id. Raises `Malformed` for anything else."""
        if not _ID.match(draft_untrusted):
            raise Malformed("draft: expected its id; open it from the list of studies")
        return draft_untrusted

    def keep_text(self, draft: str, text: str) -> None:
        """Keep a text of at most `LONGEST` characters."""
        if len(text) <= LONGEST:
            self._write(draft, _TEXT, text)

    def keep_fields(self, draft: str, fields: Mapping[str, str]) -> None:
        """Keep the form's fields."""
        self._write(draft, _FIELDS, json.dumps(dict(fields)))

    def keep_written(self, draft: str, text: str) -> None:
        """Keep a text that the form wrote, and remember it, to know later if somebody changed it."""
        self.keep_text(draft, text)
        self._write(draft, _WRITTEN, text)

    def edited(self, draft: str) -> bool:
        """True if the text is another than the form wrote last. Lines and spaces at its ends do not count."""
        text, written = self.text(draft), self._read(draft, _WRITTEN)
        return None not in (text, written) and str(text).strip() != str(written).strip()

    def text(self, draft: str) -> str | None:
        """The text, if there is one."""
        return self._read(draft, _TEXT)

    def text_path(self, draft: str) -> Path:
        """The file of its text."""
        return self._folder / f"{draft}{_TEXT}"

    def fields(self, draft: str) -> dict[str, str] | None:
        """The form's fields, if it was begun with the form."""
        return self._kept_fields(draft, _FIELDS)

    def _kept_fields(self, name: str, kind: str) -> dict[str, str] | None:
        text = self._read(name, kind)
        return None if text is None else {str(field): str(value) for field, value in read_json(text).items()}

    def published(self, draft: str, study: str) -> None:
        """Keep the form's fields with their study, a hex id, but no figure of a sample file; forget the draft."""
        if (fields := self.fields(draft)) is not None:
            kept = {name: value for name, value in fields.items() if not name.endswith(_OF_A_SAMPLE)}
            self._write(study, _FORM, json.dumps(kept))
        self.forget(draft)

    def of_study(self, study: str) -> dict[str, str] | None:
        """The form's fields of a published study, if it was begun with the form here."""
        return self._kept_fields(study, _FORM)

    def forget(self, draft: str) -> None:
        """It is discarded."""
        for kind in (_TEXT, _FIELDS, _WRITTEN):
            (self._folder / f"{draft}{kind}").unlink(missing_ok=True)

    def all(self) -> list[Draft]:
        """All drafts, the last changed first."""
        names = {path.stem for path in self._folder.glob("*") if _ID.match(path.stem)} if self._folder.is_dir() else ()
        return sorted((self._draft(name) for name in names), key=lambda draft: -draft.changed)

    def _draft(self, draft: str) -> Draft:
        paths = [path for kind in (_TEXT, _FIELDS) if (path := self._folder / f"{draft}{kind}").is_file()]
        fields = self.fields(draft)
        text = self.text(draft)
        found = _TITLE.search(text or "")
        title = (fields or {}).get("title", "") or (found[1] if found else "")
        return Draft(draft, title, max(path.stat().st_mtime for path in paths), text is not None, fields is not None)

    def _write(self, draft: str, kind: str, text: str) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_private(self._folder / f"{draft}{kind}", text.encode("utf-8", "replace"))

    def _read(self, draft: str, kind: str) -> str | None:
        with suppress(FileNotFoundError):
            return (self._folder / f"{draft}{kind}").read_text("utf-8")
        return None
