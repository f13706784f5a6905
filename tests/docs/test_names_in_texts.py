"""Every file, module and name that a docstring, a comment or a document gives in backticks exists in the code."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from attrs import fields

from anon.study.proposal import Proposal
from tests.docs.repository import ROOT, pages, sources
from tests.docs.test_sentences import comments, docstrings, own_modules

pytestmark = pytest.mark.source

NAME = r"[A-Za-z_]\w*"
QUOTED = re.compile(r"`([^`\n]+)`")
BARE = re.compile(rf"{NAME}\Z")
DOTTED = re.compile(rf"{NAME}(?:\.{NAME})+\Z")
FILE = re.compile(r"[\w./-]+\.(?:py|md)\Z")
OURS = ("anon", "peer", "aggregator", "bundle", "benchmarks", "examples", "tests")
OTHERS = {
    "LinAlgError": "of numpy",
    "a.ts": "a column, in an example of a query",
    "a9a_test.csv.gz": "a file of the Adult data",
    "a9a_train.csv.gz": "a file of the Adult data",
    "education": "a column of the census data",
    "features.cups.description": "an entry of an example's study file",
    "fnlwgt": "a column of the census data",
    "group_concat": "a function of SQLite",
    "kddcup.data_10_percent": "a file of the KDD Cup 1999",
    "kddcup.names": "a file of the KDD Cup 1999",
    "log_train.csv": "a file of XuetangX's data",
    "memory.oom.group": "a setting of Linux",
    "model.json": "a file of an export, as `anon.protocols.kinds.files_of` names it",
    "nym_secret": "of the drafts of the token",
    "occupation": "a column of the census data",
    "printf": "a function of SQLite",
    "report_log": "a module of Moodle",
    "table_log": "a module of Moodle",
    "zeroblob": "a function of SQLite",
}
"""Names that are in no code of ours, and where each is from."""


@cache
def paths() -> frozenset[str]:
    """Every Python file and every document of the project."""
    return frozenset(path.relative_to(ROOT).as_posix() for path in (*sources(), *pages()))


@cache
def tree(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text("utf-8"))


NAMING = {"name", "id", "attr", "arg", "module", "asname"}
"""The fields of a node that hold an identifier."""


def words_of(node: ast.AST) -> set[str]:
    """The identifiers of a tree, and the words of its strings that are no docstrings."""
    nodes = list(ast.walk(node))
    prose = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    found: set[str] = set()
    for one in nodes:
        for name in one._fields:
            if name in NAMING and getattr(one, name):
                found.add(str(getattr(one, name)))
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in prose:
            found |= set(re.findall(NAME, one.value))
    return found


@cache
def words_in(path: Path) -> frozenset[str]:
    """The identifiers of a file."""
    return frozenset(words_of(tree(path)))


@cache
def all_words() -> frozenset[str]:
    """The identifiers of the product and its benchmarks and examples."""
    stems = {part for path in own_modules() for part in path.relative_to(ROOT).with_suffix("").parts}
    plain = [
        path
        for folder in OURS[:-1]
        for end in ("sql", "html", "js", "toml")
        for path in (ROOT / folder).rglob(f"*.{end}")
    ]
    texts = [*plain, ROOT / "pyproject.toml", ROOT / "Makefile"]
    found = {word for path in texts for word in re.findall(NAME, path.read_text("utf-8"))}
    return frozenset(stems | found | {word for path in own_modules() for word in words_in(path)})


@cache
def strings() -> frozenset[str]:
    """Whole strings of the product, such as names of files."""
    nodes = (node for path in own_modules() for node in ast.walk(tree(path)))
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


@cache
def owners() -> dict[str, set[str]]:
    """By the name of each module and class of the product, the names that stand in it, and those of a class's bases."""
    found: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, set[str]] = {}
    for path in own_modules():
        stem = path.parent.name if path.name == "__init__.py" else path.stem
        found[stem] |= words_in(path)
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name] |= words_of(node)
                bases[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
    for name in bases:
        above = set(bases[name])
        while above:
            found[name] |= found.get(base := above.pop(), set())
            above |= bases.get(base, set())
    return found


@cache
def sections() -> frozenset[str]:
    """The sections of a study file."""
    return frozenset(field.name for field in fields(Proposal))


def _module(parts: list[str]) -> bool:
    """True if a dotted name leads to a folder, a module, or a name in a module of the project."""
    for count in range(len(parts), 0, -1):
        place = "/".join(parts[:count])
        files = [one for one in (f"{place}.py", f"{place}/__init__.py") if one in paths()]
        if files:
            return all(part in words_in(ROOT / files[0]) for part in parts[count:])
        if (ROOT / place).is_dir():
            return count == len(parts)
    return False


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def exists(name: str, near: frozenset[str]) -> bool:
    """True if a dotted name is of the project, of a library, or of a value that the text's own file knows (`near`)."""
    first, *rest = name.split(".")
    if first in OURS and name not in strings():
        return _module([first, *rest])
    if name in strings() or _installed(first) or all(part in owners().get(first, ()) for part in rest):
        return True
    return first in near | sections() and all(part in all_words() for part in rest)


def dead(text: str, near: frozenset[str], bare: frozenset[str]) -> list[str]:
    """The names in backticks that lead nowhere. `near`: the identifiers of the text's file; `bare`: those that may
    stand alone."""
    missing = []
    for quoted in QUOTED.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
        name = quoted.removesuffix("()")
        if FILE.match(name):
            known = any(path == name or path.endswith("/" + name) for path in paths())
        elif DOTTED.match(name):
            known = exists(name, near)
        else:
            known = not BARE.match(name) or name in bare
        if not known and name not in OTHERS:
            missing.append(quoted)
    return missing


def of_module(path: Path) -> list[str]:
    """The dead names of a module's docstrings and comments."""
    source = path.read_text("utf-8")
    quoting = re.search("#[^\n]*`", source)  # other comments name nothing
    texts = [*docstrings(tree(path)), *(comments(source) if quoting else ())]
    return [name for text in texts for name in dead(text, words_in(path), all_words())]


@pytest.mark.slow
def test_a_dead_name_is_seen() -> None:
    """A file, a module, an attribute and a bare name; each beside one that lives."""
    text = (
        "`peer/alive.py`, `peer/app.py`, `peer.rules.gone`, `peer.rules.ledger.Ledger`, `ledger.gone`, `ledger.Ledger`"
    )
    near = frozenset({"study"})
    assert dead(text, near, near) == ["peer/alive.py", "peer.rules.gone", "ledger.gone"]
    assert dead("`Store.gone`, `Store.journal`, `gone.study`, `gone`, `study`, `json.loads`", near, near) == [
        "Store.gone",
        "gone.study",
        "gone",
    ]
    assert dead("`study.study_id`, `learning.base_rate`, `metrics.token`\n```\n`gone`\n```", near, near) == []


def test_every_name_of_others_is_used() -> None:
    """An entry that no text needs any more goes."""
    everything = "".join(path.read_text("utf-8") for path in (*own_modules(), *pages()))
    assert [name for name in OTHERS if f"`{name}`" not in everything] == []


@pytest.mark.slow
def test_the_names_in_docstrings_and_comments_exist() -> None:
    assert {path.relative_to(ROOT).as_posix(): names for path in own_modules() if (names := of_module(path))} == {}


@pytest.mark.slow
def test_the_names_in_documents_exist() -> None:
    """Words that stand alone are left out: documents quote commands, settings and the words of other programs."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in pages()}
    found = {path: dead(text, all_words(), frozenset(re.findall(NAME, text))) for path, text in texts.items()}
    assert {path: names for path, names in found.items() if names} == {}
