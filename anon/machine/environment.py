"""The environment: secrets are taken out of it at once, and a program that we start gets an allow-list of it.

A variable with a passphrase would be handed to tor, to the browser and to every program that they start. It would stand
readable in the system's list of processes for each of them. So `anonml` moves the secrets into memory before it does
anything else, and no program is started with our own environment: `for_child` makes each child's.
`tests/attacks/test_environment.py` finds a start that does otherwise.

Not protected: the environment that this very process was started with stays readable (`/proc/PID/environ`) to its own
user and root. Typing a passphrase leaves none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from typing import IO

PASSPHRASE, NEW_PASSPHRASE = "ANONML_PASSPHRASE", "ANONML_NEW_PASSPHRASE"
SECRETS = (PASSPHRASE, NEW_PASSPHRASE)
_taken: dict[str, str] = {}

_EVERY = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
    "PROGRAMFILES", "PROGRAMFILES(X86)", "USERPROFILE", "HOMEDRIVE", "HOMEPATH",
)  # fmt: skip
_LOCALE = "LC_"
_DESKTOP = (
    "SHELL", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "BROWSER", "DESKTOP_SESSION",
    "GNOME_DESKTOP_SESSION_ID", "KDE_FULL_SESSION", "KDE_SESSION_VERSION", "WSL_DISTRO_NAME", "WSL_INTEROP",
    "XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE", "XDG_SESSION_ID", "XDG_DATA_HOME", "XDG_DATA_DIRS",
    "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME", "XDG_STATE_HOME",
)  # fmt: skip
_OWN = (
    "ANONML_TOR", "ANONML_TORRC", "ANONML_CRYPTO", "ANONML_CRASH_AT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONFAULTHANDLER", "PYTHONDONTWRITEBYTECODE",
)  # fmt: skip
_LIBRARIES, _LIBRARIES_BEFORE = "LD_LIBRARY_PATH", "LD_LIBRARY_PATH_ORIG"


class Child(Enum):
    """A kind of program that we start."""

    PROGRAM = "program"
    """tor, its tools, a browser that prints: nothing more."""
    DESKTOP = "desktop"
    """Programs that speak to the owner's desktop: a browser with a window, a notification, the login services."""
    OWN = "own"
    """A Python of ours: settings that name files and builds, never a secret."""


_MORE = {Child.PROGRAM: (), Child.DESKTOP: _DESKTOP, Child.OWN: _OWN}


def for_child(kind: Child, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a program that we start: what is on the list, and is set."""
    ours = os.environ if environment is None else environment
    listed = {*_EVERY, *_MORE[kind]}
    made = {name: value for name, value in ours.items() if name in listed or name.startswith(_LOCALE)}
    return made if kind is Child.OWN else _without_own_libraries(made, ours)


def _without_own_libraries(made: dict[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """The bundled program (PyInstaller) runs with a library path of its own, which is wrong for other programs."""
    if _LIBRARIES_BEFORE in ours:
        return {**made, _LIBRARIES: ours[_LIBRARIES_BEFORE]}
    return made


def take_secrets() -> None:
    """Move the secrets out of the environment into this process's memory; the first thing that `anonml` does."""
    for name in SECRETS:
        value = os.environ.pop(name, None)
        if value is not None:
            _taken[name] = value


def secret(name: str) -> str:
    """A secret that was given in the environment; empty without one."""
    take_secrets()
    return _taken.get(name, "")


def is_set(name: str) -> bool:
    """True if a variable was given, secret or not."""
    return name in os.environ or name in _taken


def is_journal(stream: IO[str]) -> bool:
    """True if the system's journal takes what is written there, with a time of its own (systemd.exec(5))."""
    try:
        there = os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):  # no file, or none at all
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{there.st_dev}:{there.st_ino}"


def shed() -> None:
    """Keep of this process's own environment what a child of ours may have; for a process that starts as a copy."""
    kept = for_child(Child.OWN)
    for name in set(os.environ) - set(kept):
        del os.environ[name]


def forget() -> None:
    """Drop the secrets that were taken; for tests that play one process after another."""
    _taken.clear()
