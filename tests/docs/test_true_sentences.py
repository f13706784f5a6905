"""Claims that were once made and are false do not come back, and no message for people names a class of Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.repository import ROOT, pages, sources

pytestmark = pytest.mark.source

FALSE = {
    "a true answer is told apart from a changed one in most cases, by guessing": (
        r"nobody[^.]{0,40}can tell a true answer"
    ),
    "the owner's machine finds its own packet": r"cannot be found again",
    "answers differ, and each is a hint": r"nobody's answers can be told apart",
    "the aggregator sees a packet's changed answer": r"what you answer is not",
    "a packet's own machine can tell": r"nobody can tell which (packet|one)",
    "fetching shows an address, unless it goes through Tor": (
        r"tells nobody anything about you|nothing about you leaves"
    ),
}
"""The reason why a claim is false, and the claim. Documents, pages, templates and messages are looked through."""


def _texts() -> list[Path]:
    own = [path for path in sources() if "tests" not in path.relative_to(ROOT).parts]
    others = [path for room in ("anon", "peer", "aggregator", "examples") for path in (ROOT / room).rglob("*")]
    return [*own, *pages(), *(path for path in others if path.suffix in (".html", ".toml", ".txt", ".js"))]


def false_claims(text: str) -> list[str]:
    """Why each false claim in a text is false, whatever breaks its lines."""
    plain = re.sub(r"[\s\"'`]*\n[\s#]*(f?[\"'`])?|\s+", " ", text.replace("’", "'"))
    return [why for why, claim in FALSE.items() if re.search(claim, plain, re.IGNORECASE)]


def test_false_claims_are_seen_across_lines() -> None:
    assert false_claims("Nobody, the aggregator included,\ncan tell a true answer from a changed one.")
    assert false_claims('"it cannot be " \n    "found again"') and not false_claims("it cannot be called back")


def test_no_text_makes_a_false_claim() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): claims
        for path in _texts()
        if (claims := false_claims(path.read_text("utf-8")))
    }
    assert found == {}


def named_classes(tree: ast.AST) -> Iterator[int]:
    """Lines of texts for people that hold `type(...).__name__`. The log's own calls and errors for programmers pass."""
    passed: set[ast.AST] = set()
    for node in ast.walk(tree):
        call = node.func if isinstance(node, ast.Call) else None
        log = isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id == "_LOG"
        if log or (isinstance(call, ast.Name) and call.id in ("TypeError", "Unlisted")):
            passed |= set(ast.walk(node))
    for node in ast.walk(tree):
        if node in passed or not isinstance(node, (ast.JoinedStr, ast.Raise, ast.Call)):
            continue
        for inner in ast.walk(node):
            own = isinstance(inner, ast.Attribute) and inner.attr == "__name__" and isinstance(inner.value, ast.Call)
            if own and inner not in passed:
                yield inner.lineno


def test_named_classes_are_seen() -> None:
    assert [*named_classes(ast.parse('raise Refused(f"no ({type(error).__name__})")'))]
    assert [*named_classes(ast.parse("damaged(file, type(error).__name__)"))]
    assert not [*named_classes(ast.parse('_LOG.error("%s", type(error).__name__)'))]


ALLOWED = {"anon/kit/terminal/support.py", "anon/study/schema.py"}
"""A bundle for developers; the names of a schema's definitions."""


@pytest.mark.parametrize("room", ["anon", "peer", "aggregator"])
def test_no_message_names_a_class(room: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in sorted((ROOT / room).rglob("*.py"))
        if "__name__" in (text := path.read_text("utf-8")) and (lines := [*named_classes(ast.parse(text))])
    }
    assert found.keys() <= ALLOWED, found
