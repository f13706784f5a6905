"""Where a system keeps login items: files of the user, and on Windows a registry value. Thin: what is written comes as
text, and nothing that was not written here is ever replaced or removed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from attrs import field

from anon.errors import Refused
from anon.machine.environment import Child, for_child
from anon.values import frozen
from peer.desktop.login import macos, run_key, systemd_unit, xdg_autostart
from peer.desktop.login.item import LoginItem

Render = Callable[[LoginItem], str]
HomeOf = Callable[[str], str | None]
LONGEST_RUN_VALUE = 260
_SECONDS = 30
_RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"


class LoginPlace(Protocol):
    """One place for one login item. `read` is None when nothing is there; `render` and `home_of` are the format's."""

    @property
    def render(self) -> Render: ...
    @property
    def home_of(self) -> HomeOf: ...
    def __str__(self) -> str: ...
    def read(self) -> str | None: ...
    def write(self, text: str) -> None: ...
    def remove(self) -> None: ...


@frozen
class FilePlace:
    """A file in the user's configuration. `after` and `before` are commands that tell the system of it; that one of
    them fails (nobody is logged in, say) hinders neither writing nor removing. `links` go with the file."""

    path: Path
    render: Render
    home_of: HomeOf
    after: tuple[tuple[str, ...], ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    afterwards: tuple[tuple[str, ...], ...] = ()
    links: tuple[Path, ...] = ()

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> str | None:
        """Its text. A link, or what is no text, is somebody else's."""
        if self.path.is_symlink():
            return "a link"
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            return "not text"

    def write(self, text: str) -> None:
        """Write it whole, and tell the system."""
        if self.read() is not None:
            _told(self.before)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.path)
        _told(self.after)

    def remove(self) -> None:
        """Tell the system, and remove the file and the links that point at it."""
        _told(self.before)
        for link in self.links:
            if link.is_symlink() and link.readlink().name == self.path.name:
                link.unlink()
        self.path.unlink(missing_ok=True)
        _told(self.afterwards)


@frozen
class RegistryPlace:
    """The value of the current user's Run key. `registry` is `winreg`, or what stands for it in a test."""

    registry: Any = field(repr=False)
    render: Render = run_key.render
    home_of: HomeOf = run_key.home_of

    def __str__(self) -> str:
        return rf"HKEY_CURRENT_USER\{_RUN}, value {run_key.NAME}"

    def read(self) -> str | None:
        """Its text, None without one."""
        try:
            with self._key(self.registry.KEY_READ) as key:
                value, _ = self.registry.QueryValueEx(key, run_key.NAME)
        except FileNotFoundError:
            return None
        return str(value)

    def write(self, text: str) -> None:
        """Set it. Raises `Refused` for what Windows would not start."""
        if len(text) > LONGEST_RUN_VALUE:
            raise Refused(f"Windows starts no command longer than {LONGEST_RUN_VALUE} characters; use a shorter --home")
        with self._key(self.registry.KEY_SET_VALUE) as key:
            self.registry.SetValueEx(key, run_key.NAME, 0, self.registry.REG_SZ, text)

    def remove(self) -> None:
        """Delete it, and no other value."""
        with suppress(FileNotFoundError), self._key(self.registry.KEY_SET_VALUE) as key:
            self.registry.DeleteValue(key, run_key.NAME)

    @contextmanager
    def _key(self, access: int) -> Iterator[Any]:
        with self.registry.CreateKeyEx(self.registry.HKEY_CURRENT_USER, _RUN, 0, access) as key:
            yield key


def systemd_place(configuration: Path) -> FilePlace:
    """The unit of the user, enabled and started at once."""
    unit, folder = systemd_unit.NAME, configuration / "systemd" / "user"
    control = ("systemctl", "--user")
    return FilePlace(
        folder / unit,
        systemd_unit.render,
        systemd_unit.home_of,
        after=((*control, "daemon-reload"), (*control, "enable", "--now", unit)),
        before=((*control, "disable", "--now", unit),),
        afterwards=((*control, "daemon-reload"),),
        links=(folder / "default.target.wants" / unit,),
    )


def xdg_place(configuration: Path) -> FilePlace:
    """The autostart entry of the user: from the next login on."""
    return FilePlace(configuration / "autostart" / xdg_autostart.NAME, xdg_autostart.render, xdg_autostart.home_of)


def launchd_place(user_home: Path, uid: int) -> FilePlace:
    """The agent of the user, loaded at once."""
    loads, ends = macos.loading(user_home, uid), macos.unloading(uid)
    return FilePlace(macos.agent_file(user_home), macos.render, macos.home_of, after=(loads,), before=(ends,))


def places_here() -> tuple[LoginPlace, ...]:
    """This system's places, the one to write to first. Raises `Refused` on a system that none is known of."""
    if sys.platform == "win32":
        import winreg

        return (RegistryPlace(winreg),)
    if sys.platform == "darwin":
        return (launchd_place(Path.home(), os.getuid()),)
    if sys.platform == "linux":
        configuration = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        both: tuple[LoginPlace, ...] = (systemd_place(configuration), xdg_place(configuration))
        return both if _answers(("systemctl", "--user", "show-environment")) else both[::-1]
    raise Refused(f"how {sys.platform} starts a program at login is not known here; start `anonml peer run --stay`")


def _told(commands: Iterable[tuple[str, ...]]) -> None:
    for command in commands:
        _answers(command)


def _answers(command: tuple[str, ...]) -> bool:
    """True if this program of the system is there and says yes. Its output is dropped here."""
    try:
        done = subprocess.run(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            env=for_child(Child.DESKTOP),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
