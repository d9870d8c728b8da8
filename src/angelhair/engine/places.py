"""Where things lie: the one file that spells partition and row keys.

Every key carries the queue's incarnation (R6): a queue made again under its name shares no row with the old one.
"""

from angelhair import limits
from angelhair.engine.schema import (
    ACCESS_KEYS,
    ACCOUNTS,
    BAG_EPOCHS,
    BAG_LOCKS,
    BAG_MESSAGES,
    BODIES,
    CONSUMERS,
    DUES,
    GRAVES,
    GROUPS,
    KEYS,
    LEASES,
    LEDGER,
    LOGS,
    MEMBERS,
    PARTS,
    POINTERS,
    QUEUES,
    SEQUENCES,
    SHARDS,
    STATES,
    SUBSCRIPTIONS,
    TOPICS,
    WAKES,
)
from angelhair.engine.store import Partition

SEQUENCE_ROW = "ids"
SHARD_ROW = "shard"
GRAVEYARD = Partition(GRAVES, "all")
ALL_ACCOUNTS = Partition(ACCOUNTS, "all")
ALL_KEYS = Partition(ACCESS_KEYS, "all")
TOPIC_GRAVEYARD = Partition(GRAVES, "topics")


def account_queues(account: str) -> Partition:
    return Partition(QUEUES, account)


def account_topics(account: str) -> Partition:
    return Partition(TOPICS, account)


def subscriptions(incarnation: str) -> Partition:
    return Partition(SUBSCRIPTIONS, incarnation)


def sequence(incarnation: str, lane: int) -> Partition:
    return Partition(SEQUENCES, f"{incarnation}.{lane}")


def pointers(incarnation: str, lane: int) -> Partition:
    return Partition(POINTERS, f"{incarnation}.{lane}")


def leases(incarnation: str, lane: int) -> Partition:
    return Partition(LEASES, f"{incarnation}.{lane}")


def bodies(incarnation: str, lane: int, bucket: int) -> Partition:
    return Partition(BODIES, f"{incarnation}.{lane}.{bucket}")


def states(incarnation: str, lane: int, bucket: int) -> Partition:
    return Partition(STATES, f"{incarnation}.{lane}.{bucket}")


def log(incarnation: str, lane: int, bucket: int) -> Partition:
    return Partition(LOGS, f"{incarnation}.{lane}.{bucket}")


def groups(incarnation: str, lane: int, epoch: int) -> Partition:
    return Partition(GROUPS, f"{incarnation}.{lane}.{epoch}")


def wakes(incarnation: str, lane: int, period: int) -> Partition:
    return Partition(WAKES, f"{incarnation}.{lane}.{period}")


def dues(incarnation: str, lane: int, part: int) -> Partition:
    return Partition(DUES, f"{incarnation}.{lane}.{part}")


def spans(incarnation: str, lane: int) -> Partition:
    return Partition(PARTS, f"{incarnation}.{lane}")


def parts(incarnation: str, lane: int, span: int) -> Partition:
    return Partition(PARTS, f"{incarnation}.{lane}.{span}")


def shard(incarnation: str, lane: int) -> Partition:
    return Partition(SHARDS, f"{incarnation}.{lane}")


def consumers(incarnation: str) -> Partition:
    return Partition(CONSUMERS, incarnation)


def bag_messages(incarnation: str, block: int, epoch: int) -> Partition:
    return Partition(BAG_MESSAGES, f"{incarnation}.{block}.{epoch}")


def bag_epochs(incarnation: str) -> Partition:
    return Partition(BAG_EPOCHS, incarnation)


def bag_locks(incarnation: str, block: int) -> Partition:
    return Partition(BAG_LOCKS, f"{incarnation}.{block}")


def members(cluster: str, group: int) -> Partition:
    return Partition(MEMBERS, f"{cluster}.{group}")


def idempotency_key(incarnation: str, key_hash: str) -> Partition:
    return Partition(KEYS, f"{incarnation}.{key_hash}")


def resting_names(account: str) -> Partition:
    """Among keys, which lapse by themselves too; no incarnation begins like this."""
    return Partition(KEYS, f"resting.{account}")


def ledger(incarnation: str, writer_hash: str) -> Partition:
    return Partition(LEDGER, f"{incarnation}.{writer_hash}")


def wake_slot(time_ms: int) -> int:
    """The first slot that begins at or after this time: who looks at its beginning finds the message visible."""
    return -(-time_ms // limits.WAKE_SLOT_MS)


def wake_period(slot: int) -> int:
    return slot // limits.WAKE_PERIOD_SLOTS


def wake_row(slot: int, bucket: int, server: str) -> str:
    """One row per server: each knows its own without looking, and looks into the others'."""
    return f"{slot:014d}.{bucket:019d}.{server}"


def read_wake_row(key: str) -> tuple[int, int, str]:
    slot, bucket, server = key.split(".", 2)
    return int(slot), int(bucket), server


def slot_rows(first_slot: int, last_slot: int) -> tuple[str, str]:
    """The ends of a span that holds every row of these slots."""
    return f"{first_slot:014d}.", f"{last_slot:014d}.~"
