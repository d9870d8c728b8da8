"""What a read is refused for that no other room knows."""

from __future__ import annotations

from angelhair.errors import StoreRefused


class DataLost(StoreRefused):
    """What was to be read is gone: its bucket has been dropped since."""
