"""How servers know of each other."""

MEMBER_BEAT_MS = 2_000
"""How often a server says that it lives, and looks who else does: one conditional write and one read each."""

MEMBER_MS = 8_000
"""How long it is believed to live without a beat: four chances, and less than a lease, so that the lanes of a server
that died are taken over sooner."""

MEMBER_GAP_MS = 4_000
"""Of the time between two looks of a watcher so much counts at most: two beats. Who did not look saw no beat either."""

MEMBER_LATE_MS = MEMBER_MS + 2 * MEMBER_BEAT_MS
"""After so long a server that died has fallen out everywhere where looks come in time: its last beat was seen up to one
look after it was made, and its end is seen up to one look after it has come."""

MEMBER_GROUP = 16
"""Slots that share a partition: so many servers at most line up behind each other's beats in Cassandra."""

MEMBERS_MAXIMUM = 1_024
"""Processes of servers on one store: each look reads them all. And so many that are gone are remembered."""

MEMBER_ROUNDS = 24
"""Times a slot is tried for before a server waits for its next beat: so many may start at the same moment."""
