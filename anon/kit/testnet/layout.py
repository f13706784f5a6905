"""Who takes part in a private Tor network, where each keeps its files, and on which address and ports it listens."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from attrs import field

from anon.errors import Refused
from anon.values import frozen

AUTHORITY = "authority"
RELAYS = ("relay1", "relay2", "relay3", "relay4")
CLIENT = "client"
PORTS = 2 + len(RELAYS)
"""How many ports a network listens on: the authority's two, and one for each other relay."""

# Below the range the kernel gives to outgoing connections, so that none of those takes a port between choice and use.
LOWEST, HIGHEST = 10_000, 32_000


@frozen
class Relay:
    """A tor that carries circuits for others; the authority is one of them."""

    name: str
    folder: Path
    address: str
    or_port: int

    @property
    def data(self) -> Path:
        """Its DataDirectory."""
        return self.folder / "data"


@frozen
class NetworkLayout:
    """Five relays, the first of which is also the one directory authority, and a client.

    Three relays beside the authority bootstrap a client but never carry an onion service: that takes four.
    `address` is a literal IP that everybody who joins can reach; loopback unless network namespaces are joined.
    """

    folder: Path
    ports: tuple[int, ...] = field()
    address: str = "127.0.0.1"

    @ports.validator
    def _enough(self, _: object, ports: Sequence[int]) -> None:
        if len(set(ports)) != PORTS:
            raise ValueError(f"expected {PORTS} different ports, got {len(set(ports))}")

    @property
    def dir_port(self) -> int:
        """Where the authority answers plain HTTP about its votes and its consensus."""
        return self.ports[0]

    @property
    def authority(self) -> Relay:
        """The directory authority."""
        return self._relay(AUTHORITY, self.ports[1])

    @property
    def relays(self) -> tuple[Relay, ...]:
        """All that must be in the consensus, the authority first."""
        others = zip(RELAYS, self.ports[2:], strict=True)
        return (self.authority, *(self._relay(name, port) for name, port in others))

    def _relay(self, name: str, port: int) -> Relay:
        return Relay(name, self.folder / name, self.address, port)

    @property
    def client(self) -> Path:
        """The client's folder."""
        return self.folder / CLIENT

    @property
    def torrc_file(self) -> Path:
        """The lines that let any other tor join this network."""
        return self.folder / "torrc"


def literal(address: str) -> str:
    """The address, when it is a literal IPv4 address. Raises `Refused`."""
    try:
        parsed = ip_address(address)
    except ValueError:
        parsed = None
    if parsed is None or parsed.version != 4:
        raise Refused("--address: expected a literal IPv4 address of this machine, such as 127.0.0.1")
    return str(parsed)
