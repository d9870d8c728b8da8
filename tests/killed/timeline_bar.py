"""The bar for timelines, played on any server: six workers for six shards, and what may happen to them."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from angelhair import Client, limits
from angelhair.client import Timeline
from tests.killed.timeline_crew import PATIENCE_SECONDS, Crew, holders, put_over, soon, until

SHARDS = 6
NAMES = tuple(f"worker-{number}" for number in range(SHARDS))
TAKEOVER_SECONDS = 5.0
"""Beyond the lock: so soon somebody else works on the shards of one who is gone."""


@dataclass(frozen=True)
class Bar:
    messages: int
    seconds: float
    """Over which they are due."""
    lock_seconds: float
    lead_seconds: float = 5.0
    """From the beginning of the puts to when the first is due."""
    patience_seconds: float = PATIENCE_SECONDS
    """For all of them to be processed."""


@dataclass
class Report:
    queue: str
    messages: int
    again: int
    incidents: int
    killed_again: int
    stopped_again: int
    put_seconds: float
    late_seconds: float
    lags_ms: list[int]
    """By how much each message was late when it was handled first, in order."""
    complaints: list[str]

    def lag_seconds(self, share: float) -> float:
        """Not exceeded by this share of the messages."""
        return self.lags_ms[min(len(self.lags_ms) - 1, int(share * len(self.lags_ms)))] / 1_000

    def __str__(self) -> str:
        return (
            f"timeline: {self.messages:,} messages, all processed; {self.again} processed again in {self.incidents} "
            f"incidents (window {limits.TIMELINE_WINDOW}): {self.killed_again} after the kill, {self.stopped_again} "
            f"after the stop; put in {self.put_seconds:.1f} s, the last processed {self.late_seconds:.1f} s after the "
            f"last was due; late by {self.lag_seconds(0.5):.2f} s (p50), {self.lag_seconds(0.99):.2f} s (p99), "
            f"{self.lag_seconds(1):.2f} s (worst)"
        )


def make(client: Client, bar: Bar) -> Timeline:
    name = f"bar-{uuid4().hex[:8]}"
    client.create_queue(name, kind="timeline", shards=SHARDS, producer_delay=0.5, lock=bar.lock_seconds)
    return client.timeline(name)


def each_has_one(timeline: Timeline, names: Sequence[str] = NAMES) -> bool:
    return sorted(str(holder) for holder in holders(timeline).values()) == sorted(names)


def play_incidents(client: Client, urls: Sequence[str], folder: Path, bar: Bar) -> Report:
    timeline = make(client, bar)
    with Crew(folder, timeline.name) as crew:
        for number, name in enumerate(NAMES):
            crew.start(urls[number % len(urls)], name)
        until(lambda: each_has_one(timeline), "every one of six that start together gets a shard")
        began, start = time.monotonic(), soon(bar.lead_seconds)
        put_over(timeline, 0, bar.messages, start, bar.seconds)
        put_seconds = time.monotonic() - began
        until(lambda: len(crew.handled()) >= bar.messages // 4, "a quarter is processed", bar.patience_seconds)
        # Those who have done most: on a busy machine another may have lost its shard before it did anything.
        gone = sorted(NAMES, key=lambda name: len(crew.members[name].handled()))[-2:]
        killed, stopped = (crew.members[name] for name in gone)
        killed.signal(signal.SIGKILL)
        stopped.signal(signal.SIGSTOP)
        lost = {*killed.handled(), *stopped.handled()}
        stopped_at = time.monotonic()
        until(lambda: not any(holder in gone for holder in holders(timeline).values()), "others take their shards",
              bar.lock_seconds + TAKEOVER_SECONDS + bar.seconds)
        until(lambda: time.monotonic() - stopped_at > 1.5 * bar.lock_seconds, "it was stopped for longer than its lock")
        seen = len(stopped.handled())
        stopped.signal(signal.SIGCONT)
        until(lambda: len(crew.handled()) == bar.messages, "every message is processed", bar.patience_seconds)
        late_seconds = time.monotonic() - began - bar.lead_seconds - bar.seconds
        handled = crew.handled()
        woken = stopped.handled()[seen:]
        killed_again = sum(handled[number] - 1 for number in set(killed.handled()))
        stopped_again = sum(handled[number] - 1 for number in {*stopped.handled()[:seen], *woken})
        lags_ms = crew.lags_ms()
    again = sum(handled.values()) - bar.messages
    window = limits.TIMELINE_WINDOW
    fences = [shard.fence for shard in timeline.shards()]
    wanted = {
        "all were processed, and nothing else": set(handled) == set(range(bar.messages)),
        f"after the kill at most {window} came again": killed_again <= window,
        f"after the stop at most {window} came again": stopped_again <= window,
        f"in all at most {2 * window} came again": again <= 2 * window,
        "nothing was handled before it was due": lags_ms[0] >= 0,
        "those who were killed and stopped had done something before": bool(lost),
        "who was stopped knows that it was (W9)": "may have lost its shards" in stopped.complaints.read_text(),
        "shards changed hands": sum(fences) > SHARDS,
    }
    return Report(
        timeline.name, bar.messages, again, 2, killed_again, stopped_again, put_seconds, late_seconds, lags_ms,
        [what for what, holds in wanted.items() if not holds],
    )


def play_sharing(client: Client, url: str, folder: Path, bar: Bar) -> str:
    """Three for six shards work on all; a seventh waits, and takes over when one is killed."""
    timeline = make(client, bar)
    with Crew(folder, timeline.name) as crew:
        crew.start(url, *NAMES[:3])
        until(lambda: sorted(map(str, holders(timeline).values())) == sorted(NAMES[:3] * 2), "three hold two each")
        put_over(timeline, 0, 60, soon(1.0), 12.0)
        until(lambda: len(crew.handled()) == 60, "all six shards are worked on")
        crew.start(url, *NAMES[3:])
        shared_seconds = until(lambda: each_has_one(timeline), "those who come later get their share")
        crew.start(url, "seventh")
        until(lambda: crew.members["seventh"].process.poll() is None and each_has_one(timeline), "the seventh waits")
        time.sleep(bar.lock_seconds / 2)
        assert "seventh" not in holders(timeline).values()
        crew.members[NAMES[2]].signal(signal.SIGKILL)
        wanted = (*NAMES[:2], *NAMES[3:], "seventh")
        taken_seconds = until(lambda: each_has_one(timeline, wanted), "the seventh takes over",
                              bar.lock_seconds + TAKEOVER_SECONDS)
    return (
        f"timeline: three more workers had their share after {shared_seconds:.1f} s; the seventh took over "
        f"{taken_seconds:.1f} s after a kill, with a lock of {bar.lock_seconds:g} s"
    )
