"""How a desktop is asked to show a notification: over D-Bus, by `notify-send`, on macOS by `osascript`, and on Windows
by the icon of `AnonML.exe`."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any

from anon.errors import Refused, because
from anon.machine.environment import Child, for_child
from anon.machine.extras import install
from peer.desktop import launcher
from peer.desktop.login import macos

Tell = Callable[[str], Coroutine[Any, Any, None]]
"""Shows one sentence. Raises `Refused` when no desktop took it."""
TITLE = "AnonML"
NOBODY = "no desktop took the notification; log in to one, with notifications switched on"
_SECONDS = 10.0
_SHOWN_MILLISECONDS = 15_000


def notices_here() -> Tell:
    """This system's way. Raises `Refused` with what to install."""
    if sys.platform == "win32":
        return _by_icon
    if sys.platform == "darwin" and shutil.which("osascript"):
        return _by_osascript
    if sys.platform == "linux":
        if find_spec("jeepney") is not None:
            return _by_dbus
        if shutil.which("notify-send"):
            return _by_notify_send
        raise Refused(f"nothing here can notify; `apt install libnotify-bin`, or `{install('desktop')}`")
    raise Refused(f"notifications are not there yet for {sys.platform}; your page says the same")


async def _by_dbus(sentence: str) -> None:
    try:
        async with asyncio.timeout(_SECONDS):
            await _notified(sentence)
    except Exception as error:  # whatever keeps a bus from answering; nothing of ours is in it
        raise Refused(f"{NOBODY}{because(error)}") from None


async def _notified(sentence: str) -> None:
    from jeepney import DBusAddress, new_method_call
    from jeepney.io.asyncio import open_dbus_router
    from jeepney.wrappers import unwrap_msg

    place = DBusAddress(
        "/org/freedesktop/Notifications", "org.freedesktop.Notifications", "org.freedesktop.Notifications"
    )
    hints = {"urgency": ("y", 1), "desktop-entry": ("s", "anonml")}
    said: tuple[object, ...] = (TITLE, 0, "", TITLE, sentence, [], hints, _SHOWN_MILLISECONDS)
    async with open_dbus_router(bus="SESSION") as router:
        unwrap_msg(await router.send_and_get_reply(new_method_call(place, "Notify", "susssasa{sv}i", said)))


async def _by_notify_send(sentence: str) -> None:
    await _by_program("notify-send", "--app-name", TITLE, "--", TITLE, sentence)


async def _by_osascript(sentence: str) -> None:
    await _by_program(*macos.notice(TITLE, sentence))


async def _by_icon(sentence: str) -> None:
    if not await asyncio.to_thread(launcher.notified, sentence):
        raise Refused("start AnonML.exe: on Windows its icon shows the notifications")


async def _by_program(*words: str) -> None:
    nothing = asyncio.subprocess.DEVNULL
    running = await asyncio.create_subprocess_exec(
        *words, stdin=nothing, stdout=nothing, stderr=nothing, env=for_child(Child.DESKTOP)
    )
    try:
        code = await asyncio.wait_for(running.wait(), _SECONDS)
    except TimeoutError:
        running.kill()
        code = await running.wait()
    if code != 0:
        raise Refused(NOBODY)
