"""SIGTERM and SIGINT as a request to stop, for as long as a consumer runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stopping_on_signals(stop: Callable[[], None], wanted: bool) -> Iterator[None]:
    """Python allows this in the main thread only. What was set before is set again afterwards."""
    numbers = (signal.SIGTERM, signal.SIGINT) if wanted else ()
    before = [(number, signal.signal(number, lambda *_: stop())) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
