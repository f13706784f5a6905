"""Cells of CSV that a spreadsheet program shows as text, whoever wrote it."""

from __future__ import annotations

import re

_FORMULA = re.compile("[=+\\-@\t\r＝＋－＠]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def plain_cell(text: str) -> str:
    """The text, with an apostrophe before one that a spreadsheet program would compute (OWASP, "CSV Injection").

    >>> plain_cell('=HYPERLINK("http://example.org")'), plain_cell("-1.5"), plain_cell("yes")
    ('\\'=HYPERLINK("http://example.org")', '-1.5', 'yes')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
