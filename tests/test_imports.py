"""The import rules (docs/decisions/0001): who may know whom. A wrong import anywhere fails here by name."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"numpy", "scipy", "sklearn", "sqlalchemy", "aiosqlite", "joblib"}
SIDES = {"anon", "peer", "aggregator"}


def _imports(path: Path) -> set[str]:
    """Every dotted name a module imports, wherever in the module the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def _modules(side: str) -> list[Path]:
    return sorted((ROOT / side).rglob("*.py"))


def _roots(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in _imports(path)}


@pytest.mark.parametrize(("side", "forbidden"), [
    ("anon", {"peer", "aggregator", "examples", "tests", "benchmarks", "anonml", "random"} | HEAVY),
    ("peer", {"aggregator", "examples", "tests", "benchmarks", "anonml", "random"} | HEAVY),
    ("aggregator", {"peer", "examples", "tests", "benchmarks", "anonml"}),
])
def test_sides_do_not_reach_across(side: str, forbidden: set[str]) -> None:
    wrong = {str(path.relative_to(ROOT)): sorted(_roots(path) & forbidden) for path in _modules(side)}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_one_module_alone_knows_the_curve_library() -> None:
    users = [path.relative_to(ROOT).as_posix() for side in SIDES for path in _modules(side) if "py_arkworks_bls12381" in _roots(path)]
    assert users == ["anon/credential/native.py"]


def test_enrol_and_verify_share_no_module() -> None:
    """`enrol` knows who, `verify` must not: neither imports the other, nor a common module of the aggregator but rules."""
    enrol, verify = (_imports(ROOT / "aggregator" / name) for name in ("enrol.py", "verify.py"))
    assert not any(name.startswith("aggregator.enrol") for name in verify)
    assert not any(name.startswith("aggregator.verify") for name in enrol)


def test_only_app_sees_concrete_stores_and_routes() -> None:
    """Rules and sessions get stores and routes as arguments; `app` (and the command line) chooses them."""
    concrete = {"anon.route.http", "anon.route.DirectRoute", "anon.route.SocksRoute", "anon.route.tor.TorRoute", "anon.route.tor.route"}
    allowed = {"anon/route/__init__.py", "anon/route/testnet/probe.py", "anon/route/tor/__init__.py", "peer/app.py", "peer/routes.py", "aggregator/app.py"}
    wrong = [
        path.relative_to(ROOT).as_posix()
        for side in SIDES
        for path in _modules(side)
        if _imports(path) & concrete and path.relative_to(ROOT).as_posix() not in allowed
    ]
    assert wrong == []


RULES = [
    "peer/ledger.py", "peer/consent.py", "peer/checks.py", "peer/schedule.py", "peer/session.py", "peer/protocols/histogram.py",
    "aggregator/enrol.py", "aggregator/session.py", "anon/messages.py", "anon/documents.py",
]


@pytest.mark.parametrize("name", RULES)
def test_files_that_hold_rules_do_not_wait(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.Await, ast.AsyncFunctionDef))]
    assert not _roots(ROOT / name) & {"sqlite3", "aiohttp", "socket", "asyncio", "time"}


_BLOCKED = """
import importlib.abc, sys
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {heavy!r}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Block())
import importlib, pkgutil, anon, peer
for package in (anon, peer):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
"""


def test_a_peer_lives_a_whole_study_without_the_learning_stack() -> None:
    """Look, join, run, be included, and be refused: the peer's own session tests, with those imports impossible."""
    program = _BLOCKED.format(heavy=HEAVY) + (
        "import pytest\n"
        "code = pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:xdist', 'tests/peer/test_peer_session.py'])\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]


def test_all_of_anon_and_peer_import_without_the_learning_stack() -> None:
    subprocess.run([sys.executable, "-c", _BLOCKED.format(heavy=HEAVY)], cwd=ROOT, check=True, timeout=120)
