"""The commands of the documents, run as they stand: with Debian's own Python 3.11 and pipx, each page in an empty home.

A page's blocks run in order. A page that installs the program does it by its own line. The others find the program that
the page for staff installed. `pip` takes the wheels that the locks name, and asks no index.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from attrs import frozen

from tests.docs.blocks import Block, all_blocks
from tests.support.installing import CONSTRAINTS, wheel, wheels

pytestmark = pytest.mark.process

PYTHON, PIPX = Path("/usr/bin/python3.11"), Path("/usr/bin/pipx")
LONGEST = 300
INSTALLING = "docs/staff/first-study.md"
"""Its own walk installs the program that the other pages use."""
GIVEN = {"mylog.csv": "hours,forum,left_course\n31,often,0\n"}
"""Files that a page's reader has."""
BEFORE = {
    "docs/staff/class-size.md": """anonml study init study.toml
        anonml study synthesize study.toml --rows 600 --output last-year.csv""",
    "docs/student/questions.md": "anonml peer budget --lifetime 10",
}
"""The steps that a page's reader took before, on another page."""

PAGES: dict[str, list[Block]] = {}
for one in all_blocks():
    if one.language == "sh" and not one.reason:
        PAGES.setdefault(one.page, []).append(one)


@frozen
class Shop:
    """The wheel that staff hand out, the packages that pip takes, and pipx's own pip, which it makes once for all
    homes.
    """

    wheel: Path
    packages: Path
    shared: Path

    def visit(self, home: Path, page: str, programs: Path | None = None) -> None:
        """Run a page in an empty home."""
        shutil.copy(self.wheel, home)
        for name, text in GIVEN.items():
            (home / name).write_text(text)
        for text, place in [(BEFORE.get(page, ""), "before"), *((block.text, str(block)) for block in PAGES[page])]:
            done = self._shell(text, home, programs or home / ".local" / "bin")
            assert done.returncode == 0, f"{place}:\n{text}{done.stdout[-2000:]}{done.stderr[-2000:]}"

    def _shell(self, text: str, home: Path, programs: Path) -> subprocess.CompletedProcess[str]:
        words = {
            **{"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8", "COLUMNS": "100"},
            **{"OMP_NUM_THREADS": "1", "USE_EMOJI": "0", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"},
            **{"PIP_FIND_LINKS": str(self.packages), "PIP_CONSTRAINT": str(CONSTRAINTS), "PIP_NO_COMPILE": "1"},
            "PIPX_SHARED_LIBS": str(self.shared),
        }
        command = ["bash", "-euo", "pipefail", "-c", text]
        return subprocess.run(
            command,
            cwd=home,
            env=words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    for needed in (PYTHON, PIPX):
        if not needed.exists():
            pytest.skip(f"{needed} is missing: apt-get install python3 python3-venv pipx, on Debian 12")
    shared = tmp_path_factory.mktemp("pipx") / "shared"
    return Shop(wheel(tmp_path_factory.mktemp("wheel") / "built"), wheels("[aggregator]", "3.11"), shared)


@pytest.fixture(scope="module")
def staffs(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home in which staff walked their page."""
    home = tmp_path_factory.mktemp("staff")
    shop.visit(home, INSTALLING)
    return home


def test_what_runs_is_the_oldest_that_the_documents_name(staffs: Path) -> None:
    """Debian 12's Python and pipx; a home's program runs under that Python."""
    python = staffs / ".local" / "pipx" / "venvs" / "anonml" / "bin" / "python"
    assert python.resolve() == PYTHON.resolve()
    version = subprocess.run([str(PIPX), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    assert version == "1.1.0" or 'VERSION_ID="12"' not in Path("/etc/os-release").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_in_an_empty_home(page: str, shop: Shop, staffs: Path, tmp_path: Path) -> None:
    installs = any("pipx install" in block.text for block in PAGES[page])
    if page != INSTALLING:
        shop.visit(tmp_path, page, None if installs else staffs / ".local" / "bin")


def test_a_command_that_fails_is_seen(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's pipx refuses a wheel without `./`."""
    monkeypatch.setitem(PAGES, "wrong", [Block("wrong", 1, "sh", f"pipx install {shop.wheel.name}\n", "")])
    with pytest.raises(AssertionError, match="wrong:1"):
        shop.visit(tmp_path, "wrong")
