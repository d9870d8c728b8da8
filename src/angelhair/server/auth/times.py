"""Times as signatures have them: 20150830T123600Z."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_STAMP = re.compile("[0-9]{8}T[0-9]{6}Z")
_FORMAT = "%Y%m%dT%H%M%SZ"


def seconds_of(stamp: str) -> int | None:
    """Seconds since 1970; None when it is no time of this form."""
    return None if _STAMP.fullmatch(stamp) is None else _seconds(stamp)


@lru_cache(maxsize=64)
def _seconds(stamp: str) -> int | None:
    """Kept, since all requests of one second have the same."""
    year, month, day = int(stamp[:4]), int(stamp[4:6]), int(stamp[6:8])
    try:
        moment = datetime(year, month, day, int(stamp[9:11]), int(stamp[11:13]), int(stamp[13:15]), tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp())


def stamp_of(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime(_FORMAT)
