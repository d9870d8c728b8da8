"""R2: one electorate. Whoever votes, writes and reads must do it among the same replicas, in numbers that overlap.

A keyspace remembers its home data centre and its serial level from the first server on; one that differs would decide
conditional writes among other voters, and both sides could win.
"""

from __future__ import annotations

from collections.abc import Mapping

from cassandra.cluster import Session

from angelhair.errors import StoreRefused
from angelhair.stores.cassandra.schema import settle_meta
from angelhair.stores.cassandra.settings import CassandraSettings

HOME_NAME = "home_data_centre"
SERIAL_NAME = "serial_level"

COPIES_WANTED = 3
"""Below three, one node that is down stops the queue or one disk that dies loses it."""

_FIXED_COUNTS = {"ONE": 1, "LOCAL_ONE": 1, "TWO": 2, "THREE": 3}
_LOCAL = frozenset({"LOCAL_ONE", "LOCAL_QUORUM"})


def check_electorate(session: Session, settings: CassandraSettings, home: str, copies: Mapping[str, int]) -> None:
    """Refuses a server that would vote elsewhere, or read where the writes are not."""
    for name, mine, setting in ((HOME_NAME, home, "data centre"),
                                (SERIAL_NAME, settings.serial_consistency, "serial consistency")):
        remembered = settle_meta(session, settings.keyspace, name, mine)
        if remembered != mine:
            raise StoreRefused(
                f"keyspace {settings.keyspace} is used with {setting} {remembered}, this server is set to {mine}: "
                f"conditional writes would be decided by two electorates. Set {setting} to {remembered}"
            )
    if not levels_overlap(settings.read_consistency, settings.write_consistency, home, copies):
        raise StoreRefused(
            f"reads at {settings.read_consistency} and writes at {settings.write_consistency} with "
            f"{_in_words(copies)} need not meet: a confirmed message could be missed. Use LOCAL_QUORUM for both"
        )
    if settings.serial_consistency == "SERIAL" and len(copies) > 1 and settings.write_consistency in _LOCAL:
        raise StoreRefused(
            f"serial consistency SERIAL spans {_in_words(copies)}, but {settings.write_consistency} confirms in one of "
            "them: use LOCAL_SERIAL, or QUORUM for reads and writes"
        )


def levels_overlap(read: str, write: str, home: str, copies: Mapping[str, int]) -> bool:
    """R + W > RF, in the home data centre or over all."""
    if _acknowledged_at_home(read, home, copies) + _acknowledged_at_home(write, home, copies) > copies.get(home, 0):
        return True
    if _LOCAL & {read, write}:
        return False
    return _acknowledged(read, copies) + _acknowledged(write, copies) > sum(copies.values())


def copies_warnings(home: str, copies: Mapping[str, int]) -> list[str]:
    count = copies.get(home, 0)
    if count >= COPIES_WANTED:
        return []
    said = _count_in_words(count)
    return [f"{said} in data centre {home}: below {COPIES_WANTED}, a single node that fails stops the queues"]


def _acknowledged(level: str, copies: Mapping[str, int]) -> int:
    """How many replicas of all have taken part."""
    if level in _FIXED_COUNTS:
        return _FIXED_COUNTS[level]
    if level == "ALL":
        return sum(copies.values())
    if level == "EACH_QUORUM":
        return sum(_majority(count) for count in copies.values())
    return _majority(sum(copies.values()))


def _acknowledged_at_home(level: str, home: str, copies: Mapping[str, int]) -> int:
    """How many replicas of the home data centre have taken part at least."""
    at_home = copies.get(home, 0)
    if level in {"LOCAL_QUORUM", "EACH_QUORUM"}:
        return _majority(at_home)
    if level == "LOCAL_ONE":
        return 1
    elsewhere = sum(copies.values()) - at_home
    return max(0, _acknowledged(level, copies) - elsewhere)


def _majority(count: int) -> int:
    return count // 2 + 1


def _in_words(copies: Mapping[str, int]) -> str:
    return " and ".join(f"{_count_in_words(count)} in {data_centre}" for data_centre, count in sorted(copies.items()))


def _count_in_words(count: int) -> str:
    return "1 copy" if count == 1 else f"{count} copies"
