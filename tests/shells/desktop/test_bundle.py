"""The peer as one program and as Briefcase's Debian package: built here, unpacked, and run with an empty environment.

Minutes each, so they are soaked. Briefcase fetches a template; without a network $ANONML_BRIEFCASE_TEMPLATE names a
copy.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from peer.desktop.login import xdg_autostart
from tests.shells.desktop.test_login_formats import _as_desktops_read
from tests.support.peer_command import Served

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = os.environ.get("ANONML_BRIEFCASE_TEMPLATE", "")


def _made(*words: str) -> None:
    done = subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.fixture(scope="module", params=["package", "deb"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "package":
        _made("package")
        return ROOT / "dist" / "anonml-peer"
    if not TEMPLATE or not Path("/etc/debian_version").exists():
        pytest.skip("needs Debian and $ANONML_BRIEFCASE_TEMPLATE, a copy of Briefcase's template")
    _made("deb", f"TEMPLATE={TEMPLATE}")
    folder = tmp_path_factory.mktemp("unpacked")
    package = next((ROOT / "dist").glob("anonml-app_*.deb"))
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    return folder / "usr" / "bin" / "anonml-app"


def _run(program: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    alone = {"HOME": str(home), "PATH": "/nowhere"}
    return subprocess.run(
        [program, *words], env=alone, cwd="/", capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.soak
def test_a_packed_peer_joins_sends_and_starts_itself_at_login(program: Path, served: Served, tmp_path: Path) -> None:
    assert _run(program, tmp_path, "--version").stdout.startswith("anonml ")
    looked = _run(program, tmp_path, "doctor")
    assert looked.returncode == 0 and "ok  tokens" in looked.stdout, looked.stdout + looked.stderr
    assert _run(program, tmp_path, "peer", "budget", "--minimum-cohort", "3").returncode == 0
    joined = _run(program, tmp_path, "peer", "join", served.link, "--yes")
    assert joined.returncode == 0, joined.stderr
    switched = _run(program, tmp_path, "peer", "autostart", "on", "--as-root")
    assert switched.returncode == 0, switched.stderr
    words = _as_desktops_read((tmp_path / ".config/autostart" / xdg_autostart.NAME).read_text())
    assert words[:4] == [str(program), "peer", "run", "--stay"]
    started = subprocess.Popen(words, env={"HOME": str(tmp_path)}, cwd="/", start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not served.aggregator.sent("enrol") and started.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        started.send_signal(signal.SIGTERM)
        assert started.wait(30) == 0
    assert len(served.aggregator.sent("enrol")) == 1
    left = subprocess.run(["ps", "-o", "args=", "-s", str(started.pid)], capture_output=True, text=True, check=False)
    assert left.stdout == ""
    assert _run(program, tmp_path, "peer", "autostart", "off").returncode == 0
    assert not (tmp_path / ".config/autostart" / xdg_autostart.NAME).exists()
