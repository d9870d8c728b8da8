"""How databags work: slices and blocks, epochs, serials, locks and looks."""

# --- what an id is made of: fixed, as ids outlive servers ---------------------------------------------------------

BAG_SLICES = 4_096
"""Slices of a databag: the finest that its id space is cut into, and so the most partitions. A partition is a run of
them, so any number of partitions is cut without moving a row; with 1,000 partitions they differ by a quarter."""

BAG_BLOCKS = 16
"""Storage partitions side by side, each a sixteenth of the slices. An empty databag is looked through with so many
reads; each serves some hundred batches a second on Cassandra, where changes of one partition wait for each other."""

BAG_EPOCH_BITS = 16
"""Of an epoch's number, in an id: the last 65,536 epochs of a block are told apart, hundreds of times what can be
there."""

BAG_SERIAL_BITS = 35
"""Of the number that makes an id the only one: 34 thousand million before one comes again, in another epoch by then."""

# --- how they work ------------------------------------------------------------------------------------------------

BAG_PARTITIONS_LEAST = 1_000
BAG_PARTITIONS_MOST = 4_096
"""Between which a databag's partitions move unless its settings say otherwise. More of them cost nothing to look
through, as neighbours are read and locked together; with fewer a databag that nobody has tuned is slow."""

BAG_GIVEN = 2_048
"""Messages that one serving gives of a run: so many ids at most are in a lock's row, and the locks of a block, of which
there are as many as it has slices, are never more than is read at once (`SMALL_BYTES`)."""

BAG_SYNC_MS = 30_000
"""How often a server takes over the settings and the number of partitions of a databag, unless it is told otherwise."""

BAG_SYNC_MINIMUM_MS = 100
BAG_SYNC_MAXIMUM_MS = 3_600_000
"""What it may be told: a sync is two reads for each databag; and a look at what waits behind its locks, where receives
got less than they asked for since the last one."""

BAG_SERIALS = 65_536
"""Serials that a server takes at a time, with one conditional write. Those that it has left when it dies are void."""

BAG_PUT_MESSAGES = 20
"""Messages of a group that go to one block, which costs one write; if there are more they are spread over several."""

BAG_EPOCH_MESSAGES = 1_024
"""Messages and deletes of an epoch of a block after which it is sealed. With 64 partitions some 128 messages lie in
each: what one look passes over, at most, that is deleted already. Its end takes four conditional writes, so a message a
hundredth of one."""

BAG_MESSAGE_BYTES = 4 * 1024
"""A message counts as one more there for every so many bytes: an epoch of a block holds some 4 MiB, which a look reads
in a few pages, though all of it may be deleted."""

BAG_EPOCHS_MANY = 16
"""For every so many epochs of a block that are sealed and not finished, the next one holds twice as many: a long
backlog is few epochs, all of which a put reads the numbers of."""

BAG_OVER_PARTS = 64
"""Finished epochs are kept together, and go together, that were finished within this part of the time for which they
are kept. So about as many groups are there, however many epochs; and each is there a sixty-fourth longer at most."""

BAG_DROPPED_EPOCHS = 64
"""Epochs of such a group that are dropped in one step."""

BAG_EPOCH_AGE_MS = 600_000
"""After so long an epoch with messages is sealed however few they are, so that they go when they are deleted."""

BAG_STATE_AGE_MS = 1_000
"""For how long a server believes what it knows of a block's epochs (R4): messages of a new one are seen after that."""

BAG_LOOK_ROWS = 64
BAG_LOOK_MOST_ROWS = 1_024
"""Rows that a look reads at least: a batch of ten, with as many that are deleted, is one read. Where more of them are
deleted each read brings twice as many as the one before, up to the second."""

BAG_LOOK_BYTES = 1024 * 1024
"""What the rows of one read may come to, by the size that rows have been."""

BAG_LOOK_EPOCHS = 256
"""Epochs that are read at once where little is expected, of all that is looked at: sixteen of each block. If there are
more, twice as many each time."""

BAG_GAP_BYTES = 8 * 1024
BAG_ROW_BYTES = 1024
"""What lies between two groups of partitions that are read with one range may come to the first on average, with the
second at least for a row: to read that takes a store about as long as to read them one by one."""

BAG_CROWDED_MS = 30_000
"""For how long a server remembers that much lies between the unlocked partitions of a block, behind locks: it looks at
them one by one, and not at all of the block."""

BAG_GROUP_PARTITIONS = 256
"""Neighbouring partitions that one look reads together: all of a block's."""

BAG_OTHERS_TURN = 8
"""One of so many receives begins with the partitions of other servers: consumers may have their connections to one
server only, and what lies with the others is to be served, too."""

BAG_PASSED_SERVINGS = 4
"""Of so many servings of a partition that begin behind messages which nobody has deleted, one comes back to these; and
the first does where it comes so many time-outs after the one that failed. So what failed once is served again soon,
whatever comes behind it; and what always fails takes about a quarter of the servings, however much there is of it."""

BAG_ROUNDS = 12
"""Times that one receive looks for further messages, and begins again after others were faster."""

BAG_FINISH_EPOCHS = 2
"""Sealed epochs of a block that a step reads to see whether they are over, beside those that looks have found empty:
the next ones the next time."""

BAG_FINISH_ROWS = 1_000
"""Rows that one read brings of an epoch that may be finished; no bodies."""

BAG_FINISH_PAGES = 8
"""Such reads in one step, so that no epoch holds up the others."""

BAG_STEP_MS = 1_000
"""How often a server steps a databag."""

BAG_TEND_MS = 5_000
"""How often it looks at blocks of which it has not heard that something is to be done."""

BAG_COUNTED = 2_000
"""Rows of a block that statistics count; if there are more, they say that they are not exact."""

BAG_DELETED = 10_000
"""Deletes that a server remembers to have confirmed, so that it gives none of these messages though it had read them
before."""
