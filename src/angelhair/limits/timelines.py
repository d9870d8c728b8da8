"""How timelines work: windows, locks, the index of time, and what is set aside."""

# --- timelines ----------------------------------------------------------------------------------------------------

TIMELINE_WINDOW = 512
"""Messages of a shard that are given or acked beyond its checkpoint: the most that is processed again when its holder
dies."""

TIMELINE_CHECKPOINT = 256
"""Acked messages after which the checkpoint is moved without waiting for the next touch: half a window, so that the
other half can be worked on meanwhile."""

TIMELINE_SPAN_PARTS = 4_096
"""Parts of time that one row of the index's upper level speaks of. A year of minutes is 129 rows, one read."""

TIMELINE_SPAN_LIFE_PARTS = 256
"""To how many parts the end of such a row's life is rounded: it is written at most so much more often than once."""

TIMELINE_DIRECT_PARTS = 3
"""So many parts are read at once without asking the index whether there is anything in them."""

TIMELINE_INDEX_PARTS = 16
"""Parts with messages that one look into the index brings."""

TIMELINE_INDEX_ROWS = 256
"""Rows of the index that one read brings."""

TIMELINE_INDEX_KNOWN = 1_024
"""Groups of rows of a shard's index that a server remembers to have written, a bit for each part: two
groups for each span that messages are put to, so some four years of minutes."""

TIMELINE_RAISE_MS = 500
"""How long a consumer waits with raising the mark again for few messages; a lone one after a pause does not wait."""

TIMELINE_RAISE_ROWS = 64
"""For so many messages the mark is raised at once: a conditional write for each of them is then a sixtieth."""

TIMELINE_FILLS = 8
"""Times that one receive reads on before it gives what it has found."""

TIMELINE_LEAD_MS = 100
"""How far above the mark a row is put again that lay below it, at least; it doubles from try to try."""

TIMELINE_SECOND_MESSAGES = 1_000
"""Messages that one server puts to one second before the next ones of that second go to the next shard (W3)."""

TIMELINE_SECONDS = 256
"""Seconds whose messages a server counts for that."""

TIMELINE_ASIDE = 10_000
"""Messages that were set aside whose receipts a server still knows, so that an ack of them is not in vain."""

TIMELINE_TOUCHES = 4
"""So many times within a lock it is touched; and so much of it, the last part, its holder does not believe in (W9)."""

TIMELINE_CONSUMERS = 4_096
"""Consumers of one timeline that share its shards: more than it can have shards."""

TIMELINE_TAKE_ROUNDS = 3
"""Times that one touch tries for free shards after others were faster."""

TIMELINE_FORGET_LOCKS = 10
"""After so many times a lock the name of a consumer that is not heard of goes."""

TIMELINE_STEP_MS = 500
"""How often a server steps a timeline for which it holds shards."""

TIMELINE_LOOK_MS = 60_000
"""How often a server looks at least whether rows must be renewed, of which half a life is over."""

TIMELINE_TEND_MS = 5_000
"""How often a server looks whether parts or drained shards may go."""

TIMELINE_ACKED = 1_024
"""Acks behind the checkpoint that a holder remembers, so that who acks again hears of it."""

TIMELINE_RENEWED_ROWS = 1_000
"""Rows that one step renews in a shard."""

TIMELINE_COUNTED = 2_000
"""Rows of a shard beyond its checkpoint that statistics count; if there are more, they say that they are not exact."""
