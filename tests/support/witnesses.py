"""Two witnesses of a process's traffic: the interpreter's audit hook, and strace, which sees native code too."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

_CHILDREN = ("from anon.queries.child import main; main()", "from peer.data.making.maker import main; main()")
_CALLS = "connect,sendto,sendmsg,sendmmsg"
_INET = re.compile(r"sa_family=AF_INET6?, sin6?_port=htons\((\d+)\).*?(?:inet_addr\(\"([^\"]+)\"\)|\"([0-9a-f:]+)\")")
_UNIX = re.compile(r"sa_family=AF_UNIX, sun_path=(@?\"[^\"]*\")")


@cache
def strace_works() -> bool:
    """True if strace is there and may trace."""
    if shutil.which("strace") is None:
        return False
    return (
        subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode
        == 0
    )


def strace(log: Path) -> list[str]:
    """The words before a command that let strace write its calls down."""
    return ["strace", "-f", "-qq", "-e", f"trace={_CALLS}", "-e", "signal=none", "-o", str(log)]


def audited(trap: Path, socks: int) -> list[str]:
    """The audit events other than connections to the SOCKS port; empty for an honest peer."""
    seen = [json.loads(line) for line in trap.read_text().splitlines()]
    return [f"{event} {told}" for event, told in seen if not (_to_tor(event, told, socks) or _evaluator(event, told))]


def _to_tor(event: str, told: list[object], socks: int) -> bool:
    return [event, told] == ["socket.connect", [["127.0.0.1", socks]]]


def _evaluator(event: str, told: list[object]) -> bool:
    """The start of a program that evaluates queries, or makes vectors: isolated, with an empty environment, at the
    root.
    """
    if event != "subprocess.Popen" or len(told) != 4:
        return False
    _executable, words, folder, environment = told
    ours = isinstance(words, list) and words[1:5] == ["-I", "-S", "-B", "-c"] and words[5].endswith(_CHILDREN)
    return ours and folder == "/" and environment == {}


def traced(log: Path, socks: int) -> list[str]:
    """The addresses in strace's log other than the SOCKS port's. Calls on connected sockets name no address."""
    found = []
    for line in log.read_text().splitlines():
        if match := _INET.search(line):
            port, host = int(match[1]), match[2] or match[3]
            if (host, port) != ("127.0.0.1", socks):
                found.append(f"{host}:{port}")
        elif match := _UNIX.search(line):
            found.append(match[1])
        elif "sa_family" in line:
            found.append(line)
    return found


def connections(trap: Path, socks: int) -> int:
    """How often the SOCKS port was connected to."""
    return trap.read_text().count(json.dumps(["socket.connect", [["127.0.0.1", socks]]]))
