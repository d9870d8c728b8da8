"""A confirmed put with a key is lost: its commit fails, or finds no row, and the id it confirms was voided before (A1).

Schedule 1 (the key's partition cannot be reached by the first put):
 1. P1 puts key k: row pending(X). P1 sleeps before it writes its body.
 2. Half of the retention later P2 puts k, finds pending(X), nothing written and old: row pending(Y, before X), X
    voided; P2 dies before it writes at Y.
 3. P1 wakes up, writes at X, reads the marks: bucket at or above `final`, so X counts as confirmed (nobody looks at
    the state row, which says void). Its commit fails (the store does not answer for that partition).
 4. P1 answers MessageId X. X is void, Y was never written: nobody is ever given the message.

Schedule 2: the same with a delayed message; P1 sleeps until the key's row has lapsed (TTL). Its commit is refused by
a row that is absent, which `_commit` takes for a yes.

Promise: A1 (and 0017: "a sleeper's commit is refused").
"""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES, KEYS
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.queues import HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * HOUR}

pytestmark = pytest.mark.usefixtures("delays_in_buckets")


@pytest.mark.parametrize("fault", [NEVER_SENT, UNAVAILABLE])
async def test_a1_commit_that_fails(world: World, fault: str) -> None:
    first, other = world.server(), world.server()
    await other.create("orders", retention_ms=HOUR, **SETTINGS)

    async def meanwhile() -> None:
        world.wait(31 * MINUTE)
        other.store.next("write", BODIES, NEVER_SENT, times=1000)
        (unknown,) = await other.put_outcomes("orders", [NewMessage(b"m", key="k")])
        assert isinstance(unknown, StoreError)
        other.store.heal()
        # From here on the first put does not reach the key's row.
        first.store.next("change", KEYS, fault, times=1000)

    first.store.next("write", BODIES, meanwhile)
    (outcome,) = await first.put_outcomes("orders", [NewMessage(b"m", key="k")])
    first.store.heal()
    got = await all_of(world, world.server())
    assert not isinstance(outcome, MessageId) or got == [b"m"], (outcome, got)


async def test_a1_commit_whose_row_has_lapsed(world: World) -> None:
    first, other = world.server(), world.server()
    await other.create("orders", retention_ms=HOUR, **{**SETTINGS, "dedup_window_ms": 40 * MINUTE})
    delay_ms = 3 * HOUR

    async def meanwhile() -> None:
        world.wait(31 * MINUTE)
        other.store.next("write", BODIES, NEVER_SENT, times=1000)
        (unknown,) = await other.put_outcomes("orders", [NewMessage(b"m", key="k", delay_ms=delay_ms)])
        assert isinstance(unknown, StoreError)
        other.store.heal()
        world.wait(41 * MINUTE)

    first.store.next("write", BODIES, meanwhile)
    (outcome,) = await first.put_outcomes("orders", [NewMessage(b"m", key="k", delay_ms=delay_ms)])
    world.wait(delay_ms - 72 * MINUTE)
    got = await all_of(world, world.server(), ms=4 * MINUTE)
    assert not isinstance(outcome, MessageId) or got == [b"m"], (outcome, got)
