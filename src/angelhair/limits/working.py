"""How the engine works: how much it reads, writes and tries at a time, and how long it waits."""

# --- how the engine works -----------------------------------------------------------------------------------------

INTEGER_LIMIT = 9_223_372_036_854_775_808
"""Whole numbers in a store, keys too, are signed and of 64 bits: below this, and not below its negative."""

SMALL_ROWS = 256
SMALL_BYTES = 5 * 1024 * 1024
"""What a partition of a small table may come to: a store reads all of it at once, in one page."""

TTL_MAXIMUM_SECONDS = 20 * 365 * 86_400
"""How long a store may be asked to keep a row: Cassandra's bound. What lives longer is dropped by the engine (R9)."""

TTL_LATEST_MS = 2_147_483_646_000
"""2038-01-19: the last moment at which Cassandra lets a row expire, as long as it writes files that its version 4 can
read, which is what version 5 does unless it is told otherwise. A message of a timeline is due its `expire_after`
before that at the latest, on every store; if that is null nothing expires, and this bound is none."""

CHANGE_ROWS = 500
"""Rows in one conditional write. On Cassandra 500 cost four times one row, and beyond that the gain flattens."""

SETTLE_ATTEMPTS = 4
"""Times one conditional write of unknown outcome is repeated before the caller is told that it is unknown."""

WRITE_ATTEMPTS = 3
"""Times one blind write is repeated under the same id before the producer is told."""

READ_ATTEMPTS = 3
"""Times a read that must happen (after a write, before a confirmation) is repeated."""

RESERVE_ROUNDS = 24
"""Times a reservation is tried against other servers before it counts as unavailable."""

CLAIM_ROUNDS = 4
"""Times a group of claims is cut down to the rows that are still free before it takes what it has."""

ACK_ROUNDS = 24
"""Times a group of acks is cut down to the rows that can still be acked."""

RECEIVE_ROUNDS = 3
"""Times a receive looks for further messages after others took those that it had found."""

ADMIT_ROUNDS = 24
"""Times an admission is tried against others that admit in the same bucket."""

PUT_ROUNDS = 6
"""Times a put that met a finished bucket goes again under a new id."""

PUT_GROUPS_WRITING = 4
"""Groups of puts of one queue whose rows are being written at the same time. More would only make gaps for readers."""

RECEIVE_GROUPS = 2
"""Groups of receives of one queue under way at the same time, on a store with transactions: one here, one there.
Measured with batches of ten: a tenth more messages than with one."""

POLITE_GROUPS = 64
"""Groups of puts that do not overlap after another server was seen to reserve ids in the same lane."""

PUT_GROUP_BYTES = 4 * 1024 * 1024
"""Bytes of bodies in one group of puts: what a store takes in one go without stalling others."""

PREFETCH_MESSAGES = 128
"""Bodies that one read brings ahead of demand, so that single receives do not cost a read each."""

PREFETCH_BYTES = 1024 * 1024
"""Bytes that one read may bring ahead of demand."""

PORTION_BYTES = 16 * 1024 * 1024
"""Bytes of bodies that a receive reads in one go; a large batch of large messages is read in several."""

FIRST_BODY_BYTES = 128 * 1024
"""What a server takes for the size of a queue's messages before it has seen one: 128 of them in its first portion."""

STRETCH_GAP_BYTES = 64 * 1024
"""Bytes of bodies between two messages that are wanted, by what is typical of their queue, that are read along: about
as dear as a range of its own. Large ones are left out: a bucket may hold more of them than memory does."""

RECEIVE_BYTES = 64 * 1024 * 1024
"""Bytes after which a group of receives takes what it has, be it less than was asked for."""

EXAMINED_BUCKETS = 4
"""Buckets that one receive looks into for messages that have become visible again."""

OPEN_ROUNDS = 6
"""Times a bucket's opening is tried or read back."""

OPEN_BUCKETS = 8
"""Buckets that a reader looks into at the same time for new messages."""

READS_ASIDE = 16
"""Reads of new messages that begin elsewhere than at the lowest open bucket after others were faster there."""

GAP_RUNS = 8
"""Runs of missing ids that one receive looks for again."""

GAP_LOOK_MS = 25
"""How often a missing id in an open bucket is looked for again; most are writes on their way."""

CLOSE_PATIENCE_MS = 2_000
"""How long a reader waits for missing ids of a bucket that the sequence has passed before it leaves them to repair."""

CATALOG_AGE_MS = 5_000
"""How old a remembered queue description may be (R4)."""

REMEMBERED_QUEUES = 10_000
"""Queue descriptions that a server keeps; the oldest go first."""

# --- wake index ---------------------------------------------------------------------------------------------------

WAKE_SLOT_MS = 1_000
"""One row of the wake index speaks of this much time. A server remembers exact times; the index serves the others."""

WAKE_PERIOD_SLOTS = 600
"""Slots in one partition of the wake index: ten minutes."""

WAKE_OVERLAP_SLOTS = 10
"""Slots of the wake index that are read again: two clocks may differ by twice their allowed error."""

WAKE_STEP_MS = 30_000
"""How often the elected worker moves the wake marks. A server that starts reads at most about this much index."""

WAKE_ENTRIES = 512
"""Entries of the wake index read at once."""

WAKE_PERIODS = 64
"""Partitions of the wake index that are read at once when catching up after an outage."""

WAKE_VISITS = 64
"""Buckets that one step of the worker visits on behalf of the index."""

WAKE_ROUNDS = 8
"""Times an entry is written again because the mark had passed it."""

LOOK_AGAIN_MS = 60_000
LOOK_AGAIN_MAXIMUM_MS = 3_600_000
"""How long an unfinished bucket stays unvisited at first, and at most; the pause doubles from visit to visit (R4)."""

MOVE_PATIENCE_MS = 5_000
"""How long a move between queues may stand still before somebody else resumes it."""

# --- background work ----------------------------------------------------------------------------------------------

STEP_MS = 1_000
"""How long a background worker rests when there was nothing to do."""

STEP_IDLE_MS = 5_000
"""How long it rests at most between two steps on a queue in which nothing happens: twice within a lease."""

STEPS_AT_ONCE = 32
"""Queues that one server's background works on at the same time; the others wait for their turn."""

DISCOVERY_SECONDS = 5.0
"""How often a server looks for queues that others have made."""

STEP_SOON_MS = 50
"""How long it rests when there is more to do."""

LEASE_MS = 10_000
"""How long a lease lasts without a beat. A dead worker is replaced after about this long."""

RELUCTANT_LEASES = 6
"""For how many leases a server whose clock is wrong holds on before it stands aside for the time of one."""

LEASE_BEAT_MS = 2_500
"""How often a holder beats: four chances within one lease."""

DUE_SPARE = 64
"""Entries of a lane's heap of looks that may be stale before it is made anew; and as many as there are good ones."""

RANK_SHARE = 8
"""Of so many receives one begins with messages that would otherwise wait for others: of a lower priority, or of a noisy
tenant. Seven eighths for those that come first is nearly all; an eighth is enough that nobody waits for ever."""

RANKS_REMEMBERED = 256
"""Urgent lanes that are gone and whose rank a queue still knows, the newest of them: for dead letters that come back.
They stand in the queue's row, which every server reads every few seconds. Lanes are made anew by operators, a few at a
time."""

NOISY_MESSAGES = 30
"""Messages of one tenant that wait before it counts as noisy: SQS's figure. So many may stand before a quiet tenant's
message, for each noisy tenant and each server that puts."""

NOISY_SHARE = 10
"""A tenant is noisy when its messages are more than one in so many of all that wait: SQS's tenth."""

TENANTS = 1_024
"""Tenants of one queue that a server counts the messages of. At most ten can be noisy at once; who sends that much is
never the one that was silent for longest, and that one is forgotten first."""

TENANT_RUNS = 64
"""Runs of ids, of one tenant in one lane, whose end is remembered: when there are more, two of them become one."""

FAIR_QUEUES = 256
"""Queues whose tenants a server counts; together with the two above some tens of megabytes at worst."""

LANE_VISIT_MS = 10_000
"""How long a server that always finds enough in its own lanes leaves those of others to them: long, as the two meet
there, and not for ever, as another may have no consumers."""

FINAL_BUCKETS = 32
"""Buckets that one repair step makes final."""

FULL_BUCKETS = 1_024
"""Buckets known to be full that a worker remembers: what it makes final within minutes, and a few hundred KiB."""

COUNTING_LOOKS = 4
"""Of so many looks into a full bucket that is being settled, one is thorough: what is left may need more than acks."""

LOW_BUCKETS = 8
"""Unfinished buckets above the repair pointer that every step may look into, so that no bucket waits for another's."""

LOW_PAUSE_MAXIMUM_MS = 30_000
"""How long such a bucket, in which nothing happens, stays unvisited at most."""

FINISHED_BUCKETS = 256
"""Finished buckets that the repair pointer passes in one step."""

DROP_BUCKETS = 32
"""Buckets that one step drops."""

GRAVES = 16
"""Deleted queues that one step looks at."""

DELETED_MARK_SECONDS = 30 * 86_400
"""How long the mark stays that a lane was deleted, after all else of it is gone. What a network, a hint or a suspended
machine brings later than that finds nobody who still remembers the lane."""

GRAVE_PATIENCE_MS = 600_000
"""How long a deletion may take before somebody else finishes it, or takes its note for a mistake."""

MOVES = 100
"""Messages that one step moves to another queue."""

CLOCK_ERROR_MS = 5_000
"""How far a server's clock may be from the store's before it stops expiring and dropping (R5); the error of A2."""

CLOCK_CHECK_MS = 10_000
"""How often a server compares its clock with the store's."""

STATS_BUCKETS = 64
"""Buckets that one look at a queue's statistics reads; beyond that they are estimates, and say so."""

STATS_WAITING_BUCKETS = 4
"""Of these, where not all can be read: buckets of which nothing was handed out. They look alike: to read more of them,
each of which takes milliseconds, would say nothing new."""

PEEK_BUCKETS = 256
"""Buckets that one peek or redrive looks into."""

WATCHED_ROWS = 100_000
"""Invisible messages per lane that a server watches on its own clock (R5); the oldest watches go first."""

# --- fifo queues ----------------------------------------------------------------------------------------------------

LOOK_AHEAD_MESSAGES = 120_000
"""Messages of a fifo lane behind the first unsettled one among which a receive looks: SQS's bound. A server holds their
groups and dates in memory, some 100 bytes each."""

LOG_ROWS = 10_000
"""Rows of a log that one read brings, without their bodies: a bucket at most."""

LOG_BYTES = 1024 * 1024
"""Bodies in one conditional write to a log; one message at least. Cassandra takes a batch of one partition up to half a
commit log segment, and what Paxos agrees on it writes twice."""

OPEN_ROUNDS = 6
"""Times the next bucket of a log is opened under another token, because of the one before nobody knows."""

GROUP_ACKED = 100
"""Acks of a message group that its row remembers, so that who acks again hears of it."""

GROUP_TOUCHED = 1_000
"""Messages of one group that are delivered and not settled: they lie in one row, some 60 bytes each."""

EDIT_ROUNDS = 24
"""Times a change of group states is made anew after others changed them."""

EPOCH_READ_ROWS = 20_000
"""Rows of groups that a server reads at once when it looks. What is beyond, it learns when it is refused."""

EPOCH_ROWS = 10_000
"""Rows of groups that no longer matter before the rest is carried over to a new epoch: as many as a read of them all
may step over."""

EPOCH_LOOK_MS = 60_000
"""How often the elected worker reads the groups of a fifo lane at least, to see whether a new epoch is due."""

GROUPS_AGE_MS = 200
"""How old what is known of the groups may be when a receive finds too little: other servers may have settled what
holds a group up."""

LOW_LOOK_MS = 5_000
"""How often the first unfinished bucket of a fifo lane is looked into, while it does not get finished."""
