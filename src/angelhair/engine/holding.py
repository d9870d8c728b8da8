"""How much a server works on, of queues of every kind: what it tells the others with its beats."""

from __future__ import annotations

from angelhair.engine.members import Holdings
from angelhair.engine.memory import Memory
from angelhair.engine.timeline.lane import LaneView


def holdings(memory: Memory) -> Holdings:
    now = memory.clock.now()
    shards = [view.held for view in memory.views(LaneView)]
    return Holdings(
        sum(worker.lease.held(now) for worker in memory.workers.values()),
        sum(held is not None and held.believed(now) for held in shards),
    )
