"""Both HTTP interfaces against their OpenAPI documents: whatever is sent, no server error and no undocumented
answer."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aggregator.desk.openapi import public_document
from aggregator.desk.routes import ROUTES
from aggregator.network import http
from tests.support.desk_browser import Desk, opened
from tests.support.world import World, in_memory, study_text

pytestmark = pytest.mark.slow

CHECKS = "not_a_server_error,status_code_conformance,response_schema_conformance"
EXAMPLES = "6"


async def _fuzz(folder: Path, document: dict[str, Any], origin: str, operations: int, *more: str) -> None:
    """Against a running server. `operations`: how many must have been tried."""
    source = folder / "openapi.json"
    source.write_text(json.dumps(document))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "schemathesis.cli", "run", str(source), "--url", origin, "--checks", CHECKS, "-n",
        EXAMPLES,
        "--phases", "examples,coverage,fuzzing", "--seed", "5", "--warnings", "off", *more,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=folder,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-6000:]
    words = said.decode()
    assert re.search(r"\d+ generated, \d+ passed", words), words[-2000:]
    tested = re.search(r"Tested: (\d+)", words)
    assert tested is not None and int(tested[1]) == operations, f"expected all {operations} operations: {words[-1500:]}"


def _about(document: dict[str, Any], study: str) -> dict[str, Any]:
    """The same document, told which study there is: else every answer would be "no such study"."""
    known = copy.deepcopy(document)
    for item in known["paths"].values():
        for one in [
            *item.get("parameters", []),
            *(p for op in item.values() if isinstance(op, dict) for p in op.get("parameters", [])),
        ]:
            if one["name"] == "study":
                one["schema"] = {"type": "string", "enum": [study, "0" * 64]}
    return known


async def _published(running: World) -> None:
    await running.collected(4)
    await running.go_to(running.closes)


async def test_what_peers_ask(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        runner, port = await http.start({running.live.study: running.live}, "127.0.0.1", 0)
        try:
            await _fuzz(
                tmp_path,
                _about(public_document(), running.live.study.hex()),
                f"http://127.0.0.1:{port}",
                len(public_document()["paths"]),
            )
        finally:
            await runner.cleanup()
        counted = Counter(running.live.answers.enrolments.exact()) + Counter(running.live.answers.packets.exact())
        assert sum(counted.values()) > 10 and "accepted" not in counted


async def _desk_document(desk: Desk) -> dict[str, Any]:
    study = desk.app.studies()[0].study.hex()
    document = _about(json.loads((await desk.get("/openapi.json")).text), study)
    await desk.get("/editor")
    for item in document["paths"].values():
        for operation in item.values():
            for media in operation.get("requestBody", {}).get("content", {}).values():
                media["schema"]["properties"]["form_token"] = {"type": "string", "const": desk.token}
    return document


async def test_the_desk(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        await _published(running)
        async with opened(running.app, running) as desk:
            (cookie,) = list(desk.session.cookie_jar)
            document = await _desk_document(desk)
            allowed = ("-H", f"Cookie: {cookie.key}={cookie.value}", "-H", f"Origin: {desk.origin}")
            await _fuzz(
                tmp_path, document, desk.origin, len(ROUTES) - 1, *allowed, "--exclude-operation-id", "sign_out"
            )
            assert (await desk.get("/")).status == 200
            await _fuzz(tmp_path, document, desk.origin, 1, *allowed, "--include-operation-id", "sign_out")
            assert (await desk.get("/")).status == 401
