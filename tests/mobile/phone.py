"""A phone, as far as imports go: commands run by `mobile_process`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ENVIRONMENT, ROOT

PROCESS = Path(__file__).with_name("mobile_process.py")
SITE = ROOT / ".venv" / "mobile"
ABSENT = [
    *(
        "numpy", "scipy", "sklearn", "pandas", "joblib", "sqlalchemy", "aiosqlite", "greenlet", "pydantic",
        "pydantic_core",
    ),
    *(
        "py_arkworks_bls12381", "pyblst", "nacl", "cryptography", "Crypto", "cffi", "_cffi_backend", "gmpy2", "_cbor2",
        "aggregator",
    ),
]
needs_site = pytest.mark.skipif(
    not SITE.is_dir(), reason="`make .venv/mobile` first: a phone's packages are not installed"
)


async def on_a_phone(
    *commands: Sequence[str | Path], walk: bool = False, python: str = sys.executable, first: str = ""
) -> tuple[list[Any], dict[str, Any]]:
    """The output of each command, parsed if it is JSON, and the libraries beneath. Every command must succeed. `first`:
    Python that is run before them."""
    told = {"commands": [[*map(str, one)] for one in commands], "absent": ABSENT, "walk": walk, "first": first}
    process = await asyncio.create_subprocess_exec(
        *(python, "-I", "-S", str(PROCESS), json.dumps(told)),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=ROOT, env=ENVIRONMENT,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 240)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, err.decode()
    said = json.loads(out)
    for one in said["done"]:
        assert one["code"] == 0, one
    printed = [json.loads(one["out"]) if "--json" in one["words"] else one["out"] for one in said["done"]]
    return printed, said["underneath"]
