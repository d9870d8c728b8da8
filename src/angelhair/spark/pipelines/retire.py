"""retire: what is finished, whose history is over and which the lake has, goes now. The engine drops, and only it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.identities import Identities
from angelhair.engine.store import Store
from angelhair.spark.looking import Looking
from angelhair.spark.place import Place
from angelhair.spark.planning import QueueShape, look


@dataclass
class Retired:
    """What went, and what stays. Buckets, by lane."""

    queue: str
    went: dict[int, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    """Finished, and still there: their history is not over, or they are not in the lake."""
    archive: bool = False
    """Whether the queue waits for its lake."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def retire(place: Place, account: str, queue: str, identities: Identities, dry_run: bool = False) -> Retired:
    """`dry_run`: nothing goes, and what is finished is counted as kept."""
    with Looking(place, changing=not dry_run) as looking:
        return looking.run(lambda store: _retire(store, account, queue, identities, dry_run))


async def _retire(store: Store, account: str, queue: str, identities: Identities, dry_run: bool) -> Retired:
    engine = Engine(store, identities, SystemClock())
    went: dict[int, range] = {} if dry_run else await engine.retire(account, queue)
    settings = (await engine.find_queue(account, queue)).settings
    shape: QueueShape = await look(store, account, queue)
    return Retired(
        queue,
        {lane: len(buckets) for lane, buckets in went.items()},
        {lane.number: lane.repair - lane.floor for lane in shape.lanes},
        settings.archive,
    )
