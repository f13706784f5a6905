"""A peer imports on a phone, and a stated rule chooses the cryptographic library beneath it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from anon.crypto.backend import NATIVE, PURE, choose
from tests.mobile.phone import needs_site, on_a_phone
from tests.mobile.resolve import EXPECTED
from tests.support.command_line import ROOT


def interpreters() -> list[str]:
    """This one, and what phones have where it is installed. Extensions of another version count as absent."""
    found = [sys.executable]
    for name in ("python3.13", "python3.14"):
        path = shutil.which(name)
        if (
            path
            and subprocess.run([path, "-c", "import sqlite3, ssl"], capture_output=True, check=False).returncode == 0
        ):
            found.append(path)
    return found


@needs_site
@pytest.mark.slow
async def test_all_of_anon_and_peer_import_on_a_phone() -> None:
    for python in interpreters():
        _, below = await on_a_phone(walk=True, python=python)
        assert below["present"] == below["elsewhere"] == []
        assert all(name.startswith(("aiohttp", "markupsafe")) for name in below["compiled"]), below["compiled"]


@pytest.mark.parametrize("library", ["py_arkworks_bls12381", "nacl", "cryptography", "Crypto"])
@pytest.mark.parametrize(("setting", "platform", "installed", "outcome"), [
    ("", "linux", True, NATIVE), ("", "android", True, NATIVE), ("", "ios", False, PURE), ("", "android", False, PURE),
    ("pure", "linux", True, PURE), ("pure", "ios", False, PURE), ("native", "linux", True, NATIVE),
])
def test_which_library_is_chosen(library: str, setting: str, platform: str, installed: bool, outcome: str) -> None:
    assert choose(library, setting, platform, installed) == outcome


@pytest.mark.parametrize(("setting", "platform"), [
    *(("", platform) for platform in ("linux", "darwin", "win32", "freebsd14", "cygwin")),
    ("native", "android"), ("native", "ios"), ("native", "linux"), ("python", "android"), ("PURE", "linux"),
    ("0", "ios"),
])
def test_nothing_slower_is_taken_silently(setting: str, platform: str) -> None:
    with pytest.raises(ImportError, match="ANONML_CRYPTO"):
        choose("nacl", setting, platform, installed=False)


BROKEN = """
import importlib.abc, sys
class Break(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {library!r}:
            raise {error}
sys.meta_path.insert(0, Break())
sys.platform = {platform!r}
try:
    import {module}
except ImportError as error:
    print(type(error).__name__, error)
else:
    print(sys.modules[{module!r}].IMPLEMENTATION)
"""


@pytest.mark.parametrize(("library", "module"), [
    ("py_arkworks_bls12381", "anon.crypto.curve"), ("nacl", "anon.crypto.nacl"),
    ("cryptography", "anon.crypto.sealing"), ("Crypto", "anon.crypto.turboshake"),
])
@pytest.mark.parametrize(("platform", "error", "said"), [
    ("linux", "ModuleNotFoundError('gone', name=name)", "ImportError the library"),
    ("android", "ModuleNotFoundError('gone', name=name)", "pure"),
    ("android", "ModuleNotFoundError('gone', name='its part')", "ModuleNotFoundError gone"),
    ("android", "ImportError('wrong architecture')", "ImportError wrong architecture"),
])
@pytest.mark.process
def test_a_missing_or_broken_library_in_a_real_process(
    library: str, module: str, platform: str, error: str, said: str
) -> None:
    program = BROKEN.format(library=library, module=module, platform=platform, error=error)
    environment = {name: value for name, value in os.environ.items() if name != "ANONML_CRYPTO"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(said), done.stdout


@pytest.mark.parametrize(("crypto", "name", "ok"), [
    ("native", "cryptography (native)", True),
    ("pure", "cryptography (curve, NaCl, sealing in Python: slower, and not constant-time)", False),
    ("python", "cryptography", False),
])
def test_the_diagnosis_says_what_is_underneath(crypto: str, name: str, ok: bool) -> None:
    program = (
        "from anon.kit.diagnosis.checks import _cryptography; one = _cryptography(); print(one.name, one.ok, "
        "one.action, sep='\\n')"
    )
    environment = {**os.environ, "ANONML_CRYPTO": crypto}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    said, fine, action = done.stdout.splitlines()
    assert (said, fine) == (name, str(ok))
    assert ok or "ANONML_CRYPTO" in action


@pytest.mark.source
@pytest.mark.parametrize("page", ["docs/mobile.md", "docs/student/android.md"])
def test_pages_count_a_phones_packages_as_they_resolve(page: str) -> None:
    resolved = [each["resolves"] for each in json.loads(EXPECTED.read_text()).values()]
    (said,) = re.findall(r"(\d+) packages", (ROOT / page).read_text("utf-8"))
    assert {len(names) for names in resolved} == {int(said)}
