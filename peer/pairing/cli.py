"""`anonml peer pair`: let a phone of yours in for a while, see which are in, revoke one, switch it off."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anon.errors import Refused
from anon.kit.terminal import qr
from anon.kit.terminal.foreign import inline
from anon.kit.terminal.options import JsonOption, local_time, print_json
from anon.kit.terminal.printing import Terminal
from anon.kit.terminal.progress import on_one_line
from anon.route.tor.control import has_unix_sockets
from anon.wire.invite import parse_invite
from peer.opening import DEFAULT_HOME, DEVICES, HomeOption, RouteOption, existing_home, home_of, open_peer, routes_of

if TYPE_CHECKING:
    from peer.pairing.phones import PhoneRecord
    from peer.pairing.service import PairingOffer
    from peer.pairing.state import PairingFolder, PairingState

MINUTES = 15
MOST_MINUTES = 120
WISH_SECONDS = 20.0
_POLL = 0.1


def join(app: typer.Typer) -> None:
    """Add `pair` to the commands of `anonml peer`."""
    app.command(rich_help_panel=DEVICES)(pair)


def pair(
    links: Annotated[list[str] | None, typer.Argument(help="Invite links to read on the phone.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="Your name for the phone; once for each of several.")] = None,
    minutes: Annotated[
        int, typer.Option(min=1, max=MOST_MINUTES, help="Switch it off by itself after so long.")
    ] = MINUTES,
    show: Annotated[bool, typer.Option("--list", help="Only show whether it is on, and for which phones.")] = False,
    revoke: Annotated[str, typer.Option(help="Shut out this phone at once; its name or number.")] = "",
    off: Annotated[bool, typer.Option("--off", help="Switch it off.")] = False,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Open this peer to a phone of yours, for a while: bring files, read what studies ask, pause. Nothing else.

    Through Tor: an onion service that only your phone's key finds, with a link that works once. It is up while this
    command runs and leaves nothing behind. Steps that bind you are done on this computer.
    """
    if show + off + bool(revoke) > 1:
        raise Refused("--list, --revoke and --off are three commands; give one")
    if not has_unix_sockets():
        raise Refused("pairing needs a unix socket, which this system does not have; bring files by another way")
    from peer.pairing.state import folder_of

    folder = folder_of(existing_home(home))
    if show:
        _list(folder, as_json)
    elif off:
        _switch_off(folder)
    elif revoke:
        _revoke(folder, revoke)
    else:
        asyncio.run(_pair(home, route, links or [], name or ["phone"], minutes, as_json))


async def _pair(
    home: Path, route: str, links: Sequence[str], names: Sequence[str], minutes: int, as_json: bool
) -> None:
    from peer.pairing.service import Pairing

    invites = [parse_invite(link) for link in links]
    routes = routes_of(route, home)
    peer = open_peer(home, routes)
    stopped, up = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)

    def announce(offers: Sequence[PairingOffer]) -> None:
        up.set()
        until = time.time() + 60 * minutes
        print_json(_offers_json(offers, until)) if as_json else _show(offers, until)

    running = asyncio.create_task(
        Pairing(peer, home_of(home), names, 60.0 * minutes, announce, on_one_line, invites).run(stopped)
    )
    try:
        why = await _unless(stopped, up, running)
    finally:
        await routes.close()
        peer.close()
    Terminal(stderr=as_json).print(f"pairing is off: {why}; links and keys are worth nothing any more")


async def _unless(stopped: asyncio.Event, up: asyncio.Event, running: asyncio.Task[str]) -> str:
    """The outcome of pairing; it is called off where it still waits for tor, and ends by itself once it is up."""
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not up.is_set():
        running.cancel()
    try:
        return await running
    except asyncio.CancelledError:
        return "you stopped it before it was up"


def _show(offers: Sequence[PairingOffer], until: float) -> None:
    """Two codes for each phone: the key for its Tor, then the link for its browser."""
    console = Terminal()
    for offer in offers:
        console.rule(inline(offer.phone.name))
        console.print("1. The key, for the phone's Tor (docs/pairing.md says where in which app):")
        qr.show(console, offer.phone.key.address(offer.host))
        for what, value in _texts(offer).items():
            console.print(f"{what}: {value}", soft_wrap=True)
        console.print("\n2. Then the link, for the phone's browser. It works once:")
        qr.show(console, offer.link)
    console.print(
        f"Pairing is on until {local_time(until)}. Ctrl-C ends it; in another terminal `anonml peer pair --list`, "
        "`--revoke NAME`, `--off`.",
        soft_wrap=True,
    )


def _texts(offer: PairingOffer) -> dict[str, str]:
    return {
        "address": offer.host,
        "key": offer.key,
        "as a line of an .auth_private file": offer.phone.key.file_line(offer.host),
    }


def _offers_json(offers: Sequence[PairingOffer], until: float) -> dict[str, Any]:
    phones = [
        {
            "number": offer.phone.number,
            "name": offer.phone.name,
            "host": offer.host,
            "link": offer.link,
            "key": offer.key,
            "auth_private": offer.phone.key.file_line(offer.host),
        }
        for offer in offers
    ]
    return {"until": until, "phones": phones}


# Of a pairing that another process has on


def _list(folder: PairingFolder, as_json: bool) -> None:
    on, state = folder.on(), folder.state()
    if as_json:
        print_json(_state_json(on, state))
        return
    out = Terminal(soft_wrap=True)
    if on and state is not None:
        out.print(f"pairing is on until {local_time(state.until)}")
    else:
        out.print("pairing is off" + ("; its last phones, none of which can come in any more:" if state else ""))
    for phone in state.phones if state is not None else ():
        out.print(f"{phone.number} {phone.name}: {_said(phone)}")


def _said(phone: PhoneRecord) -> str:
    if phone.revoked:
        come = "revoked"
    elif phone.entered is None:
        return "its link was not used"
    else:
        come = "paired"
    if phone.entered is None or phone.seen is None:
        return f"{come}, before its link was used"
    return f"{come}; came in {local_time(phone.entered)}, last seen {local_time(phone.seen)}"


def _state_json(on: bool, state: PairingState | None) -> dict[str, Any]:
    phones = [
        {
            "number": phone.number,
            "name": phone.name,
            "entered": phone.entered,
            "seen": phone.seen,
            "revoked": phone.revoked,
        }
        for phone in (state.phones if state is not None else ())
    ]
    return {"on": on, "until": state.until if on and state is not None else None, "phones": phones}


def _switch_off(folder: PairingFolder) -> None:
    folder.wish_off()
    _wait(lambda: not folder.on())
    Terminal().print("pairing is off; links and keys are worth nothing any more")


def _revoke(folder: PairingFolder, name: str) -> None:
    phone = _phone(folder, name)
    folder.wish_revoked(phone.number)
    _wait(lambda: not folder.on() or _revoked(folder.state(), phone.number))
    Terminal().print(f"revoked: {phone.name} is shut out")


def _phone(folder: PairingFolder, name: str) -> PhoneRecord:
    state = folder.state() if folder.on() else None
    if state is None:
        raise Refused("pairing is off; no phone can come in")
    for phone in state.phones:
        if name.casefold() in (phone.name.casefold(), str(phone.number)):
            return phone
    raise Refused(f"no phone is called that; there are: {', '.join(known.name for known in state.phones)}")


def _revoked(state: PairingState | None, number: int) -> bool:
    return state is not None and any(phone.number == number and phone.revoked for phone in state.phones)


def _wait(done: Callable[[], bool]) -> None:
    until = time.monotonic() + WISH_SECONDS
    while not done():
        if time.monotonic() > until:
            raise Refused("the process that has pairing on does not answer; end it (Ctrl-C where it runs)")
        time.sleep(_POLL)
