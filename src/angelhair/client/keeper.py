"""The thread that keeps a consumer's messages hidden while they are handled, for either client.

It has connections of its own and shares nothing with handlers but the interpreter: neither a handler that blocks the
event loop nor a pool full of waiting requests can hold an extension up.
"""

from __future__ import annotations

import logging
import threading

from angelhair.client.consuming import Consuming
from angelhair.client.driving import Sender, drive
from angelhair.client.transport import Address

_log = logging.getLogger("angelhair.client")


class Keeper:
    def __init__(self, consuming: Consuming, address: Address) -> None:
        self._consuming = consuming
        self._over = threading.Event()
        self._sender = Sender(address, self._over.wait)
        self._thread = threading.Thread(target=self._run, name=f"keeper of {consuming.rules.queue}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """After the last message was settled."""
        self._consuming.over = True
        self._over.set()
        self._thread.join()
        self._sender.close()

    def _run(self) -> None:
        while not self._consuming.over:
            try:
                drive(self._consuming.keeping(), self._sender.do)
            except Exception:  # noqa: BLE001 - without it every slow message is delivered twice: noisy, not dead
                rules = self._consuming.rules
                _log.exception("keeping the messages of %s met an error that it does not know", rules.queue)
                self._over.wait(rules.margin_seconds)
