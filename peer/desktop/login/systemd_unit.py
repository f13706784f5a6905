"""A systemd user unit as text, and the home it was written for. Quoting as in systemd.syntax(7) and
systemd.service(5)."""

from __future__ import annotations

import json

from anon.errors import Refused
from peer.desktop.login.item import SUMMARY, LoginItem

NAME = "anonml-peer.service"
_HOME = "Home="

# Only what holds in a user's own systemd without namespaces, and what tor and SQLite do without. Exit codes 2 to 4 stay
# the same however often it is started again (`anonml --help`). OOMPolicy: a query on the owner's data runs in a child,
# which ends first when memory runs out. By default systemd would then end the peer too, and the data would decide it.
_UNIT = """\
# Written by `anonml peer autostart on`; `anonml peer autostart off` removes it. Changes are lost with the next `on`.
[Unit]
Description={summary}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
{environment}Restart=on-failure
RestartSec=60
RestartPreventExitStatus=2 3 4
OOMPolicy=continue
KillSignal=SIGTERM
TimeoutStopSec=30
Nice=5
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK

[Install]
WantedBy=default.target

[X-AnonML]
{mark}{home}
"""


def render(item: LoginItem) -> str:
    """The unit. Raises `Refused` for a program whose path systemd would change: it cannot be escaped there."""
    if "$" in item.command[0]:
        raise Refused("the path of this program has a $, which systemd cannot start; install it in another folder")
    return _UNIT.format(
        summary=SUMMARY,
        command=" ".join([quoted(item.command[0]), *(quoted(word).replace("$", "$$") for word in item.command[1:])]),
        environment="".join(f"Environment={quoted(f'{name}={value}')}\n" for name, value in item.environment),
        mark=_HOME,
        home=json.dumps(item.home, ensure_ascii=False),
    )


def home_of(text: str) -> str | None:
    """The home that this unit was written for, or None when it is not ours."""
    _, found, ours = text.partition("\n[X-AnonML]\n" + _HOME)
    try:
        home = json.loads(ours) if found else None
    except ValueError:
        return None
    return home if isinstance(home, str) else None


def quoted(word: str) -> str:
    """One word, as systemd reads it back: quotes and backslashes escaped, specifiers doubled."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'
