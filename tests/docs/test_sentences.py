"""No sentence of the project's documents, docstrings and comments opens with What, Whoever, Nobody or Whether.

Such a sentence hides its subject: it names the thing only after its verb, and is hard to translate. Allowed are
questions, as the headings of an FAQ or the cells of a table of questions have, and everything within backticks or a
block of code.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.repository import ROOT, pages, sources

pytestmark = pytest.mark.source

OPENERS = "What|Whoever|Nobody|Whether"
START = r"(?:^[\W_]*|(?<=[.!?:;])[)*_\"'”]*\s+[*_(\"'“]*|[|]\s*[*_]*)"
OPENING = re.compile(rf"{START}((?:{OPENERS})\b[^.!?|]*[.!?]?)")


def faults(paragraph: str) -> list[str]:
    """The sentences of one paragraph that open with one of the four words and do not ask."""
    return [text for text in OPENING.findall(paragraph) if not text.endswith("?")]


def _without_code(text: str) -> str:
    return re.sub(r"`[^`]*`", "`code`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs, headings, entries of lists and rows of tables of a text, each in one line."""
    for block in re.split(r"\n\s*(?=\n|[-*#|]|\d+\. )", "\n" + _without_code(text)):
        yield " ".join(block.split())


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Strings that stand alone: docstrings of modules, classes and functions, and those below an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def comments(source: str) -> Iterator[str]:
    """Comments; those of lines that follow each other are one."""
    last, words, own_before = -1, "", False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        own_line = token.line.lstrip().startswith("#")
        if words and not (own_line and own_before and token.start[0] == last + 1):
            yield words
            words = ""
        words = f"{words} {token.string.lstrip('#:! ')}".strip()
        last, own_before = token.start[0], own_line
    yield words


def faults_of(path: Path) -> list[str]:
    """The sentences of a file that open wrongly."""
    text = path.read_text("utf-8")
    if not re.search(rf"\b({OPENERS})\b", text):  # nothing to read: most files say none of the words
        return []
    texts = [text] if path.suffix == ".md" else [*docstrings(ast.parse(text)), *comments(text)]
    return [fault for one in texts for part in paragraphs(one) for fault in faults(part)]


def test_wrong_openings_are_seen() -> None:
    """In each place where a sentence can begin, and nowhere else."""
    assert faults("Whether it is so.") and faults("It is so. Nobody knows.") and faults("**What left.** Packets.")
    assert faults("a | What stays | b") and faults("(Whoever asks.) And") and faults('He asks: "What is it." So')
    assert not faults("It asks whether it is so, and what then. Nothing.") and not faults("What is it? A packet.")
    assert not faults("Whatever comes, it holds.") and not faults("It takes `Whether` as a name.")
    assert [*paragraphs("# Title\nOne\n  line.\n* What\n")][-2:] == ["# Title One line.", "* What"]


def test_comments_and_docstrings_are_read() -> None:
    """Also a sentence that goes on in the next line."""
    source = "x = 1  # one\n# Two. What\n# three.\n\ndef f():\n    \"\"\"Whether.\"\"\"\n"
    assert list(comments(source)) == ["one", "Two. What three."]
    assert list(docstrings(ast.parse(source))) == ["Whether."]


def own_modules() -> list[Path]:
    """The modules of product, benchmarks and examples, without those of the tests."""
    return [path for path in sources() if "tests" not in path.relative_to(ROOT).parts]


@pytest.mark.parametrize("paths", [sources, pages], ids=["docstrings and comments", "documents"])
def test_no_sentence_opens_without_its_subject(paths: Callable[[], list[Path]]) -> None:
    assert {path.relative_to(ROOT).as_posix(): faults for path in paths() if (faults := faults_of(path))} == {}
