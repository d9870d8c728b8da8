"""How an idle consumer stops at once: it tells the server, on the connection that waits, that it has said all.

It closes the half of the connection that it speaks on, and goes on listening. The server then lets the receive wait no
longer and answers, with what it was just about to hand out or with nothing. Were the whole connection closed, a message
on its way would be lost until its visibility ends. TLS knows no such half: there the answer is waited for.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from typing import Any

CONNECTED = "connection.connect_tcp.complete"
ENCRYPTED = "connection.start_tls.complete"
"""What httpx calls these moments to whoever traces a request."""


class Parting:
    """Knows the one connection of a consumer's receives. `leave` takes no lock: signal handlers call it."""

    def __init__(self) -> None:
        self._socket: Any = None
        self._left = False

    def leave(self) -> None:
        """Nothing more will be asked on this connection, nor on one that is just being made."""
        self._left = True
        if self._socket is not None:
            # It may be gone already, and with it whatever was to be told.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """For httpx, as a request's extension."""
        if event == CONNECTED:
            self._socket = info["return_value"].get_extra_info("socket")
            if self._left:
                self.leave()
        elif event == ENCRYPTED:
            self._socket = None

    async def trace_async(self, event: str, info: Mapping[str, Any]) -> None:
        self.trace(event, info)
