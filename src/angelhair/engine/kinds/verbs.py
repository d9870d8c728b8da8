"""What a kind of queue answers to. One object of each serves an engine; the queue is handed in with every call.

A verb that a kind cannot do is left as it is here: it refuses, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from angelhair.engine import ledger
from angelhair.engine.addressing import AckOutcome
from angelhair.engine.bucketed.inspect import BucketSeen
from angelhair.engine.bucketed.put import Count, PutOutcome
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.engine.databag.inspect import BagSeen
from angelhair.engine.ledger import Run
from angelhair.engine.marks import Marks
from angelhair.engine.memory import Memory
from angelhair.engine.puts import Reservation, ReserveAgain
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.runs import Begun
from angelhair.engine.store import JoiningStore
from angelhair.engine.timeline.consumer import Share
from angelhair.engine.timeline.inspect import ShardSeen
from angelhair.engine.waiting import Waiting
from angelhair.errors import InvalidRequest
from angelhair.model import MessageId, NewMessage, Peeked, WantedChange


class Verbs:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    # --- messages -------------------------------------------------------------------------------------------------

    async def reserve(self, queue: Queue, count: Count, rank: Rank = PLAIN) -> Reservation | None:
        """Ids for exactly so many messages of a rank as `count` said last; None when this kind puts whole groups in one
        step."""
        return None

    async def put_reserved(
        self, reservation: Reservation, messages: Sequence[NewMessage], reserve_again: ReserveAgain
    ) -> list[PutOutcome]:
        self._cannot(reservation.queue, "reserves no ids")

    async def put_together(
        self, queue: Queue, store: JoiningStore, messages: Sequence[NewMessage], reserve_again: ReserveAgain,
        rank: Rank = PLAIN,
    ) -> list[PutOutcome] | Reservation | None:
        """The whole put in one step, or as far as it went; None when that is not how these are put."""
        return await self.put_whole(queue, messages)

    async def put_whole(self, queue: Queue, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        self._cannot(queue, "puts no whole groups")

    async def receive(self, queue: Queue, group: Sequence[Waiting]) -> None:
        self._cannot(queue, "gives no messages")

    async def ack(self, queue: Queue, account: str, texts: Sequence[str], in_flight: bool) -> list[AckOutcome]:
        self._cannot(queue, "takes no acks")

    async def change(self, queue: Queue, account: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        self._cannot(queue, "changes no messages")

    async def begin_run(self, queue: Queue, run: Run) -> Begun | None:
        self._cannot(queue, "takes no runs of messages, which Spark writes: put them one by one, by a client")

    async def finish_run(
        self, begun: Begun, messages: Sequence[NewMessage], reserve_again: ReserveAgain, accept: ledger.Accept
    ) -> set[int]:
        self._cannot(begun.queue, "takes no runs of messages")

    # --- consumers ------------------------------------------------------------------------------------------------

    async def touch_consumer(self, queue: Queue, name: str, most_shards: int | None) -> Share:
        self._cannot(queue, "has no shards that consumers hold")

    async def leave_consumer(self, queue: Queue, name: str) -> None:
        self._cannot(queue, "has no shards that consumers hold")

    async def leave_all(self, queue: Queue) -> None:
        """Before a server stops. Most kinds have leases only, which are given back apart from this."""

    async def shards(self, queue: Queue) -> list[ShardSeen]:
        self._cannot(queue, "has no shards")

    async def partitions(self, queue: Queue) -> BagSeen:
        self._cannot(queue, "has no partitions")

    # --- looking and operating ------------------------------------------------------------------------------------

    async def peek(self, queue: Queue, most: int) -> list[Peeked]:
        self._cannot(queue, "shows no messages")

    async def stats(self, queue: Queue, most_buckets: int) -> Stats:
        self._cannot(queue, "counts no messages")

    async def marks(self, queue: Queue) -> dict[int, Marks]:
        self._cannot(queue, "has no marks")

    async def buckets(self, queue: Queue, lane_number: int, first: int | None, count: int) -> list[BucketSeen]:
        self._cannot(queue, "shows no buckets")

    async def purge(self, queue: Queue) -> None:
        self._cannot(queue, "cannot be purged")

    async def move_back(self, queue: Queue, lane_number: int, bucket: int) -> int:
        self._cannot(queue, "has no repair, and no mark of it to move back")

    async def archived_up_to(self, queue: Queue, lane_number: int, bucket: int) -> int:
        self._cannot(queue, "cannot be archived")

    async def retire(self, queue: Queue) -> dict[int, range]:
        self._cannot(queue, "drops what may go by itself")

    async def erase(self, queue: Queue, message: MessageId) -> bool:
        self._cannot(queue, "cannot erase single messages")

    async def redrive(self, queue: Queue, destination: str | None, most: int) -> int:
        self._cannot(queue, "moves no messages")

    # --- background -----------------------------------------------------------------------------------------------

    async def step(self, queue: Queue) -> int:
        self._cannot(queue, "has no background work")

    @staticmethod
    def _cannot(queue: Queue, what: str) -> NoReturn:
        raise InvalidRequest("kind", f"a queue of the kind {queue.settings.kind!r} {what}")
