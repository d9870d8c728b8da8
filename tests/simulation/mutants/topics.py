"""Mutants of topics: the outbox, the snapshot of who is subscribed, what is spread again, late copies."""

from angelhair.simulation.run import TOPICS
from tests.simulation.mutants.patching import Mutant, Patch

SPREAD = (
    Mutant(
        "outbox acked before the puts are confirmed",
        "A publication is over when it was sent to the queues, whatever they answered.",
        "R16",
        (Patch("batching.fanout.Fanout._try_again", "work.failed = True", "work.left.clear()"),),
        ("topic_reach",),
        kind=TOPICS,
    ),
    Mutant(
        "outbox acked before it is spread",
        "A server that dies half way has nobody who goes on.",
        "R16",
        (
            Patch(
                "batching.fanout.Fanout.step",
                "await self._spread(mine)\n        await self._settle(account, outbox, mine)",
                "await self._batching.ack(hidden, outbox, [work.delivery.receipt for work in mine] or ['-'])\n"
                "        await self._spread(mine)",
            ),
        ),
        ("topic_reach",),
        kind=TOPICS,
    ),
    Mutant(
        "who is subscribed out of a memory",
        "A publication goes to those who were subscribed when this server looked first.",
        "R16, R4",
        (
            Patch(
                "topics.verbs.Topics.prepare",
                "topic, (_, everybody) = await self.read(account, name)",
                "old = self.__dict__.setdefault('old', {})\n"
                "    topic, (_, everybody) = old[name] = old.get(name) or await self.read(account, name)",
            ),
        ),
        ("topic_reach", "topic_strays"),
        kind=TOPICS,
    ),
    Mutant(
        "spread again without a key",
        "Each server that goes on with a publication puts it once more.",
        "R10",
        (Patch("topics.delivering.message_for", "keyed = resumed or posting.kind == FIFO", "keyed = False"),),
        ("topic_copies",),
        kind=TOPICS,
    ),
    Mutant(
        "late copies of subscriptions",
        "A subscription whose answer was lost comes again when it has ended.",
        "R16",
        (Patch("topics.subscriptions._edit", "{'edits': edits, 'deleted': None}", "{'deleted': None}"),),
        ("topic_reach", "topic_strays"),
        kind=TOPICS,
    ),
    Mutant(
        "subscriptions by the topic's name",
        "A topic that is made again has those who were subscribed to the old one.",
        "R6",
        (
            Patch(
                "topics.catalog.create",
                "Topic(account, name, identities.fresh(), settings,",
                "Topic(account, name, f'{account}.{name}', settings,",
            ),
            Patch("topics.catalog._begin", "expect_flags={'edits': None}, set_flags={'edits': 0}",
                  "set_flags={'edits': 0, 'deleted': None}"),
        ),
        ("topic_strays", "topic_reach"),
        kind=TOPICS,
    ),
    Mutant(
        "fifo publications spread past one that failed",
        "What follows in a group is put though something before it was not.",
        "R12, R16",
        (Patch("batching.fanout.Fanout.step", "work.delivery.group not in stopped", "True"),),
        ("topic_order",),
        kind=TOPICS,
    ),
)
