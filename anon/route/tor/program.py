"""Where tor is, and what its owner adds: the one place that reads ANONML_TOR and ANONML_TORRC."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from anon.errors import Refused, because
from anon.route.tor.torrc import checked_extra

_BROWSER = "tor-browser/Browser/TorBrowser/Tor/tor"
_PLACES = (
    "/usr/bin/tor",
    "/usr/sbin/tor",  # Debian; not on an ordinary user's PATH
    "/usr/local/bin/tor",
    "/usr/local/sbin/tor",
    "/opt/homebrew/bin/tor",
    "/home/linuxbrew/.linuxbrew/bin/tor",
    "/opt/local/bin/tor",
    "/Applications/Tor Browser.app/Contents/MacOS/Tor/tor",
    "~/Applications/Tor Browser.app/Contents/MacOS/Tor/tor",
    f"~/{_BROWSER}",
    f"~/Desktop/{_BROWSER}",
    f"~/Downloads/{_BROWSER}",
    f"~/.local/share/torbrowser/tbb/x86_64/{_BROWSER}",
    f"/opt/{_BROWSER}",
)
_EXTRA_BYTES = 64 * 1024


def find_tor() -> Path:
    """The tor program: $ANONML_TOR, then PATH, then where Debian, Homebrew and Tor Browser put it.

    Raises `Refused` with one next action when there is none.
    """
    named = os.environ.get("ANONML_TOR")
    if named:
        path = Path(named).expanduser()
        if not _runs(path):
            raise Refused("ANONML_TOR does not name a program that can be run; correct it or unset it")
        return path.absolute()
    program = shutil.which("tor")
    if program:
        return Path(program).absolute()
    for place in _PLACES:
        path = Path(place).expanduser()
        if _runs(path):
            return path
    raise Refused("no tor was found (no-tor); install it (`apt install tor`, `brew install tor`) or set ANONML_TOR")


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def extra_lines() -> tuple[str, ...]:
    """The lines of the file that $ANONML_TORRC names; none without it. Raises `Refused` (see `checked_extra`)."""
    named = os.environ.get("ANONML_TORRC")
    if not named:
        return ()
    path = Path(named).expanduser()
    try:
        with path.open("rb") as file:
            content = file.read(_EXTRA_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"ANONML_TORRC: the file cannot be read{because(error)}; correct or unset it") from None
    if len(content) > _EXTRA_BYTES:
        raise Refused(f"ANONML_TORRC: its file is longer than {_EXTRA_BYTES} bytes; shorten it")
    return checked_extra(text)
