"""Erasing everywhere: what messages said goes from the queue, and then from its lake.

The queue first: what is archived from then on says nothing any more. An archiver that had read it before may still
bring it into the lake, so the lake is looked at until it has come no further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.identities import Identities
from angelhair.engine.store import Store
from angelhair.errors import QueueNotFound
from angelhair.model import MessageId
from angelhair.spark.lakes import format_at, open_lake, table_place
from angelhair.spark.looking import Looking
from angelhair.spark.pipelines.archive import Step, quietly
from angelhair.spark.pipelines.erase import Erased, erase_from_lake
from angelhair.spark.place import Place
from angelhair.spark.planning import QueueShape, look


@dataclass
class Forgotten:
    queue: str
    in_queue: list[str] = field(default_factory=list)
    """Ids whose words went from the queue; the others are not there, or not any more."""
    in_lake: Erased | None = None
    """None if the lake has none of them."""

    def as_json(self) -> dict[str, Any]:
        return {
            "queue": self.queue, "in_queue": self.in_queue,
            "in_lake": None if self.in_lake is None else self.in_lake.as_json(),
        }


def forget(
    spark: SparkSession, place: Place, account: str, queue: str, lake: str, ids: Sequence[MessageId],
    identities: Identities, incarnation: str | None = None, step: Step = quietly,
) -> Forgotten:
    """`incarnation`: of a queue of that name that is gone; then there is only the lake."""
    done = Forgotten(queue)
    shape = None
    if incarnation is None:
        step("queue")
        shape = _from_queue(place, account, queue, ids, identities, done)
        step("queue done")
    if shape is None:
        done.in_lake = erase_from_lake(spark, lake, queue, ids, incarnation, step)
        return done
    known: list[MessageId] = []
    while (archived := _archived(lake, shape, ids)) != known:
        done.in_lake, known = erase_from_lake(spark, lake, queue, archived, shape.incarnation, step), archived
    return done


def _from_queue(
    place: Place, account: str, queue: str, ids: Sequence[MessageId], identities: Identities, done: Forgotten
) -> QueueShape | None:
    async def erase(store: Store) -> QueueShape | None:
        engine = Engine(store, identities, SystemClock())
        try:
            shape = await look(store, account, queue)
        except QueueNotFound:
            return None
        lanes = {lane.number for lane in shape.lanes}
        for each in ids:
            if each.lane in lanes and await engine.erase(account, queue, each):
                done.in_queue.append(str(each))
        return shape

    with Looking(place, changing=True) as looking:
        return looking.run(erase)


def _archived(lake: str, shape: QueueShape, ids: Sequence[MessageId]) -> list[MessageId]:
    """Those that are where the lake says that it is."""
    table = table_place(lake, shape.name)
    if format_at(table) is None:
        return []
    opened = open_lake(table)
    last: dict[int, int] = {}
    for file in opened.held():
        if file.name is None or file.name.incarnation == shape.incarnation:
            last[file.lane] = max(last.get(file.lane, -1), file.last)
    return [each for each in ids if each.number <= last.get(each.lane, -1)]
