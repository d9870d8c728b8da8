"""R6 of fifo queues: deleted by another server between any two steps of any verb, a queue answers with a typed error or
with nothing, and the one that is made in its place works at once and has none of the old messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from angelhair import limits
from angelhair.errors import AngelhairError
from tests.promises.fifo import bodies, make, message
from tests.queues import SECOND, Server, World, succeeded

DEAD = "dead"
STEPS = 40
"""More than any verb takes: the loops below end when a verb was through before it came to the step."""

Verb = Callable[[Server, str, Any], Awaitable[object]]

VERBS: dict[str, Verb] = {
    "put": lambda server, name, _: server.put_outcomes(name, [message(f"late {number}") for number in range(5)]),
    "put again": lambda server, name, _: server.put_outcomes(name, [message("a")]),
    "receive": lambda server, name, _: server.receive(name, 10),
    "ack": lambda server, name, delivery: server.ack(name, delivery),
    "extend": lambda server, name, delivery: server.extend(name, delivery, SECOND),
    "work": lambda server, name, _: server.work(name, 5 * SECOND),
    "purge": lambda server, name, _: server.engine.purge(server.world.account, name),
    "redrive": lambda server, name, _: server.engine.redrive(server.world.account, name, DEAD, 10),
    "peek": lambda server, name, _: server.engine.peek(server.world.account, name, 10),
    "stats": lambda server, name, _: server.engine.stats(server.world.account, name),
}


class Countdown:
    """Deletes the queue before the step of that number."""

    def __init__(self, world: World, other: Server, name: str, step: int) -> None:
        self._world, self._other, self._name = world, other, name
        self._left = step
        self.happened = False

    def due(self, _: object) -> bool:
        self._left -= 1
        return self._left < 0 and not self.happened

    async def delete(self) -> None:
        if not self.happened:
            self.happened = True
            await self._other.engine.delete_queue(self._world.account, self._name)


@pytest.mark.parametrize("remembers", [True, False], ids=["who knows it", "who comes to it anew"])
@pytest.mark.parametrize("verb", VERBS)
async def test_r06_deleted_in_the_midst_of_it(
    world: World, verb: str, remembers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that epochs turn over in the midst of it, too.
    monkeypatch.setattr(limits, "EPOCH_ROWS", 1)
    for step in range(STEPS):
        name = f"orders-{step}"
        maker, other = world.server(), world.server()
        await make(maker, DEAD)
        await make(maker, name, bucket_size=2, max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND)
        for outcome in await maker.put_outcomes(name, [message(body, body) for body in ("a", "b", "c", "d")]):
            succeeded(outcome)
        (delivery,) = await maker.receive(name)
        server = maker if remembers else world.server()
        countdown = Countdown(world, other, name, step)
        for kind in ("read", "change"):
            server.store.next(kind, None, countdown.delete, when=countdown.due, times=STEPS)
        try:
            await VERBS[verb](server, name, delivery)
        except AngelhairError:
            pass
        server.store.heal()
        if not countdown.happened:
            break
        await make(other, name)
        succeeded((await server.put_outcomes(name, [message("new")]))[0])
        assert bodies(await other.receive(name, 10)) == ["new"]
        for left in (name, DEAD):
            await other.engine.delete_queue(world.account, left)
        # Their store is others' too: a graveyard that is full would keep them waiting.
        await other.bury()
    else:
        pytest.fail("no end was found")
    assert step > 0, "the verb took no step at all"
