"""Turns: those of one server who change the same queue or topic need not race for its row."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class Turns:
    """The engine gives up after some rounds in which others were faster, and tells its caller to come again. Among
    servers that is all that can be done; within one, each waits until the one before it is done."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """As long as somebody holds or wants them."""

    def of(self, account: str, name: str) -> asyncio.Lock:
        return self._locks.setdefault((account, name), asyncio.Lock())
