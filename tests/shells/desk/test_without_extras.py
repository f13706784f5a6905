"""A base install: what an extra brings is asked for by those alone who want it, and its lack is one clear line."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.lab.test_export_model import SOFT

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
MODULES = {"pillow": "PIL", "zxing-cpp": "zxingcpp"}
NOT_OURS = {"aggregator", "test", "check", "bench"}
"""The aggregator's own parts, and extras of those who develop this."""


def _packages() -> list[str]:
    """The modules of every optional part, from the one list of them."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    names = [
        re.split(r"[^A-Za-z0-9-]", wanted)[0]
        for extra, parts in extras.items()
        if extra not in NOT_OURS
        for wanted in parts
    ]
    return [MODULES.get(name, name) for name in names]


_PROGRAM = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
"""


def _run(program: str, tmp_path: Path) -> str:
    """The last line that a program without any extra says."""
    blocked = _PROGRAM.format(blocked=_packages()) + program
    command = [sys.executable, "-c", blocked, str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": "/nowhere", "HOME": str(tmp_path), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return (done.stdout + done.stderr).strip().rpartition("\n")[2]


def test_everything_is_imported_and_a_served_desk_has_no_openapi_until_it_is_asked(tmp_path: Path) -> None:
    assert {"onnx", "skops", "weasyprint", "asyncpg", "pyarrow", "PIL"} <= set(_packages())
    program = (
        "import aggregator.app, aggregator.cli.serve, aggregator.desk.server, peer.web.server\n"
        "early = 'aggregator.desk.openapi' in sys.modules\n"
        "import importlib, pkgutil, anon, peer, aggregator\n"
        "for package in (anon, peer, aggregator):\n"
        "    for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(found.name)\n"
        "print(early, 'aggregator.desk.openapi' in sys.modules)\n"
    )
    assert _run(program, tmp_path) == "False True"


@pytest.mark.parametrize("name", ["model.onnx", "model.skops"])
def test_a_model_for_other_programs_says_what_to_install(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(SOFT.to_json(), "utf-8")
    words = ["anonml", "aggregator", "export-model", str(tmp_path / "model.json"), str(tmp_path / name)]
    said = _run(f"sys.argv = {words!r}; import anonml; anonml.main()", tmp_path)
    assert re.fullmatch(
        rf"refused: the package {name.rpartition('.')[2]} is missing; `pipx install --force '.*\[.*export.*\]'`", said
    ), said


def test_help_says_what_an_installation_lacks_and_how_to_add_it(tmp_path: Path) -> None:
    for blocked, shown in (("", False), ("sys.modules['sqlalchemy'] = None; ", True)):
        program = (
            f"import contextlib, io, sys; {blocked}sys.argv = ['anonml', '--help']; said = io.StringIO()\n"
            "import anonml\n"
            "with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):\n"
            "    anonml.main()\n"
            "print(' '.join(said.getvalue().split()))\n"
        )
        lack = r"aggregator, study and simulate lack their packages here: `pipx install --force '.*aggregator"
        assert bool(re.search(lack, _run(program, tmp_path))) is shown


def test_a_pdf_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "from aggregator.report.pdf import to_pdf\ntry:\n    to_pdf('<p>x</p>')\nexcept Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    assert re.fullmatch(
        (
            r"Refused no program here makes PDF: install Chromium, or pango and `pipx install --force "
            r"'.*\[.*pdf.*\]'`; or name an \.html"
        ),
        _run(program, tmp_path),
    )
