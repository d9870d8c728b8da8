"""Where an endpoint is. Addresses that only this network knows are nobody's endpoint, unless the operator says so.

A name is resolved once, every address that it has is looked at, and the connection goes to one of those: what the name
means a moment later makes no difference.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

PORTS = {"http": 80, "https": 443}

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_LOW_BITS = 0xFFFFFFFF


class Forbidden(Exception):
    """The endpoint is an address of this network."""


class Unresolved(Exception):
    """The endpoint's name has no address now."""


class Place(NamedTuple):
    url: SplitResult
    host: str
    port: int
    address: str
    """What is connected to."""


async def find(url: str, allow_private: bool) -> Place:
    """Raises `Forbidden` or `Unresolved`."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or PORTS[parts.scheme.lower()]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unresolved(f"{host} has no address: {error}") from None
    addresses = [str(entry[4][0]) for entry in found]
    if not addresses:
        raise Unresolved(f"{host} has no address")
    if not allow_private and not all(is_public(address) for address in addresses):
        raise Forbidden(f"{host} is an address of this network")
    return Place(parts, host, port, addresses[0])


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
