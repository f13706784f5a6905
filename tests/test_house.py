"""The rules of the house (docs/decisions/0001): who may know whom, and how large a module is. Each fault is named."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from benchmarks import rooms
from tests.mutants import mutants

pytestmark = pytest.mark.source

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"numpy", "scipy", "sklearn", "sqlalchemy", "aiosqlite", "joblib"}
SIDES = {"anon", "peer", "aggregator"}
LONGEST_MODULE = 400
MOST_MODULES = 18
MOST_OF_ONE = 50
MOST_SHARED_NAMES = 10
MOST_ROOMS_OF_ANON, MOST_FLOORS_OF_AGGREGATOR = 22, 9


def _modules(side: str) -> list[Path]:
    return sorted((ROOT / side).rglob("*.py"))


def _roots(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in rooms.imports(path)}


@pytest.mark.parametrize(("side", "forbidden"), [
    ("anon", {"peer", "aggregator", "examples", "tests", "benchmarks", "anonml", "random"} | HEAVY),
    ("peer", {"aggregator", "examples", "tests", "benchmarks", "anonml", "random"} | HEAVY),
    ("aggregator", {"peer", "examples", "tests", "benchmarks", "anonml"}),
])
def test_sides_do_not_reach_across(side: str, forbidden: set[str]) -> None:
    wrong = {str(path.relative_to(ROOT)): sorted(_roots(path) & forbidden) for path in _modules(side)}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_one_module_alone_knows_the_curve_library() -> None:
    users = [
        path.relative_to(ROOT).as_posix()
        for side in SIDES
        for path in _modules(side)
        if "py_arkworks_bls12381" in _roots(path)
    ]
    assert users == ["anon/crypto/curve/arkworks.py"]


def test_enrol_and_acceptance_do_not_import_each_other() -> None:
    """`enrol` knows who enrolled, `acceptance` must not: neither imports the other."""
    enrol, accept = (rooms.imports(ROOT / "aggregator/rules" / name) for name in ("enrol.py", "acceptance.py"))
    assert not any(name.startswith("aggregator.rules.enrol") for name in accept)
    assert not any(name.startswith("aggregator.rules.acceptance") for name in enrol)


def test_peers_tellers_and_aggregators_import_nothing_of_one_another() -> None:
    """`anon.teller` is a teller's own; everybody else knows `anon.sharing`."""
    outside = [
        path
        for side in SIDES
        for path in _modules(side)
        if not path.relative_to(ROOT).as_posix().startswith("anon/teller/")
    ]
    assert len(outside) > 100
    wrong = [
        path.relative_to(ROOT).as_posix()
        for path in outside
        if any(name.startswith("anon.teller") for name in rooms.imports(path))
    ]
    assert wrong == []


def test_few_modules_see_concrete_routes() -> None:
    """Rules and sessions get a route as an argument; `app`, `peer.network.routes` and a teller's service choose it."""
    concrete = {
        "anon.route.direct_and_socks",
        "anon.route.DirectRoute",
        "anon.route.SocksRoute",
        "anon.route.tor.TorRoute",
        "anon.route.tor.route",
    }
    allowed = {
        "anon/route/__init__.py", "anon/kit/testnet/probe.py", "anon/route/tor/__init__.py", "peer/app.py",
        "peer/network/routes.py", "aggregator/app.py", "anon/teller/service.py",
    }
    wrong = [
        path.relative_to(ROOT).as_posix()
        for side in SIDES
        for path in _modules(side)
        if rooms.imports(path) & concrete and path.relative_to(ROOT).as_posix() not in allowed
    ]
    assert wrong == []


TELLERS_DO_WITHOUT = (
    "peer", "aggregator", "anon.accounting", "anon.kit.page", "anon.protocols", "anon.queries",
    "anon.protocols.vectors", "anon.tables", "anon.kit.testnet",
)


def test_a_tellers_machine_needs_no_room_of_peers_and_staff() -> None:
    """All that the third role may ever load, imports inside functions and by string included."""
    needed = rooms.needs({name for name in rooms.modules() if name.startswith("anon.teller")})
    assert {"anon.study.manifest", "anon.vdaf.prio3", "anon.kit.diagnosis.checks"} <= needed
    assert (
        sorted(name for name in needed if f"{name}.".startswith(tuple(f"{room}." for room in TELLERS_DO_WITHOUT))) == []
    )
    assert (ast.get_docstring(ast.parse((ROOT / "anon/teller/__init__.py").read_text("utf-8"))) or "").startswith(
        "The third role"
    )


def test_imports_by_string_count(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        '"""A docstring may say `import anon.wire`."""\n'
        'TABLE = {"page": "peer.web.server:PageServer", "said": "peer.predict", "file": "peer.sqlite"}\n'
        'Server("anon.queries.child", "the module anon.text is only said")\n'
        'PROGRAM = "import sys; sys.path += {paths}\\nfrom peer.data.foreign_child import main"\n',
        "utf-8",
    )
    assert rooms.strings(file) == {"peer.web.server", "anon.queries.child", "peer.data.foreign_child"}
    assert ("peer.data.making.work", "peer.data.making.maker") in rooms.arrows()


def test_no_room_imports_in_a_circle() -> None:
    """Between the files and folders of any folder, at every depth, imports inside functions and by string included."""
    folders = {name.rpartition(".")[0] for name in rooms.modules()} - {""}
    circles = {folder: rooms.circle(rooms.between(folder)) for folder in sorted(folders)}
    assert {folder: names for folder, names in circles.items() if names} == {}


@pytest.mark.parametrize("package", rooms.PACKAGES)
def test_every_room_imports_from_lower_rows_alone(package: str) -> None:
    assert rooms.rises(package) == []


def test_the_rooms_are_few_enough_to_be_read_at_a_glance() -> None:
    """The rooms of a root are what a newcomer reads first, and each floor is one more step down."""
    assert len(rooms.rooms("anon")) <= MOST_ROOMS_OF_ANON, sorted(rooms.rooms("anon"))
    assert len(rooms.ORDER["aggregator"]) <= MOST_FLOORS_OF_AGGREGATOR


def test_the_core_imports_no_shell_and_no_shell_another() -> None:
    """`benchmarks/rooms.py` names the shells and what each stands on; that they have no circle follows from the
    rows."""
    assert rooms.trespasses() == []
    assert {name for name in rooms.SHELLS if name not in rooms.modules()} == set()


def test_the_picture_of_the_rooms_is_drawn_from_the_code() -> None:
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.picture(), "run `python -m benchmarks.rooms`"


def _without(shell: str, tree: Path) -> None:
    """A copy of the product without a shell, what stands on it, and their lines in the command's wiring. It keeps
    compiled modules, of which none is imported without its source."""
    gone = rooms.standing_on(shell)
    for side in (*sorted(SIDES), "examples"):  # the studies in memory that tests share are there
        shutil.copytree(ROOT / side, tree / side)
    for room in gone:
        place = tree / room.replace(".", "/")
        shutil.rmtree(place) if place.is_dir() else place.with_suffix(".py").unlink()
    wiring = (ROOT / "anonml.py").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in wiring if not any(f'"{room}.' in line for room in gone)]
    (tree / "anonml.py").write_text("".join(kept), encoding="utf-8")
    (tree / "tests").mkdir()
    for name in ("pyproject.toml", "tests/__init__.py", "tests/conftest.py"):
        shutil.copy(ROOT / name, tree / name)
    for name in ("tests/support", "tests/peer", "tests/aggregator"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("out"))  # pictures of pages


PURE = ("anon.crypto.pure",)
"""The twins in Python of native cryptography."""


def _without_twins(tree: Path) -> None:
    """A copy of the product without them, with their line of wiring turned over; and without a shell that no study
    needs."""
    _without("anon.kit.testnet", tree)
    for room in PURE:
        shutil.rmtree(tree / room.replace(".", "/"))
    wiring = tree / "anon/crypto/backend.py"
    told = wiring.read_text("utf-8")
    assert told.count("HAS_PURE: bool = True\n") == 1
    wiring.write_text(told.replace("HAS_PURE: bool = True\n", "HAS_PURE: bool = False\n"), "utf-8")


def test_what_tests_share_stands_on_no_test() -> None:
    """Beside `tests/support` a tree without a shell has the tests of both sides' sessions alone."""
    shared = [ROOT / "tests/conftest.py", *_modules("tests/support")]
    wrong = {
        path.name: sorted(
            name for name in rooms.imports(path) if name.startswith("tests.") and not name.startswith("tests.support")
        )
        for path in shared
    }
    assert {name: names for name, names in wrong.items() if names} == {}


@pytest.mark.slow
def test_any_shell_can_be_deleted(tmp_path: Path) -> None:
    """Its folder and its line of wiring: the rest imports, adds its commands, and studies still go their way."""
    # Nothing is left above them to show.
    kits = {"anon.kit.terminal", "anon.kit.page", "anon.kit.diagnosis", "peer.opening", "aggregator.opening"}
    shells = sorted(rooms.SHELLS.keys() - kits)
    for shell in shells:
        _without(shell, tmp_path / shell)
    _without_twins(tmp_path / "twins")
    trees = [str(tmp_path / name) for name in (*shells, "twins")]
    program = [sys.executable, str(ROOT / "tests" / "without_shells.py"), *trees]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def test_no_tests_name_depends_on_chance() -> None:
    """Workers collect the tests on their own, and none runs where two of them found different names."""
    chance = {"urandom", "token_bytes", "token_hex", "randbytes", "random", "randint", "uuid4", "time", "now"}
    called_at_all = re.compile(rf"\b({'|'.join(chance)})\s*\(")
    called = [
        (path.name, node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id)
        for path in (ROOT / "tests").rglob("test_*.py")
        if called_at_all.search(text := path.read_text("utf-8"))
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)
    ]
    assert [(name, call) for name, call in called if call in chance] == []


def test_no_module_is_longer_than_400_lines() -> None:
    lines = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in rooms.modules().values()
    }
    assert {path for path, count in lines.items() if count > LONGEST_MODULE} == set()


def test_no_room_holds_more_than_18_modules() -> None:
    """A folder that grows beyond holds a second subject: it gets a folder of its own."""
    modules = Counter(
        path.parent.relative_to(ROOT).as_posix() for path in rooms.modules().values() if path.name != "__init__.py"
    )
    assert {room for room, count in modules.items() if count > MOST_MODULES} == set()


def _product() -> list[Path]:
    return [ROOT / "anonml.py", *(path for side in sorted(SIDES) for path in _modules(side))]


def _bound(node: ast.AST) -> str:
    """The name that a node binds: a variable's, an argument's, a pattern's or a fault's."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.arg):
        return node.arg
    return (node.name or "") if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) else ""


@cache
def _names(path: Path) -> tuple[list[int], list[tuple[str, set[str]]]]:
    """The lines of a module that bind `one`, and its public classes: of each the name and those of its bases."""
    tree = ast.parse(text := path.read_text("utf-8"))
    nodes = ast.walk(tree) if re.search(r"\bone\b", text) else ()
    classes = [
        (node.name, {ast.unparse(base).split("[")[0] for base in node.bases})
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    return [getattr(node, "lineno", 0) for node in nodes if _bound(node) == "one"], classes


def test_a_name_says_what_it_holds() -> None:
    """`one` says nothing. It is left where it is the number one, or one of two wordings."""
    lines = [f"{path.relative_to(ROOT).as_posix()}:{line}" for path in _product() for line in _names(path)[0]]
    example = ast.walk(ast.parse("one = [one for one in two]; key = lambda one: one"))
    assert sum(_bound(node) == "one" for node in example) == 3
    assert len(lines) <= MOST_OF_ONE, lines


def test_few_classes_share_a_name() -> None:
    """Those that do are twins of both sides, such as the events of the two life cycles, or a notebook's own words."""
    modules: dict[str, set[str]] = {}
    for path in _product():
        for name, _ in _names(path)[1]:
            modules.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    shared = {name: sorted(where) for name, where in modules.items() if len(where) > 1}
    assert "Event" in shared and len(modules) > 500
    assert len(shared) <= MOST_SHARED_NAMES, shared


IRREGULAR = {
    "Begun", "Broken", "Chosen", "Drawn", "Found", "Given", "Gone", "Heard", "Held", "Hidden", "Kept", "Known",
    "Left", "Lost", "Made", "Met", "Proven", "Read", "Seen", "Sent", "Shown", "Spent", "Taken", "Told", "Written",
}
PARTICIPLES = {
    "Marked": "a kind of text, beside `Figure` and `Term`",
    "Quoted": "a kind of text, beside `Figure` and `Term`",
    "Relayed": "the glossary's word for a packet as one teller is shown it",
}


def test_a_class_is_named_by_a_noun() -> None:
    """A participle alone leaves open what it is said of: a packet, a study, a file. Errors are sentences, and may be
    one."""
    classes = [found for path in _product() for found in _names(path)[1]]
    errors = {"AnonmlError", "Exception", "ValueError", "RuntimeError", "OSError", "TypeError"}
    for _ in classes:
        more = {name for name, bases in classes if bases & errors} - errors
        if not more:
            break
        errors |= more
    alone = re.compile(r"[A-Z][a-z]*[^e]ed")
    named = {name for name, _ in classes if alone.fullmatch(name) or name in IRREGULAR}
    assert {"Malformed", "Refused"} <= named & errors, "the search finds no participle at all"
    assert named - errors == set(PARTICIPLES)


ROOMS_OF_PROTOCOLS = (
    "anon/protocols/",
    "peer/protocols/",
    "aggregator/protocols/",
    "aggregator/lab/",
    "aggregator/estimator/",
)


CANONICAL = {
    "anon/wire/cbor.py": "the one encoder",
    "anon/wire/lists.py": "long lists of byte strings, read where they lie",
    "anon/wire/messages.py": "enrolment, withdrawal, abandonment, roster, seed, credentials, packet, cover",
    "anon/wire/letters.py": "the report of a written survey, the purpose of a letter",
    "anon/protocols/board.py": "a page of the board",
    "aggregator/study/seat.py": "the grounds of a seat's random bytes",
    "anon/wire/packets.py": "packets, cover traffic, and what a teller is shown of a packet",
    "anon/sharing/arrangement.py": "a study's tellers and sums",
    "anon/sharing/quorum.py": "a pair of tellers, as one of them keeps it",
    "anon/sharing/statements.py": "the statements of tellers",
    "anon/sharing/round_document.py": "the document of a round of sums",
    "anon/sharing/exchange.py": "the calls of tellers",
    "anon/teller/session.py": "the purpose that a part of a verification key is sealed for",
    "anon/study/manifest.py": "the manifest",
    "anon/transparency/documents.py": "heads and chains of heads",
    "anon/transparency/transcript.py": "transcripts",
    "anon/transparency/buckets.py": "documents in buckets, a bucket",
    "anon/transparency/equivocation.py": "evidence",
    "anon/transparency/bucket_evidence.py": "evidence of a bad bucket",
    "anon/protocols/sum/masks/layout.py": "the part of a study of masks",
    "anon/protocols/sum/masks/masking.py": "the grounds of masks",
    "anon/protocols/sum/masks/sharing.py": "the grounds of shares",
    "anon/protocols/sum/oblivious/messages.py": "the grounds of the streams of oblivious averaging",
    "aggregator/protocols/sum/drawn.py": "the grounds of drawn rows",
    "anon/protocols/sum/groups/drawing.py": "the grounds of the draw of groups",
    "anon/protocols/sum/groups/layout.py": "the part of a study of groups",
    "peer/protocols/trees.py": "the grounds of a tree's noise",
    "aggregator/protocols/trees.py": "the grounds of the rows of trees",
    "anon/protocols/histogram/thresholds.py": "the histogram's thresholds and edges",
    "aggregator/store/home.py": "a study's keys, in the aggregator's home",
    "peer/rules/study_secrets.py": "a study's secrets, in the peer's home",
    "peer/ledger/declaration.py": "the terms of a federated job",
    "peer/data/making/content.py": "what packets say and what a child is told of it, between two processes",
    "peer/store/database/integrity.py": "a digest of a store",
    "peer/release.py": "a digest of the grounds of a release",
}


def test_every_wire_format_has_one_module() -> None:
    """A module that spells canonical bytes is named here with what it spells, and nothing is named twice."""
    spelling = {"anon.wire.cbor.encode", "anon.wire.cbor.decode", "cbor2"}
    users = {
        path.relative_to(ROOT).as_posix() for side in SIDES for path in _modules(side) if rooms.imports(path) & spelling
    }
    assert users | {"anon/wire/cbor.py"} == set(CANONICAL)
    formats = [name for spelled in CANONICAL.values() for name in spelled.split(", ")]
    assert len(formats) == len(set(formats))


def test_a_protocol_is_known_in_its_rooms_alone() -> None:
    """Everything else asks the registries; the lab and the estimator are shells of the histogram and the sums."""
    own = re.compile(r"\.protocols\.(histogram|sum|vectors)(\.|$)")
    wrong = {
        path.relative_to(ROOT).as_posix(): sorted(name for name in rooms.imports(path) if own.search(name))
        for side in (*sorted(SIDES), "bundle")
        for path in _modules(side)
        if not path.relative_to(ROOT).as_posix().startswith(ROOMS_OF_PROTOCOLS)
    }
    assert (
        own.search("peer.protocols.sum.part")
        and own.search("anon.protocols.histogram.design")
        and own.search("anon.protocols.vectors.moments")
    )
    assert {path: names for path, names in wrong.items() if names} == {}


def test_no_protocol_knows_another() -> None:
    """Whatever two of them need stands below both: tables and linear models, the additive learner, the tellers'
    arrangement."""
    own = {"histogram": re.compile(r"\.protocols\.histogram(\.|$)"), "sum": re.compile(r"\.protocols\.sum(\.|$)")}
    composed = {f"{side}.protocols.installed" for side in SIDES}
    known = {
        name: {protocol for protocol, room in own.items() if any(room.search(found) for found in rooms.imports(path))}
        for name, path in rooms.modules().items()
        if ".protocols" in name and name not in composed
    }
    assert {"histogram"} in known.values() and {"sum"} in known.values(), "the search finds nothing"
    wrong = {
        name: protocols
        for name, protocols in known.items()
        if protocols - {protocol for protocol, room in own.items() if room.search(name)}
    }
    assert wrong == {}


RULES = [
    *sorted(
        path.relative_to(ROOT).as_posix() for side in SIDES for path in _modules(side) if path.parent.name == "rules"
    ),
    "peer/release.py", "peer/protocols/histogram.py", "peer/protocols/contract.py", "anon/protocols/contract.py",
    "anon/wire/messages.py", "anon/wire/packets.py", "anon/transparency/documents.py",
    "anon/sharing/arrangement.py", "anon/sharing/sealed_shares.py", "anon/sharing/statements.py",
    "anon/sharing/combine.py", "anon/sharing/round_document.py", "anon/sharing/exchange.py", "anon/sharing/quorum.py",
    "anon/teller/rules.py", "anon/teller/session.py", "peer/run/plan.py", "peer/run/jobs.py", "peer/run/departures.py",
]
OUTSIDE = {
    "aiohttp", "aiosqlite", "asyncio", "concurrent", "http", "importlib", "io", "multiprocessing", "os", "pathlib",
    "random", "shutil", "signal", "socket", "sqlalchemy", "sqlite3", "subprocess", "sys", "tempfile", "threading",
    "time", "urllib", "jinja2", "rich", "typer",
}
SHELLS_WORDS = re.compile(
    r"anonml (peer|aggregator|study|simulate|evidence|doctor)|(^|\s)--[a-z]|</?[a-z]+>|\b(page|desk|tray|browser)\b"
)


@pytest.mark.parametrize("name", RULES)
def test_files_that_hold_rules_do_not_wait(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    assert not [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith))
    ]
    assert not _roots(ROOT / name) & OUTSIDE


@pytest.mark.parametrize("name", [name for name in RULES if "/rules/" in name])
def test_rules_speak_no_word_of_a_shell(name: str) -> None:
    """A rule names the owner's next step as a value (`peer/rules/advice.py`); each surface words it."""
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [text for text in texts if SHELLS_WORDS.search(text)] == []


@pytest.mark.slow
def test_every_mutant_still_stands_in_the_code_and_its_tests_are_there() -> None:
    """A list that rots shows nothing: `make mutants` would leave out what it no longer finds."""
    listed, wrong = mutants(), list[str]()
    for mutant in listed:
        try:
            compile(mutant.source(), mutant.file, "exec")
        except (ValueError, SyntaxError, OSError) as fault:
            wrong.append(f"{mutant}: {fault}")
        for test in mutant.tests:
            file, _, name = test.partition("::")
            if (
                not (ROOT / file).exists()
                or f"def {name.rpartition('::')[2]}(" * bool(name) not in (ROOT / file).read_text("utf-8")
            ):
                wrong.append(f"{mutant}: there is no {test}")
    assert wrong == []
    assert len({(one.file, one.function, one.text, one.replacement) for one in listed}) == len(listed)


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


@pytest.mark.process
def test_a_peer_lives_a_whole_study_without_the_learning_stack() -> None:
    """Look, join, run, be included, and be refused: the peer's own session tests, with those imports impossible. And
    rounds of exact sums."""
    program = _BLOCKED.format(heavy=HEAVY) + (
        "import pytest\n"
        "asked = ['tests/peer/test_peer_session.py', "
        "'tests/peer/test_peer_sum_rounds.py::test_the_sums_of_each_round_are_fetched_once']\n"
        "code = pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:xdist', *asked])\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.process
def test_all_of_anon_and_peer_import_without_the_learning_stack() -> None:
    subprocess.run([sys.executable, "-c", _BLOCKED.format(heavy=HEAVY)], cwd=ROOT, check=True, timeout=120)
