"""Every text can be printed, with the code page of an old console's pipe and without any console at all."""

from __future__ import annotations

import io
import sys

import pytest

from anon.kit.terminal.printing import Terminal
from anon.kit.terminal.streams import take_every_text


@pytest.mark.parametrize(("code_page", "expected"), [
    ("cp437", "Größe \\u5b66 \\u2714"), ("cp850", "Größe \\u5b66 \\u2714"), ("cp1252", "Größe \\u5b66 \\u2714"),
    ("utf-8", "Größe 学 ✔"),
])
def test_a_letter_that_a_code_page_lacks_is_written_by_its_number(
    monkeypatch: pytest.MonkeyPatch, code_page: str, expected: str
) -> None:
    for errors in ("strict", "surrogateescape"):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=code_page, errors=errors))
        take_every_text()
        Terminal().print("Größe 学 ✔")
        sys.stdout.flush()
        assert written.getvalue().decode(code_page).strip() == expected


def test_without_a_console_words_go_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    take_every_text()
    with sys.stdout:
        Terminal().print("Größe 学")


def test_a_pipe_is_no_old_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console.detect_legacy_windows", lambda: True)
    assert not Terminal(file=io.StringIO()).legacy_windows


def test_without_a_console_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    take_every_text()
    with sys.stdin, pytest.raises(EOFError):
        Terminal(file=io.StringIO()).input("? ")
