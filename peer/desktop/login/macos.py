"""macOS, on which nothing here ever ran: in tests scripts stand for its `launchctl` and `osascript`.

Start at login is a launchd agent, a property list that names the home it was written for.
"""

from __future__ import annotations

import plistlib
from pathlib import Path
from xml.parsers.expat import ExpatError

from peer.desktop.login.item import LoginItem

LABEL = "org.anonml.peer"
NAME = f"{LABEL}.plist"
_HOME = "ANONML_PEER_HOME"


def agent_file(user_home: Path) -> Path:
    """Where launchd looks for a user's agent."""
    return user_home / "Library" / "LaunchAgents" / NAME


def loading(user_home: Path, uid: int) -> tuple[str, ...]:
    """The command that loads the agent at once."""
    return "launchctl", "bootstrap", f"gui/{uid}", str(agent_file(user_home))


def unloading(uid: int) -> tuple[str, ...]:
    """The command that ends the agent."""
    return "launchctl", "bootout", f"gui/{uid}/{LABEL}"


def notice(title: str, sentence: str) -> tuple[str, ...]:
    """The command that shows a notification. Nothing in a sentence ends the text that the script quotes."""
    quoted = sentence.replace("\\", "\\\\").replace('"', '\\"')
    return "osascript", "-e", f'display notification "{quoted}" with title "{title}"'


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
