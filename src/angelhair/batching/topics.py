"""Publishing in groups: one look at a topic and its subscriptions for all that wait, one put to the account's outbox
for the publications of all of its topics (R16)."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.batching.batching import Batching
from angelhair.batching.group import Group
from angelhair.batching.runtime import Runtime
from angelhair.engine.engine import Engine, PutOutcome
from angelhair.engine.topics.postings import FIFO_OUTBOX, HTTP_DELIVERIES, OUTBOX, hidden_account, id_of_place
from angelhair.engine.topics.values import Publication, Published, validate_publication
from angelhair.engine.topics.verbs import Prepared
from angelhair.errors import AngelhairError, QueueExists, QueueNotFound, StoreError, TopicNotFound, Unavailable
from angelhair.model import (
    BUCKETED,
    FIFO,
    MessageId,
    NewMessage,
    QueueSettings,
    validate_name,
    validate_topic_name,
    validate_whole,
)

PublishOutcome = Published | AngelhairError
Publishes = Group[Sequence[Publication], list[PublishOutcome]]


def hidden_settings(name: str) -> QueueSettings:
    """Of the internal queues. They never forget what was not delivered, and keep nothing of what was."""
    return QueueSettings(
        kind=FIFO if name == FIFO_OUTBOX else BUCKETED,
        visibility_timeout_ms=limits.OUTBOX_VISIBILITY_MS,
        retention_ms=None,
        history_ms=0,
        dedup_window_ms=limits.OUTBOX_WINDOW_MS,
    )


class Publishing:
    """To be asked by doors, beside `Batching`."""

    def __init__(self, batching: Batching, runtime: Runtime) -> None:
        self._batching = batching
        self._engine = batching.engine
        self._runtime = runtime
        self._waiting: dict[tuple[str, str], Publishes] = {}

    async def publish(self, account: str, topic: str, publications: Sequence[Publication]) -> list[PublishOutcome]:
        """For each publication its id, which means that it will reach everybody who was subscribed; or the error that
        it met."""
        publications = tuple(publications)
        validate_whole("messages", len(publications), 1, limits.BATCH_MESSAGES)
        validate_name("account", account)
        validate_topic_name(topic)
        for publication in publications:
            validate_publication(publication)
        key = (account, topic)
        waiting = self._waiting.get(key)
        if waiting is None:

            async def run(group: list[Sequence[Publication]]) -> list[list[PublishOutcome]]:
                return await self._publish(account, topic, group)

            waiting = Group(self._runtime, run, _weigh, limits.BATCH_MESSAGES, lambda: self._forget(key))
            self._waiting[key] = waiting
        return await waiting.ask(publications)

    def _forget(self, key: tuple[str, str]) -> None:
        self._waiting.pop(key, None)

    async def _publish(
        self, account: str, topic: str, group: list[Sequence[Publication]]
    ) -> list[list[PublishOutcome]]:
        publications = [one for request in group for one in request]
        outcomes: list[PublishOutcome] = []
        while len(outcomes) < len(publications):
            # Not all at once: each takes those along that it goes to, which may be a thousand.
            portion = publications[len(outcomes) : len(outcomes) + limits.PUBLISH_MESSAGES]
            try:
                prepared = await self._engine.topics.prepare(account, topic, portion)
                found = await self._post(account, prepared)
            except AngelhairError as error:
                if not outcomes:
                    raise
                found = [error] * len(portion)
            outcomes += found
            if failed := next((one for one in found if isinstance(one, StoreError | TopicNotFound)), None):
                # Nothing is put after what was not: there may be an order.
                outcomes += [Unavailable(str(failed))] * (len(publications) - len(outcomes))
        answers, position = [], 0
        for request in group:
            answers.append(outcomes[position : position + len(request)])
            position += len(request)
        return answers

    async def _post(self, account: str, prepared: Prepared) -> list[PublishOutcome]:
        fifo = prepared.topic.settings.kind == FIFO
        messages = [one[1] for one in prepared if not isinstance(one, AngelhairError) and one[1] is not None]
        places = iter(await self.put_hidden(account, FIFO_OUTBOX if fifo else OUTBOX, messages) if messages else ())
        outcomes: list[PublishOutcome] = []
        for one in prepared:
            if isinstance(one, AngelhairError):
                outcomes.append(one)
            elif one[1] is None:
                outcomes.append(Published(one[0]))
            else:
                place = next(places)
                if not isinstance(place, MessageId):
                    outcomes.append(place)
                elif one[1].key is None:
                    outcomes.append(Published(one[0]))
                else:
                    outcomes.append(Published(id_of_place(account, fifo, place), place if fifo else None))
        return outcomes

    async def put_hidden(self, account: str, name: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """Into one of the account's internal queues, which is made when it is first needed."""
        hidden = hidden_account(account)
        try:
            return await self._batching.put(hidden, name, messages)
        except QueueNotFound:
            await self.make_hidden(account, name)
        return await self._batching.put(hidden, name, messages)

    async def make_hidden(self, account: str, name: str) -> None:
        try:
            await self._engine.create_queue(hidden_account(account), name, hidden_settings(name))
        except QueueExists:
            # By another version of ours, with settings of its own: they serve.
            return


def _weigh(request: Sequence[Publication]) -> int:
    size = sum([len(publication.body) for publication in request])
    return max(len(request), size * limits.BATCH_MESSAGES // limits.PUT_GROUP_BYTES)


async def on_their_way(engine: Engine, account: str) -> int:
    """How many publications of the account have not reached everybody yet."""
    found = 0
    for name in (OUTBOX, FIFO_OUTBOX, HTTP_DELIVERIES):
        try:
            stats = await engine.stats(hidden_account(account), name)
        except QueueNotFound:
            continue
        found += stats.visible + stats.in_flight + stats.delayed
    return found
