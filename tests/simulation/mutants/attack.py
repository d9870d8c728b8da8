"""A directed attack on R1: a put that slept wakes up just between the last look into its bucket and its finish.

Seeds bring this about too seldom to wait for: the body has to land after the worker's look, and its admission before
the worker's next write, a few milliseconds later.
"""

from __future__ import annotations

import itertools

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.engine import Engine
from angelhair.engine.schema import STATES
from angelhair.errors import AngelhairError
from angelhair.model import Ask, NewMessage, QueueSettings
from angelhair.stores.memory import MemoryStore
from tests.faults import FaultyStore

ACCOUNT, QUEUE = "account", "work"
SETTINGS = QueueSettings(
    bucket_size=2, repair_timeout_ms=limits.REPAIR_TIMEOUT_MINIMUM_MS, visibility_timeout_ms=1_000, retention_ms=None
)
LATE = b"late"
SECONDS = 90
"""How long the servers work on afterwards: as long as it takes until everything that can be found is found."""


class Dial:
    """A clock that the attack turns."""

    def __init__(self) -> None:
        self.now_ms = 1_750_000_000_000

    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)


class Counting:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def fresh(self) -> str:
        return f"{next(self._numbers):032x}"


async def late_put_meets_finish() -> tuple[object, set[bytes]]:
    """What the put that slept was answered, and every body that was delivered."""
    dial, identities = Dial(), Counting()
    store = FaultyStore(MemoryStore(lambda: dial.now_ms))
    worker, sleeper = (Engine(store, identities, dial) for _ in range(2))
    await worker.create_queue(ACCOUNT, QUEUE, SETTINGS)
    reservation = await sleeper.reserve(ACCOUNT, QUEUE, 1)
    await worker.put(ACCOUNT, QUEUE, [NewMessage(b"1"), NewMessage(b"2"), NewMessage(b"3")])
    answers: list[object] = []

    async def wake_up() -> None:
        answers.extend(await sleeper.put_reserved(reservation, [NewMessage(LATE)]))

    store.next("change", STATES, wake_up, when=lambda change: "finished" in change.set_flags)
    delivered: set[bytes] = set()
    for _ in range(SECONDS):
        dial.now_ms += 1_000
        await worker.step(ACCOUNT, QUEUE)
        (found,) = await worker.receive(ACCOUNT, QUEUE, [Ask(10)])
        assert not isinstance(found, AngelhairError)
        delivered |= {delivery.body for delivery in found}
        if found:
            await worker.ack(ACCOUNT, QUEUE, [delivery.receipt for delivery in found])
    assert len(answers) == 1, "no bucket was about to be finished"
    return answers[0], delivered
