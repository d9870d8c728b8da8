"""Where an endpoint is. Addresses that only this network knows are nobody's endpoint, unless the operator says so.

A name is resolved once, every address that it has is looked at, and the connection goes to one of those: what the name
means a moment later makes no difference.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from angelhair.server.sns.deliveries.names import Names

PORTS = {"http": 80, "https": 443}

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_LOW_BITS = 0xFFFFFFFF


class Forbidden(Exception):
    """The endpoint is an address of this network."""


class Place(NamedTuple):
    url: SplitResult
    host: str
    port: int
    address: str
    """What is connected to."""


class Places:
    """To be made inside a running loop."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._names = Names()

    async def find(self, url: str) -> Place:
        """Raises `Forbidden`, `Unresolved` or `StillLooking`."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or PORTS[parts.scheme.lower()]
        addresses = await self._names.addresses(host, port)
        if not self._allow_private and not all(is_public(address) for address in addresses):
            raise Forbidden(f"{host} is an address of this network")
        return Place(parts, host, port, addresses[0])

    async def stop(self) -> None:
        await self._names.stop()


def is_public(text: str) -> bool:
    """Whether it is an address of the internet: not of this machine, its networks, or anything reserved."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        # Some addresses are another in disguise.
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & _LOW_BITS)
        if inner is not None:
            return is_public(str(inner))
        if address.is_site_local:
            # Once what `fc00::` is now, and still so in some networks.
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved
