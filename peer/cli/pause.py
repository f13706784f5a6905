"""`anonml peer pause` and `resume`: nothing is done until an instant, in one study or in all."""

from __future__ import annotations

import re
import time
from typing import Annotated

import typer

from anon.errors import Malformed
from anon.kit.terminal.options import StudyOption, local_time
from anon.kit.terminal.printing import Terminal
from peer.opening import DEFAULT_HOME, HomeOption, open_peer, pick

_UNITS = {"m": 60, "h": 3600, "d": 86400}
MEANING = (
    "As if this machine were off: what falls due is done afterwards. A window that passes meanwhile is missed: "
    "a packet already made for it stays charged, one that was not costs nothing."
)


def pause(
    duration: Annotated[str, typer.Argument(metavar="DURATION", help="For how long: 30m, 4h, 2d.")] = "4h",
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Do nothing for a time: no packet, no connection. Of all your studies, or of one with --study."""
    peer = open_peer(home)
    chosen = pick(peer, study, active=True) if study else None
    until = time.time() + seconds_of(duration)
    peer.pause(until, chosen)
    Terminal().print(f"paused until {local_time(until)}. {MEANING}")


def resume(study: StudyOption = "", home: HomeOption = DEFAULT_HOME) -> None:
    """Go on before a pause ends: of all your studies, or of one with --study."""
    peer = open_peer(home)
    peer.resume(pick(peer, study, active=True) if study else None)
    Terminal().print("not paused any more; `anonml peer run` or `anonml peer open` goes on")


def seconds_of(duration: str) -> float:
    """Seconds of a text such as 30m, 4h or 2d. Raises `Malformed`."""
    match = re.fullmatch(r"([0-9]{1,5})([mhd])", duration.strip())
    if match is None:
        raise Malformed("duration: expected a number with m, h or d, such as 30m, 4h or 2d")
    return float(int(match[1]) * _UNITS[match[2]])
