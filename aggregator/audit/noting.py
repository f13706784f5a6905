"""Faults that an audit meets become findings, and the audit goes on."""

from __future__ import annotations

from collections.abc import Callable

from anon.errors import AnonmlError

UNREADABLE = "cannot be read with the documents there are"
Note = Callable[[str, str], None]
"""Keeps a finding: the document's kind and part, and its fault."""


class noting:
    """Turns an error into a finding: a typed one in its own words, any other as a document that cannot be read."""

    def __init__(self, note: Note, document: str) -> None:
        self._note = note
        self._document = document

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if isinstance(error, AnonmlError):
            self._note(self._document, str(error))
            return True
        if isinstance(error, Exception):  # a protocol's part is any author's, and reads what anybody wrote
            self._note(self._document, UNREADABLE)
            return True
        return False
