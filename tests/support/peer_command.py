"""`anonml peer ...` as typed, and an aggregator in memory that it reaches over loopback HTTP."""

from __future__ import annotations

import asyncio
import io
import re
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

import anonml
from anon.errors import Unreachable
from tests.support.clock import Clock
from tests.support.command_line import Done
from tests.support.fake_aggregator import DECLARED, FakeAggregator

_build = anonml._command


@cache
def _built(_application: object, name: str, wanted: str) -> Any:
    """A command's parser, made once for all tests that patch nothing of its making."""
    return _build(name, [wanted])


@frozen
class Command:
    """Runs `anonml peer WORDS --home HOME` in this process, with `typed` as what the owner types."""

    home: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *words: str | Path, typed: str = "", home: Path | None = None) -> Done:
        used = home or self.home
        done = self.anonml("peer", *words, "--home", used, typed=typed)
        return Done(done.code, _hinting(done.out, used), _hinting(done.err, used))

    def anonml(self, *words: str | Path, typed: str = "") -> Done:
        """Runs `anonml WORDS`."""
        self.monkeypatch.setattr(sys, "argv", ["anonml", *map(str, words)])
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        self.monkeypatch.setattr(
            anonml, "_command", lambda name, rest: _built(anonml._application, name, next(iter(rest), ""))
        )
        self.capsys.readouterr()
        code = 0
        try:
            anonml.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return Done(code, out, err)


def _hinting(text: str, home: Path) -> str:
    """Hints of commands as they are without a home given (tests/anon/terminal/test_hints.py)."""
    return re.sub(rf"\s--home\s+{re.escape(shlex.quote(str(home)))}(?=`)", "", text)


@frozen
class Served:
    """A study on the wall clock, and its link at a real socket."""

    aggregator: FakeAggregator
    link: str


@contextmanager
def serving(text: str = DECLARED) -> Iterator[Served]:
    """A aggregator behind HTTP until the block ends."""
    aggregator = FakeAggregator.with_study(text, Clock(time.time()))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(aggregator.get("", self.path, 1 << 22))

        def do_POST(self) -> None:
            self._answer(aggregator.post("", self.path, self.rfile.read(int(self.headers["Content-Length"])), 1 << 22))

        def _answer(self, work: Any) -> None:
            try:
                answer = asyncio.run(work)
            except Unreachable:
                self.close_connection = True
                return
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Served(aggregator, evolve(aggregator.invite, address=f"127.0.0.1:{server.server_port}").link())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
