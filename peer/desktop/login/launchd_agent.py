"""A launchd agent as a property list, and the home it was written for."""

from __future__ import annotations

import plistlib
from xml.parsers.expat import ExpatError

from peer.desktop.login.item import LoginItem

LABEL = "org.anonml.peer"
NAME = f"{LABEL}.plist"
_HOME = "ANONML_PEER_HOME"


def render(item: LoginItem) -> str:
    """The agent: at login, again after a failure but a minute later, quietly, as a background process."""
    agent = {
        "Label": LABEL,
        "ProgramArguments": list(item.command),
        "EnvironmentVariables": dict(item.environment) | {_HOME: item.home},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "ProcessType": "Background",
        "Umask": 0o077,
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": "/dev/null",
    }
    return plistlib.dumps(agent).decode()


def home_of(text: str) -> str | None:
    """The home that this agent was written for, or None when it is not ours."""
    try:
        agent = plistlib.loads(text.encode())
    except (plistlib.InvalidFileException, ExpatError, ValueError):
        return None
    if not isinstance(agent, dict) or agent.get("Label") != LABEL:
        return None
    home = (agent.get("EnvironmentVariables") or {}).get(_HOME)
    return home if isinstance(home, str) else None
