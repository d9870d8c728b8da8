"""Topics: what may be asked of them, and how publications are spread."""

TOPIC_NAME_LENGTH = 256
"""Characters in a topic's name: SNS's limit."""

SUBSCRIPTIONS = 1_000
"""Subscriptions of a topic. Every publication carries those that it goes to: a thousand are some 200 KiB."""

ENDPOINT_LENGTH = 2_048
"""Characters in the URL of a subscription: what browsers and proxies agree on."""

SUBSCRIPTION_BYTES = 300 * 1024
"""What is kept with a subscription: SNS's longest filter policy (256 KiB), and a delivery policy."""

PUBLICATION_BYTES = 4 * 1024 * 1024
"""Bodies of a publication: with its subscriptions it is one message of the outbox, whose limit is twice that."""

ENVELOPE_BYTES = 256 * 1024
"""What an envelope has beside the body and twice the attributes: names, addresses and a signature are far less, unless
a client calls the server by a name as long as headers may be."""

PUBLISH_MESSAGES = 100
"""Publications that are put into the outbox at once: with a thousand subscriptions each, some 20 MiB."""

LIST_TOPICS = 1_000
"""Topics in one page of a listing."""

REMEMBERED_TOPICS = 10_000
"""Topics of which a server knows the incarnation: a publication then takes one read, not two."""

OUTBOX_VISIBILITY_MS = 30_000
"""How long a publication is a server's alone while that spreads it. When the server dies another begins after this."""

OUTBOX_WINDOW_MS = 300_000
"""For how long a fifo topic knows a key: SNS's five minutes."""

FANOUT_MESSAGES = 100
"""Publications that are spread at once: one put to each queue holds what they have for it."""

FANOUT_BYTES = 4 * 1024 * 1024
"""What they may come to, if they are more than one: each queue that is written to has its own copy for a while."""

FANOUT_PUTS = 32
"""Queues that are written to at once. One that hangs leaves the others theirs."""

FANOUTS_AT_ONCE = 4
"""Such groups of an outbox under way on a server. One that waits for a queue which cannot be written to leaves three
for the others."""

FANOUT_LOOK_SECONDS = 1.0
FANOUT_LOOK_MOST_SECONDS = 5.0
"""How often an outbox is looked at for what servers that died left, and those who could not write; ever less often
while nothing is found. What is published on this server needs no looking."""

FANOUT_LATE_MS = 120_000
"""How long after it was received a publication may still be put: much longer than others wait with it, and much shorter
than queues remember keys."""

FANOUT_PAUSE_MS = 1_000
FANOUT_PAUSE_MAXIMUM_MS = 60_000
"""How long a publication waits for a queue that could not be written to: doubled each time, up to a minute."""

FANOUT_REMEMBERED = 10_000
"""Publications of fifo topics that wait for a queue, of which a server knows which queues have them: for as long as
that takes, which may be longer than those queues remember keys."""

FANOUT_STOP_SECONDS = 5.0
"""How long a server that stops waits for what it is spreading; what is left, another spreads after half a minute."""
