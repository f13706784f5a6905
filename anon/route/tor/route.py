"""The route through a private tor: onion addresses only, one fresh circuit per exchange."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import field

from anon.errors import Refused, Unreachable, because
from anon.route.far_side import FarSide
from anon.route.http import HttpRoute
from anon.route.tor.shared_client import TorKeeper
from anon.text.sentences import Sentence, attributed, say
from anon.values import frozen
from anon.wire.onion_address import is_onion, onion_fault

if TYPE_CHECKING:
    from anon.route.exchange import Dial

ONION_SECONDS = 90.0  # a dead service whose descriptor is cached would be tried for 120 s
_REPLY_CODE = re.compile(r"0[xX]([0-9a-fA-F]{1,2})\Z")

# SOCKS reply -> what happened, one next action. F0..F7: tor's ExtendedErrors for onion services; 01..06: RFC 1928.
REPLIES: dict[int, tuple[Sentence, Sentence]] = {
    0xF0: (say("its onion service is not announced"), say("it may be down; try again later")),
    0xF1: (say("its onion service's announcement is not valid"), say("it may be restarting; try again later")),
    0xF2: (say("its onion service did not accept an introduction"), say("it may be busy or down; try again later")),
    0xF3: (say("its onion service did not come to the meeting point"), say("try again later")),
    0xF4: (say("its onion service lets in only clients with a key"), say("ask who runs it for an open address")),
    0xF5: (say("its onion service does not accept this client's key"), say("ask who runs it for an open address")),
    0xF6: (say("tor says that the onion address is not valid"), say("ask for the invite link again")),
    0xF7: (say("its onion service could not be introduced to in time"), say("it may be busy or down; try again later")),
    0x01: (say("tor could not build a circuit"), say("try again later")),
    0x02: (say("tor does not carry anything but onion traffic here"), say("ask for the invite link again")),
    0x03: (say("tor has no network"), say("look whether this machine is online, then try again")),
    0x04: (say("its onion service could not be reached"), say("it may be down; try again later")),
    0x05: (say(
        "its onion service answers, but nothing listens behind it",
    ), say("it may be restarting; try again later")),
    0x06: (say("its onion service did not answer in time"), say("try again later")),
}


def checked_onion(address: str, far_side: FarSide = FarSide.AGGREGATOR) -> str:
    """The address `*.onion:port` itself, if it is a v3 one in its one spelling (`anon.wire.onion_address`) and its port
    in 1..65535. Raises `Refused` else."""
    host, _, port = address.rpartition(":")
    if not is_onion(host):
        raise Refused(far_side.no_onion())
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536):
        raise Refused(say("tor route: expected onion address and port; ask for the invite link again"))
    if fault := onion_fault(host):
        raise Refused(say("tor route: {fault}; ask for the invite link again", fault=attributed(fault)))
    return address


@frozen
class TorRoute(HttpRoute):
    """Through the keeper's tor to a v3 onion service: for every exchange a fresh connection and fresh random user and
    password, which tor answers with a circuit of its own. Nothing but tor's SOCKS port is connected to, and no name is
    looked up.

    Raises `Refused` for any other address before anything is started, `Unreachable` when tor cannot start or no whole
    answer comes in `timeout` seconds after it has.
    """

    keeper: TorKeeper
    timeout: float = ONION_SECONDS
    random_bytes: Callable[[int], bytes] = field(default=os.urandom, repr=False)
    far_side: FarSide = FarSide.AGGREGATOR

    async def ready(self, address: str) -> None:
        """See `Starting.ready`: tor runs and is connected to its network."""
        checked_onion(address, self.far_side)
        await self.keeper.socks()

    async def _dial(self, address: str) -> Dial:
        checked_onion(address, self.far_side)
        host, port = await self.keeper.socks()
        from anon.route.exchange import isolated

        return isolated(self, host, port, self.random_bytes)

    def proxy_gone(self, error: Exception) -> Unreachable:
        """See `HttpRoute`. Tor is started anew at the next exchange."""
        self.keeper.lost()
        return Unreachable(say(
            "tor ended{error}; nothing is lost, try again: it is started anew then",
            error=because(error),
        ))

    def proxy_refused(self, error: Exception) -> Unreachable:
        """See `HttpRoute`, with tor's reasons."""
        what, action = REPLIES.get(reply_code(error), (say("tor could not reach it"), say("try again later")))
        return Unreachable(self.far_side.beyond_tor(what, action))


def reply_code(error: Exception) -> int:
    """The SOCKS reply code that an error of the proxy library carries; -1 if none."""
    from anon.route.exchange import reply_code as carried

    code = carried(error)
    if code is not None:
        return int(code)
    match = _REPLY_CODE.search(str(error))  # "Invalid reply code: 0XF0": codes beyond RFC 1928 come as text
    return int(match[1], 16) if match else -1
