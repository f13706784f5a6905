"""A private Tor network on one machine, as one command and for tests: real tor, real onion services, no anonymity."""

from anon.kit.testnet.memory import Memory, memory_of
from anon.kit.testnet.network import PrivateNetwork

__all__ = ["Memory", "PrivateNetwork", "memory_of"]
