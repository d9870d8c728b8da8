"""One receive of a group, and what it has got so far."""

from __future__ import annotations

from angelhair.errors import StoreError
from angelhair.model import Ask, Delivery


class Waiting:
    __slots__ = ("ask", "deliveries", "error")

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.deliveries: list[Delivery] = []
        self.error: StoreError | None = None

    @property
    def missing(self) -> int:
        return self.ask.messages - len(self.deliveries)
