"""What Amazon SQS allows: a client that is used to SQS finds the same bounds here, and the same refusals at them."""

# --- the SQS door: queues ---------------------------------------------------------------------------------------------

AWS_QUEUE_NAME_LENGTH = 80
"""Characters in a queue's name, `.fifo` included."""

AWS_DELAY_MAXIMUM_SECONDS = 900
"""A delay, of a queue or of a message. REST allows a century; SQS's clients count on the refusal."""

AWS_MESSAGE_SIZE_MINIMUM_BYTES = 1_024
AWS_MESSAGE_SIZE_MAXIMUM_BYTES = 1_048_576
"""What `MaximumMessageSize` may be: of a message with its attributes, and the upper one also of a whole batch."""

AWS_RETENTION_MINIMUM_SECONDS = 60
AWS_RETENTION_MAXIMUM_SECONDS = 1_209_600
"""What `MessageRetentionPeriod` may be: a minute to two weeks."""

AWS_WAIT_MAXIMUM_SECONDS = 20
"""How long a receive may wait."""

AWS_VISIBILITY_MAXIMUM_SECONDS = 43_200
"""For how long a message may be hidden: twelve hours."""

AWS_KEY_REUSE_MINIMUM_SECONDS = 60
AWS_KEY_REUSE_MAXIMUM_SECONDS = 86_400
"""What `KmsDataKeyReusePeriodSeconds` may be."""

AWS_RECEIVES_MAXIMUM = 1_000
"""What `maxReceiveCount` of a redrive policy may be."""

AWS_RECEIVES_DEFAULT = 10
"""What it is when the policy does not say."""

AWS_REDRIVE_SOURCES = 10
"""Queues that a `RedriveAllowPolicy` may name."""

AWS_POLICY_STATEMENTS = 20
"""Statements in a queue's policy."""

AWS_POLICY_ACTIONS = 7
"""Actions in one statement that AddPermission makes."""

AWS_LABEL_LENGTH = 80
"""Characters in the label of a permission."""

AWS_TAGS = 50
"""Tags of a queue: what Amazon recommends as the most, and other services of theirs refuse to exceed."""

AWS_TAG_KEY_LENGTH = 128
AWS_TAG_VALUE_LENGTH = 256
"""Characters in a tag's key and in its value."""

AWS_LIST_MAXIMUM = 1_000
"""Queues in one page of a listing."""

AWS_NEXT_TOKEN_LENGTH = 4_096
"""Characters in a page's token. Ours are names of queues, well below; this only keeps the absurd out."""

AWS_NAME_REST_SECONDS = 60
"""For how long the name of a deleted queue is taken, if the queue asked for that; others are free at once."""

AWS_PURGE_PAUSE_SECONDS = 60
"""Between two purges of one queue."""

AWS_IN_FLIGHT = 120_000
AWS_IN_FLIGHT_MAXIMUM = 1_000_000_000
"""Messages of a queue that may be in flight before SQS gives no more: as at Amazon, and the most that
`Angelhair.InFlightLimit` may say in its place. Above that, 0 is plainer: no limit."""

AWS_IN_FLIGHT_COUNT_SECONDS = 1.0
AWS_IN_FLIGHT_LOOK_SECONDS = 10.0
"""How often those in flight are counted: at most where the limit is reached, at least where receives have used half of
it: a count reads up to 64 buckets, and knows what other servers handed out."""

AWS_IN_FLIGHT_QUEUES = 10_000
"""Queues of which a server remembers how many messages are in flight. One that is forgotten is counted again."""

# --- the SQS door: messages -------------------------------------------------------------------------------------------

AWS_BATCH_ENTRIES = 10
"""Entries in a batch, and messages in one receive."""

AWS_ENTRY_ID_LENGTH = 80
"""Characters in the id of a batch's entry."""

AWS_MESSAGE_ATTRIBUTES = 10
"""Attributes of one message."""

AWS_ATTRIBUTE_NAME_BYTES = 255
AWS_ATTRIBUTE_TYPE_BYTES = 255
"""A message attribute's name, and its type with its label: both must be shorter than 256 bytes."""

AWS_GROUP_ID_LENGTH = 128
"""Characters in a message group id, a deduplication id and a receive attempt id."""

AWS_FIFO_LANES = 4
"""Lanes of a FIFO queue whose keys need to be known in their groups only: servers put to different ones at once."""

AWS_MOVE_RATE_MAXIMUM = 500
"""Messages a second that a move task may be held to."""

AWS_MOVE_TASKS_LISTED = 10
"""Move tasks in one listing, and how many are remembered."""

AWS_MOVE_PAUSE_SECONDS = 1.0
"""How often a move task moves a portion and says how far it is: its rate is by the second."""

AWS_MOVE_LOOK_SECONDS = 5.0
AWS_MOVE_TAKEOVER_SECONDS = 15.0
"""How often a server looks at tasks of others, and for how long one must have stood still before it is taken over."""

# --- the SQS door: requests -------------------------------------------------------------------------------------------

AWS_QUEUE_URL_LENGTH = 1_024
"""Characters in a queue's URL: the longest host name, account and queue name three times over. They are remembered."""

AWS_FORM_PARAMETERS = 4_096
"""Parameters of one request in the Query protocol. A batch of ten with ten attributes each has 350."""

AWS_FORM_INDEX_DIGITS = 6
"""Digits in the number of a list's item in the Query protocol: a longer one is no number that anybody counts to."""

AWS_ECHO_LENGTH = 1_024
"""Characters of a wrong value that are repeated in the refusal: a receipt fits, a message of a megabyte does not."""
