"""A look at a queue from a program without an event loop: the driver's side of a read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from angelhair.engine.store import Store
from angelhair.spark.place import Place

R = TypeVar("R")


class Looking:
    """Keeps the store open from one look to the next; a stream looks several times a second. It does not travel: what
    is sent to a task is only where the store is."""

    def __init__(self, place: Place, changing: bool = False) -> None:
        """`changing`: for who moves a mark too."""
        self._place = place
        self._changing = changing
        self._runner: asyncio.Runner | None = None
        self._store: Store | None = None

    def __reduce__(self) -> tuple[type[Looking], tuple[Place, bool]]:
        return Looking, (self._place, self._changing)

    def __enter__(self) -> Looking:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, look: Callable[[Store], Coroutine[Any, Any, R]]) -> R:
        if self._runner is None:
            self._runner = asyncio.Runner()
        if self._store is None:
            self._store = self._runner.run(self._place.open(self._changing))
        return self._runner.run(look(self._store))

    def close(self) -> None:
        if self._runner is not None:
            if self._store is not None:
                self._runner.run(self._store.close())
            self._runner.close()
        self._runner = self._store = None
