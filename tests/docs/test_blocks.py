"""Each block of code in the documents names its language, can be read, and is run or says why not."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from pathlib import Path

import pytest

from aggregator.estimator.classifier import NotShownWarning
from benchmarks.diagrams import DIAGRAMS
from tests.docs.blocks import LANGUAGES, RUN, Block, all_blocks, blocks_of, indented, unread
from tests.docs.repository import ROOT, pages
from tests.docs.test_newcomer_readme import fault

BLOCKS = all_blocks()


def test_blocks_are_found() -> None:
    text = "a\n<!-- not run: why -->\n```sh\nls\n```\n\n* b\n\n  ```toml\n  c = 1\n  ```\n"
    assert [(one.line, one.language, one.text, one.reason) for one in blocks_of(text)] == [
        (3, "sh", "ls\n", "why"),
        (9, "toml", "c = 1\n", ""),
    ]
    with pytest.raises(ValueError, match="not closed"):
        blocks_of("```sh\nls\n")
    assert len(BLOCKS) > 15 and {one.language for one in BLOCKS} >= {"sh", "python", "mermaid"}


def test_code_outside_of_blocks_is_found() -> None:
    assert indented("a\n\n    ls\n") == ["    ls"]
    assert indented("* a\n\n    more of a\n\nb\n    goes on\n```sh\n    ls\n```\n") == []


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_code_stands_outside_of_a_block(path: Path) -> None:
    assert indented(path.read_text("utf-8")) == []


@pytest.mark.parametrize(("language", "text"), [("sh", "if"), ("python", "1 +"), ("toml", "a = "), ("json", "{")])
def test_a_block_that_cannot_be_read_is_seen(language: str, text: str) -> None:
    (block,) = blocks_of(f"```{language}\n{text}\n```\n")
    assert unread(block)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_names_its_language_and_can_be_read(block: Block) -> None:
    assert block.language in LANGUAGES and unread(block) == ""
    assert not block.reason or block.language in RUN, "a block that is not code needs no reason"
    assert not block.reason or len(block.reason.split()) > 2
    if block.language == "mermaid":
        assert f"```mermaid\n{block.text}```" in DIAGRAMS.values()


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "sh"], ids=str)
def test_every_command_of_a_block_exists(block: Block) -> None:
    """Also of those that are not run."""
    text = re.sub(r"\\\n", " ", block.text)
    lines = [
        part.strip() for line in text.split("\n") for part in re.split(r" [&|;>]+ ?|&&", re.sub(r"\s+#.*$", "", line))
    ]
    assert [line for line in lines if line.startswith("anonml ") and fault(line)] == []


@pytest.mark.parametrize("reason", sorted({one.reason for one in BLOCKS if "tests/" in one.reason}))
def test_a_test_that_a_reason_names_exists(reason: str) -> None:
    assert all((ROOT / place).exists() for place in re.findall(r"tests/[\w/.]*\w", reason))


def _python() -> dict[str, list[str]]:
    found = defaultdict(list)
    for one in BLOCKS:
        if one.language == "python" and not one.reason:
            found[one.page].append(one.text)
    return found


@pytest.mark.parametrize("page", _python())
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page in one namespace, as a reader types them."""
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotShownWarning)
        for text in _python()[page]:
            exec(text, known)
