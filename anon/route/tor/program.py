"""Where tor is, and what its owner adds: the one place that reads ANONML_TOR and ANONML_TORRC."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from anon.errors import Refused, because
from anon.route.tor.torrc import checked_extra
from anon.text.sentences import say

_BROWSER = "tor-browser/Browser/TorBrowser/Tor/tor"
_WINDOWS_BROWSER = "Tor Browser/Browser/TorBrowser/Tor/tor.exe"
_OLDER_BROWSER = "tor-browser_en-US/Browser/TorBrowser/Tor/tor"
_PLACES = (
    "/usr/bin/tor",
    "/usr/sbin/tor",  # Debian; not on an ordinary user's PATH
    "/usr/local/bin/tor",
    "/usr/local/sbin/tor",
    "/opt/homebrew/bin/tor",
    "/home/linuxbrew/.linuxbrew/bin/tor",
    "/opt/local/bin/tor",
    f"~/{_BROWSER}",
    f"~/Desktop/{_BROWSER}",
    f"~/Downloads/{_BROWSER}",
    f"~/.local/share/torbrowser/tbb/x86_64/{_BROWSER}",
    f"~/.var/app/org.torproject.torbrowser-launcher/data/torbrowser/tbb/x86_64/{_BROWSER}",
    f"/opt/{_BROWSER}",
    *(f"~/{folder}{_OLDER_BROWSER}" for folder in ("", "Desktop/", "Downloads/")),
)
_MAC_PLACES = (
    "/Applications/Tor Browser.app/Contents/MacOS/Tor/tor",
    "~/Applications/Tor Browser.app/Contents/MacOS/Tor/tor",
    "~/Desktop/Tor Browser.app/Contents/MacOS/Tor/tor",
)
_WINDOWS_PLACES = (
    f"~/Desktop/{_WINDOWS_BROWSER}",  # the installer's own proposal
    f"~/OneDrive/Desktop/{_WINDOWS_BROWSER}",
    f"~/Downloads/{_WINDOWS_BROWSER}",
    f"~/{_WINDOWS_BROWSER}",
    f"$LOCALAPPDATA/{_WINDOWS_BROWSER}",
    f"$PROGRAMFILES/{_WINDOWS_BROWSER}",
    f"C:/{_WINDOWS_BROWSER}",
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
            raise Refused(say("ANONML_TOR does not name a program that can be run; correct it or unset it"))
        return path.absolute()
    program = shutil.which("tor")
    if program:
        return Path(program).absolute()
    for path in places(sys.platform, os.environ):
        if _runs(path):
            return path
    if sys.platform == "win32":
        raise Refused(
            say(
                "no tor was found (no-tor); install Tor Browser from torproject.org where its installer proposes, on "
                "the desktop, or set ANONML_TOR"
            )
        )
    raise Refused(
        say(
            "no tor was found (no-tor); install it (`apt install tor`, `brew install tor`, Tor Browser) or set "
            "ANONML_TOR"
        )
    )


def places(platform: str, environment: Mapping[str, str]) -> Iterator[Path]:
    """The places where Debian, Homebrew and Tor Browser put tor on a system. One below a folder that the environment
    does not name is left out."""
    of_system = {"win32": _WINDOWS_PLACES, "darwin": (*_MAC_PLACES, *_PLACES)}.get(platform, _PLACES)
    for place in of_system:
        variable, slash, rest = place[1:].partition("/") if place.startswith("$") else ("", "", place)
        if not variable:
            yield Path(place).expanduser()
        elif folder := environment.get(variable):
            yield Path(folder + slash + rest)


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
        raise Refused(say(
            "ANONML_TORRC: the file cannot be read{error}; correct or unset it",
            error=because(error),
        )) from None
    if len(content) > _EXTRA_BYTES:
        raise Refused(say(
            "ANONML_TORRC: its file is longer than {extra_bytes} bytes; shorten it",
            extra_bytes=_EXTRA_BYTES,
        ))
    return checked_extra(text)
