"""What a read or a write is refused for."""

from __future__ import annotations

from angelhair.errors import InvalidRequest, StoreRefused


def refused(option: str, why: str) -> InvalidRequest:
    return InvalidRequest(option, why)


class DataLost(StoreRefused):
    """What was to be read is gone: its bucket has been dropped since."""
