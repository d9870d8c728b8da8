"""A queue with very many messages, put by the engine in groups; if wanted all acked, in finished buckets."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.ledger import Run
from angelhair.engine.runs import Bodies
from angelhair.engine.store import Store
from angelhair.identities import RandomIdentities
from angelhair.limits import BATCH_MESSAGES
from angelhair.model import Ask, QueueSettings
from angelhair.settings import ACCOUNT

BODY_BYTES = 200

GROUP_MESSAGES = 10_000

SETTINGS = QueueSettings(repair_timeout_ms=1_000, archive=True)
"""Buckets of a thousand messages, soon finished."""

HELD_MS = 3_600_000
"""Longer than all of it takes: no message comes twice."""

PATIENCE_SECONDS = 600

STEP_SECONDS = 0.02

Tell = Callable[[int], None]
"""How many messages are done."""


def quietly(_: int) -> None:
    """For who does not want to be told."""


def body(number: int) -> bytes:
    """All different, and none that shrinks to nothing: like JSON, with some digits that nobody can foresee."""
    text = b'{"order": %d, "customer": %d, "mark": "%s", "note": "' % (
        number, number * 2654435761 % 99991, uuid.uuid5(uuid.NAMESPACE_OID, str(number)).hex.encode()
    )
    return text + b"n" * (BODY_BYTES - len(text) - 2) + b'"}'


@dataclass
class Filling:
    store: Store

    def __post_init__(self) -> None:
        self.engine = Engine(self.store, RandomIdentities(), SystemClock())

    async def create(self, settings: QueueSettings = SETTINGS) -> str:
        name = f"q{uuid.uuid4().hex[:12]}"
        await self.engine.create_queue(ACCOUNT, name, settings)
        return name

    async def put(self, queue: str, messages: int, tell: Tell = quietly) -> None:
        (first,) = [marks.next_id for marks in (await self.engine.marks(ACCOUNT, queue)).values()]
        for begin in range(first, first + messages, GROUP_MESSAGES):
            numbers = range(begin, min(begin + GROUP_MESSAGES, first + messages))
            run = Run("filling", begin, len(numbers), str(begin), HELD_MS)
            begun = await self.engine.begin_run(ACCOUNT, queue, run)
            assert begun is not None
            await self.engine.finish_run(begun, Bodies([body(number) for number in numbers]))
            tell(numbers.stop - first)

    async def ack(self, queue: str, messages: int, tell: Tell = quietly) -> None:
        done = 0
        while done < messages:
            (taken,) = await self.engine.receive(ACCOUNT, queue, [Ask(min(BATCH_MESSAGES, messages - done), HELD_MS)])
            assert isinstance(taken, list) and taken, taken
            await self.engine.ack(ACCOUNT, queue, [delivery.receipt for delivery in taken])
            done += len(taken)
            tell(done)

    async def finish(self, queue: str, mark: str = "repair") -> int:
        """Background work, until every full bucket is finished; or final, by the mark `settled`."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            (marks,) = (await self.engine.marks(ACCOUNT, queue)).values()
            buckets: int = marks.next_id // (await self.engine.find_queue(ACCOUNT, queue)).settings.bucket_size
            if getattr(marks, mark) >= buckets:
                return buckets
            if time.monotonic() > end:
                raise RuntimeError(f"{mark} does not reach {buckets}: {marks}")
            await self.engine.step(ACCOUNT, queue)
            await asyncio.sleep(STEP_SECONDS)

