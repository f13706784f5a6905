"""`anonml aggregator desk` as staff start it: a process, its link, a second link, metrics, and its end."""

from __future__ import annotations

import http.cookiejar
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from anon.errors import Refused
from anon.kit.page.gate import FORM_FIELD
from anonml import application, wiring

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
DESK = [sys.executable, "-m", "anonml", "aggregator", "desk", "--desk-port", "0", "--port", "0", "--json", "--home"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str], subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [*DESK, str(tmp_path / "home")], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        said = json.loads(process.stdout.readline()) | json.loads(process.stdout.readline())
        yield tmp_path / "home", said, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    )


def test_the_desk_as_a_process(desk: tuple[Path, dict[str, str], subprocess.Popen[str]]) -> None:
    home, said, process = desk
    assert said["address"].startswith("127.0.0.1:") and "/enter?token=" in said["desk"]
    first, second = _opener(), _opener()
    page = first.open(said["desk"]).read().decode()
    assert "No study yet" in page and said["address"] in page and FORM_FIELD in page
    again = subprocess.run([*DESK, str(home)], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
    link = json.loads(again.stdout)["desk"]
    assert link != said["desk"] and link.partition("?")[0] == said["desk"].partition("?")[0]
    assert "No study yet" in second.open(link).read().decode()
    status = subprocess.run(
        [sys.executable, "-m", "anonml", "aggregator", "status", "--json", "--home", str(home)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(status.stdout) == []
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=20)
    assert not (home / "desk.link").exists()
    assert said["desk"].partition("token=")[2] not in out + errors and "Traceback" not in errors


def test_taken_ports_are_told_together_before_anything_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as first, socket.socket() as second:
        for taken in (first, second):
            taken.bind(("127.0.0.1", 0))
            taken.listen()
        one, other = (str(taken.getsockname()[1]) for taken in (first, second))
        both = rf"^port {other} \(--port\) and port {one} \(--desk-port\) are taken;"
        for port, said in (("0", rf"^port {one} \(--desk-port\) is taken;"), (other, both)):
            words = ["desk", "--desk-port", one, "--port", port, "--home", str(tmp_path / "home")]
            with pytest.raises(Refused, match=said):
                application("aggregator", "desk")(args=words, obj=wiring(), standalone_mode=False)
    assert "serving at" not in capsys.readouterr().out


def test_a_home_that_is_served_without_a_desk_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    serve = [sys.executable, "-m", "anonml", "aggregator", "serve", "--port", "0", "--json", "--home", str(home)]
    process = subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stdout is not None and json.loads(process.stdout.readline())["address"]
        refused = subprocess.run([*DESK, str(home)], cwd=ROOT, check=False, capture_output=True, text=True, timeout=60)
        assert refused.returncode == 4 and "without a desk" in refused.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
