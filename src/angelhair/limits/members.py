"""How servers know of each other."""

# --- members of a cluster -----------------------------------------------------------------------------------------

MEMBER_BEAT_MS = 2_000
"""How often a server says that it lives, and looks who else does: one conditional write and one read each."""

MEMBER_MS = 8_000
"""How long it is believed to live without a beat: four chances, and less than a lease, so that the lanes of a server
that died are taken over sooner."""

MEMBER_GAP_MS = 4_000
"""Who has not looked for longer than this, two beats, begins to watch anew: it saw no beat because it did not look."""

MEMBER_LATE_MS = 12_000
"""After so long a server that died has fallen out everywhere where looks come in time: the time for which it is
believed to live, and two beats. Its last one was seen up to one look after it was made, and so was its end."""

MEMBER_GROUP = 16
"""Slots that share a partition: so many servers at most line up behind each other's beats in Cassandra."""

MEMBERS_MAXIMUM = 1_024
"""Processes of servers on one store: each look reads them all. And so many that are gone are remembered."""

MEMBER_ROUNDS = 24
"""Times a slot is tried for before a server waits for its next beat: so many may start at the same moment."""

MEMBERS_FREED = 16
"""Slots of those who fell out that are freed in a step, one write each: more would hold up the own next beat."""
