"""What Amazon SNS allows, filter policies included; and how messages are brought to HTTP endpoints."""

# --- filter policies --------------------------------------------------------------------------------------------------

FILTER_POLICY_BYTES = 262_144
"""A filter policy."""

FILTER_KEYS = 5
"""Keys in a filter policy, counted where they have values."""

FILTER_COMBINATIONS = 150
"""The product of how many values each key has, times how deep it is nested; alternatives are added up."""

FILTER_NUMBER_MAXIMUM = 1_000_000_000
FILTER_DECIMALS = 5
"""Numbers that are compared: up to a billion either side of zero, and so many digits behind the point."""

FILTER_DEPTH = 100
"""Objects in objects of a policy: combinations end it far sooner; this ends a walk that only alternatives make long."""

FILTER_POLICIES_REMEMBERED = 4_096
"""Policies that a server keeps parsed. A topic may have 200 of them at Amazon."""

# --- the SNS door -----------------------------------------------------------------------------------------------------

SNS_TOPIC_NAME_LENGTH = 256
"""Characters in a topic's name, `.fifo` included."""

SNS_DISPLAY_NAME_LENGTH = 100
SNS_SUBJECT_LENGTH = 100
"""Characters in a topic's display name, and in a message's subject."""

SNS_MESSAGE_SIZE_DEFAULT_BYTES = 262_144
"""A message with its attributes, and a whole batch, unless the topic's `MaximumMessageSize` allows more."""

SNS_PAGE = 100
"""Topics or subscriptions in one page of a listing."""

SNS_TOPIC_REMEMBERED_SECONDS = 1.0
SNS_TOPICS_REMEMBERED = 10_000
"""For how long, and of how many topics, the attributes that a publication needs are remembered: a change of them is
seen on other servers after that, and a publication costs no read of its own for them."""

SNS_KEY_BITS = 2_048
SNS_CERTIFICATE_DAYS = 3_650
"""The key that messages are signed with, and how long its certificate is good: it is made once."""

SNS_SIGNATURES_REMEMBERED = 1_024
"""A publication is signed once, however many it goes to: that is the slowest part of it. More than are under way at a
time on one server; half a megabyte."""

# --- HTTP endpoints ---------------------------------------------------------------------------------------------------

SNS_TOKEN_SECONDS = 3 * 86_400
"""For how long a subscription may be confirmed after it was asked for."""

SNS_POST_SECONDS = 15.0
"""For an endpoint to answer: what SNS allows. Well below the time that a delivery is a server's alone."""

SNS_RESOLVE_SECONDS = 5.0
"""For an endpoint's name to be resolved. With the post it has to be well below the time that a delivery is a server's
alone."""

SNS_RESOLVE_JOINED_SECONDS = 0.25
"""After so long others do not wait for an answer that is waited for already: they come back a second later, and leave
their places to deliveries elsewhere. A resolver that is well answers sooner."""

SNS_RESOLVES_AT_ONCE = 64
"""Names that are looked up at the same time, each in a thread, which nothing can end while its resolver hangs."""

SNS_ANSWER_BYTES = 16_384
"""Of an endpoint's answer that are read. Only its status counts."""

SNS_POSTS_AT_ONCE = 32
"""Endpoints that a server speaks to at the same time: slow ones hold back others only when all of these are."""

SNS_DELIVERIES_WAIT_SECONDS = 20.0
"""How long one look for deliveries waits: a server looks again at once, so this is about stopping and new accounts."""

SNS_RETRIES_MAXIMUM = 100
SNS_RETRY_DELAY_MAXIMUM_SECONDS = 3_600
"""What a delivery policy may ask for."""
