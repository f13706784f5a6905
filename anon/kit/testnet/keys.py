"""The authority's keys, made by tor's own tools: `tor-gencert` and `tor --list-fingerprint`."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from anon.errors import Refused, Unreachable
from anon.kit.testnet.layout import NetworkLayout, Relay
from anon.machine.environment import Child, for_child

VALID_MONTHS = 3
PATIENCE = 30.0


def find_gencert(tor: Path) -> Path:
    """`tor-gencert`, beside this tor or on the PATH. Raises `Refused` with one next action."""
    beside = tor.with_name("tor-gencert")
    program = str(beside) if beside.is_file() else shutil.which("tor-gencert")
    if not program:
        raise Refused(
            "tor-gencert is missing, which makes the keys of a private network's authority; install a tor that brings "
            "it (Debian: apt-get install tor; Homebrew: brew install tor; Tor Browser's has none)"
        )
    return Path(program)


async def make_identity(gencert: Path, layout: NetworkLayout) -> str:
    """Make the authority's v3 identity, signing key and certificate; the identity's fingerprint.

    The passphrase that guards the identity key is empty, and it lies beside the others: a network of an afternoon.
    """
    keys = layout.authority.data / "keys"
    keys.mkdir(parents=True, mode=0o700)
    certificate = keys / "authority_certificate"
    await _run(
        [
            str(gencert),
            "--create-identity-key",
            "-m", str(VALID_MONTHS),
            "-a", f"{layout.address}:{layout.dir_port}",
            "-i", str(keys / "authority_identity_key"),
            "-s", str(keys / "authority_signing_key"),
            "-c", str(certificate),
            "--passphrase-fd", "0",
        ]
    )  # fmt: skip
    return _found(r"^fingerprint ([0-9A-F]{40})$", certificate.read_text("ascii"), "tor-gencert")


async def relay_fingerprint(tor: Path, relay: Relay) -> str:
    """Make a relay's keys; the fingerprint of its RSA identity."""
    output = await _run(
        [
            str(tor), "--defaults-torrc", "/dev/null", "-f", "-", "--quiet",
            "--list-fingerprint",
            "--DataDirectory", str(relay.data),
            "--Nickname", relay.name,
            "--ORPort", f"{relay.address}:{relay.or_port}",
            "--Address", relay.address,
        ]
    )  # fmt: skip
    digits = _found(rf"^{relay.name} ((?:[0-9A-F]{{4}} ?){{10}})$", output, "tor --list-fingerprint")
    return digits.replace(" ", "")


async def _run(command: Sequence[str]) -> str:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, env=for_child(Child.PROGRAM)
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(b"\n"), PATIENCE)
    except TimeoutError:
        raise Unreachable(f"{Path(command[0]).name} did not end within {PATIENCE:g} s; try again") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Unreachable(f"{Path(command[0]).name} failed ({process.returncode}): {last or 'without a word'}")
    return out.decode("utf-8", "replace")


def _found(pattern: str, text: str, tool: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise Unreachable(f"{tool} named no fingerprint; expected tor 0.4.8 or later (`tor --version`)")
    return match[1].strip()
