"""The delay line: which messages wait there, and how they get back."""

DELAY_LINE_MS = 900_000
"""A longer delay than this is waited for in the delay line. Shorter ones keep a bucket unfinished for so long: SQS's
quarter of an hour, and little beside the day for which buckets are kept as history."""

DELAY_LINE_LOOK_MS = 60_000
"""How often a server looks whether others have made a queue's line; what they put there is not due for longer."""

DELAY_LINE_MESSAGES = 256
"""Messages that are handed over at a time: half of a timeline's window, so that the next can be read meanwhile."""

DELAY_LINE_WINDOW_MS = 3_600_000
"""For how long a queue knows what was handed over: much longer than it takes until another server goes on with what
one that died has put and not acked. Buckets with such messages are kept for so long."""

DELAY_LINE_LOCK_MS = 10_000
"""After how long another server takes the line of one that died: as a lease."""

DELAY_LINE_VISIBILITY_MS = 5_000
"""When what could not be put is tried again. Who takes longer than this puts it as well, and the key makes it one."""

DELAY_LINE_PRODUCER_MS = 1_000
"""By how much a put that slept for longer than its delay is behind: the line's producer delay. Others are not."""
