"""Every sentence that the owner's page can show is a `Sentence` (`anon.text.sentences`), so that it can be translated.

The calls that make such texts are read out of the source: errors, advice, checks, faults of files and stored reasons.
A room is added to `ROOMS` once its sentences are; `PLAIN` names the modules that keep plain text, and why.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from string import Formatter

import pytest

pytestmark = pytest.mark.source

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "anon/kit/diagnosis/checks.py",
    "anon/errors.py",
    "anon/kit/diagnosis/installation.py",
    "anon/queries",
    "anon/storage",
    "anon/tables",
    "peer/app.py",
    "peer/data",
    "peer/opening.py",
    "peer/predict.py",
    "peer/store",
    "peer/view.py",
)
TERMINAL = "backups are made, restored and begun anew by commands of the terminal alone"
PLAIN = {
    "anon/queries/sandbox.py": "the bench on which staff simulate a study",
    "anon/storage/home.py": "the home of an aggregator, which staff run",
    "peer/data/snapshot.py": "bytes of the store; whoever reads them tells the owner of damage in a sentence",
    "peer/opening.py": "questions that the terminal asks",
    "peer/store/backup/aggregator_copy.py": TERMINAL,
    "peer/store/backup/archive.py": TERMINAL,
    "peer/store/rows.py": "a row of the store; its reader tells the owner of damage in a sentence",
}
ERRORS = {"AnonmlError"}
"""And every class that inherits from one of these."""
TOLD = {"Advice", "Check", "DetectedFile", "KeptFile"}
"""Other classes of texts for the owner."""
METHODS = {"append", "damaged", "full", "apply", "end", "note", "settle_withdrawal", "inclusion"}
"""Methods and functions that are given a note, the reason of a fault, or the one that a study's state is stored
with."""
MAKERS = {"say": 1, "say_many": 2}
"""How many patterns each takes."""
WORDS = 3
"""Fewer are a name or a code."""


def _modules(room: str) -> list[Path]:
    place = ROOT / room
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


@cache
def _error_classes() -> frozenset[str]:
    files = chain.from_iterable((ROOT / side).rglob("*.py") for side in ("anon", "peer"))
    defined = [node for file in files for node in ast.walk(_tree(file)) if isinstance(node, ast.ClassDef)]
    found: set[str] = set(ERRORS)
    while more := {one.name for one in defined if {_name(base) for base in one.bases} & found} - found:
        found |= more
    return frozenset(found)


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _literal(node: ast.Constant | ast.JoinedStr) -> str:
    """The words of a plain text, without what is filled in and without code in backticks; none of another constant."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    words = (part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "{}" for part in parts)
    return re.sub("`[^`]*`", "", "".join(words))


def _plain_in(node: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Plain texts of `WORDS` words or more in an expression, other than the patterns of sentences."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        if len(re.findall(r"[^\W\d_]+", _literal(node))) >= WORDS:
            yield node
        return
    patterns = (
        node.args[: MAKERS[_name(node.func)]] if isinstance(node, ast.Call) and _name(node.func) in MAKERS else []
    )
    for child in ast.iter_child_nodes(node):
        if child not in patterns:
            yield from _plain_in(child)


def _is_told(call: ast.Call) -> bool:
    """True if the call makes a text for the owner: also `type(error)(...)`, which makes an error anew."""
    anew = isinstance(call.func, ast.Call) and _name(call.func.func) == "type"
    return anew or _name(call.func) in _error_classes() | TOLD | METHODS


def plain_texts(tree: ast.Module) -> list[int]:
    """The lines of plain texts that are given to such a call, in it or by the name of a constant or a variable."""
    bound: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                bound.setdefault(_name(target), []).append(node.value)
    found: set[int] = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_told(node)):
        for given in (*call.args, *(keyword.value for keyword in call.keywords)):
            named = [
                value for node in ast.walk(given) if isinstance(node, ast.Name) for value in bound.get(node.id, [])
            ]
            texts = [
                one
                for one in named
                if isinstance(one, ast.Constant | ast.JoinedStr | ast.IfExp | ast.BoolOp | ast.BinOp)
            ]
            found |= {text.lineno for one in (given, *texts) for text in _plain_in(one)}
    return sorted(found)


@pytest.mark.parametrize("room", ROOMS)
def test_no_owner_reads_a_plain_text(room: str) -> None:
    found = {file.relative_to(ROOT).as_posix(): plain_texts(_tree(file)) for file in _modules(room)}
    assert {name: lines for name, lines in found.items() if lines and name not in PLAIN} == {}


@pytest.mark.parametrize("name", PLAIN)
def test_a_module_that_keeps_plain_text_has_some(name: str) -> None:
    assert plain_texts(_tree(ROOT / name)), "take it from the list"
    assert any(ROOT / name in _modules(room) for room in ROOMS)


def _calls_of_makers() -> Iterator[tuple[str, ast.Call]]:
    for file in (*_modules("anon"), *_modules("peer")):
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                imported = any(
                    isinstance(one, ast.ImportFrom) and one.module == "anon.text.sentences" for one in _tree(file).body
                )
                if imported:
                    yield f"{file.relative_to(ROOT).as_posix()}:{node.lineno}", node


def _fault(call: ast.Call) -> str:
    most = MAKERS[_name(call.func)]
    patterns = [one.value for one in call.args[:most] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if len(patterns) < most:
        return "a pattern that is no literal is not found where they are collected for translation"
    fields = {field for pattern in patterns for _text, field, *_ in Formatter().parse(pattern) if field}
    if any(keyword.arg is None for keyword in call.keywords):
        return ""  # its values have no names here
    given = {str(keyword.arg) for keyword in call.keywords} | ({"count"} if _name(call.func) == "say_many" else set())
    return "" if fields <= given and given <= fields | {"count"} else f"{sorted(fields ^ given)}"


def test_every_pattern_is_a_literal_that_fits_its_values() -> None:
    calls = list(_calls_of_makers())
    assert len(calls) > 200
    assert {place: fault for place, call in calls if (fault := _fault(call))} == {}


@pytest.mark.parametrize("text", [
    'raise Refused("this is not allowed here")',
    'raise Refused(f"{count} is not allowed here")',
    'raise type(error)(f"{file}: is not allowed here")',
    'raise Refused(say("{why}; choose another", why=f"{name} is not allowed"))',
    'raise Malformed("this is " + "not allowed here" if odd else say("yes"))',
    'CLOSED = "this study is closed"\n\ndef ask():\n    raise Conflict(CLOSED)',
    'reason = f"{name} is closed now"\nstore.end(study, event, reason)',
    'Check(name, False, "install it again")',
])
def test_a_plain_text_is_found(text: str) -> None:
    assert plain_texts(ast.parse(text))


@pytest.mark.parametrize("text", [
    'raise Refused(say("this is not allowed here: {why}", why=str(fault)))',
    'raise Refused(say_many("{count} is not allowed", "{count} are not allowed", number))',
    'raise Conflict("two words")',
    'raise ValueError("a fault of this program")',
    'Check(f"tor {version} ({program})", True)',
])
def test_other_texts_are_let_be(text: str) -> None:
    assert plain_texts(ast.parse(text)) == []
