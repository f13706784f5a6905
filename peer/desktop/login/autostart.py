"""Start at login: switched on, off and looked at. Every rule is here; formats and places are beside."""

from __future__ import annotations

from collections.abc import Sequence

from anon.errors import Refused
from anon.values import frozen
from peer.desktop.login.item import LoginItem
from peer.desktop.login.places import LoginPlace

ROOT = (
    "you are root: this would start a peer of root's at every login of root. Do it as yourself, without sudo "
    "(--as-root if it is meant)"
)
UNATTENDED = (
    "this home is under a passphrase, which nobody can type at login and which is written nowhere; start "
    "`anonml peer open` or `anonml peer run` yourself"
)


@frozen
class LoginStanding:
    """Where a login item of ours is, and whose home it starts."""

    place: str
    home: str


def demand_sensible(effective_uid: int, as_root: bool, under_passphrase: bool) -> None:
    """Raises `Refused` for root who did not say so, and for a home that cannot start by itself."""
    if effective_uid == 0 and not as_root:
        raise Refused(ROOT)
    if under_passphrase:
        raise Refused(UNATTENDED)


def switch_on(item: LoginItem, places: Sequence[LoginPlace]) -> str:
    """Write the item to the first place and remove ours from the others; where it is now.

    The same again changes nothing. Raises `Refused`, before anything is written, for a file of somebody else's in that
    place and for an item of another home.
    """
    text = places[0].render(item)
    for place in places:
        _demand_ours(place, item.home)
    if places[0].read() is not None and not ours(places[0]):
        raise Refused(f"{places[0]}: is there, and was not written by this command; move it away first")
    for place in places[1:]:
        if ours(place):
            place.remove()
    if places[0].read() != text:
        places[0].write(text)
    return str(places[0])


def switch_off(home: str, places: Sequence[LoginPlace]) -> tuple[str, ...]:
    """Remove all that `switch_on` wrote for this home, and nothing else; where that was.

    Raises `Refused` for an item of another home, with nothing removed.
    """
    for place in places:
        _demand_ours(place, home)
    removed = [place for place in places if ours(place)]
    for place in removed:
        place.remove()
    return tuple(map(str, removed))


def standing(places: Sequence[LoginPlace]) -> tuple[LoginStanding, ...]:
    """Every item of ours that is there, of whichever home."""
    found = []
    for place in places:
        text = place.read()
        home = place.home_of(text) if text is not None else None
        if home is not None:
            found.append(LoginStanding(str(place), home))
    return tuple(found)


def ours(place: LoginPlace) -> bool:
    """True if something is there that this command wrote."""
    text = place.read()
    return text is not None and place.home_of(text) is not None


def _demand_ours(place: LoginPlace, home: str) -> None:
    text = place.read()
    other = place.home_of(text) if text is not None else None
    if other is not None and other != home:
        raise Refused(f"another home starts at login: {other}; first `anonml peer autostart off --home` with that one")
