"""Where what is put once is written down (R10), whatever the kind of queue: pending until it is put, committed then."""

from __future__ import annotations

import hashlib

from angelhair.engine import places
from angelhair.engine.store import Partition

PENDING, COMMITTED = "pending", "committed"


def key_partition(incarnation: str, key: str) -> Partition:
    """By the key's hash, never by time."""
    digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    return places.idempotency_key(incarnation, digest)
