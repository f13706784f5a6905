"""How bytes travel: `direct` (loopback and tests), `socks` (any SOCKS5 proxy). Each exchange is a fresh connection."""

from anon.route.http import DirectRoute, SocksRoute
from anon.route.route import Answer, Route, Starting

__all__ = ["Answer", "DirectRoute", "Route", "SocksRoute", "Starting"]
