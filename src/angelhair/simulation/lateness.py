"""How late what is late lands, and in how many pieces: bounds between which a seed draws."""

from angelhair.simulation.scheduler import MICROSECONDS_PER_SECOND

LATE_US = (1_000, 5 * MICROSECONDS_PER_SECOND)
"""How late a late effect lands: about as long as a request may queue at a busy node."""
DELAYED_US = (300_000, 30 * MICROSECONDS_PER_SECOND)
"""How long a delayed effect is held up: long enough for others to close, settle, finish and drop its bucket."""
VERY_LATE_US = (60 * MICROSECONDS_PER_SECOND, 3 * 3_600 * MICROSECONDS_PER_SECOND)
"""How late a very late effect lands: Cassandra keeps hints for three hours."""
PAST_DROP_US = (1_000, 600 * MICROSECONDS_PER_SECOND)
"""How long after the drop an effect lands that waits for it."""
UNDECIDED_US = (1_000, 600 * MICROSECONDS_PER_SECOND)
"""How long an undecided change stays so if no other change completes it."""
ON_ONE_US = (1_000, 600 * MICROSECONDS_PER_SECOND)
"""How long one replica alone has what the others are to get."""
TORN_PARTS_MOST = 4
"""Pieces of a torn write: enough for one to land, one to be late, one to be lost and one more."""
