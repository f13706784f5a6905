"""An XDG autostart entry as text, for desktops without a systemd of the user. Quoting as in the Desktop Entry
Specification: first an argument, then a value of type string."""

from __future__ import annotations

import json
import re

from anon.errors import Refused
from peer.desktop.login.item import SUMMARY, LoginItem

NAME = "anonml-peer.desktop"
_MARK = "X-AnonML-Home="
_ENTRY = """\
# Written by `anonml peer autostart on`; `anonml peer autostart off` removes it. Changes are lost with the next `on`.
[Desktop Entry]
Type=Application
Version=1.0
Name=AnonML
Comment={summary}
Exec={command}
Terminal=false
NoDisplay=true
X-GNOME-Autostart-enabled=true
{mark}{home}
"""


def render(item: LoginItem) -> str:
    """The entry. Raises `Refused` for a program whose path such an entry cannot name."""
    if "=" in item.command[0]:
        raise Refused("the path of this program has a =, which no autostart entry can name; install it elsewhere")
    variables = [f"{name}={value}" for name, value in item.environment]
    words = ["env", *variables, *item.command] if variables else list(item.command)
    return _ENTRY.format(
        summary=SUMMARY,
        command=" ".join(map(quoted, words)),
        mark=_MARK,
        home=json.dumps(item.home, ensure_ascii=False),
    )


def home_of(text: str) -> str | None:
    """The home that this entry was written for, or None when it is not ours."""
    match = re.search(f"^{_MARK}(.*)$", text, re.MULTILINE)
    try:
        home = json.loads(match[1]) if match else None
    except ValueError:
        return None
    return home if isinstance(home, str) else None


def quoted(word: str) -> str:
    """One word of `Exec`."""
    argument = re.sub(r'(["`$\\])', r"\\\1", word)
    return '"' + argument.replace("\\", "\\\\").replace("%", "%%") + '"'
