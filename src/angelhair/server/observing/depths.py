"""Looks at the depths of queues in the background, so that nobody who scrapes makes the store work.

One queue at a time, in rounds; after each look a rest many times as long as it took. What a server does not look after,
it says nothing about.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable

from angelhair import limits
from angelhair.engine.counts import Stats
from angelhair.errors import QueueNotFound, StoreError
from angelhair.server.observing.measured_engine import MeasuredEngine, TimelineSeen
from angelhair.server.observing.observer import Observer
from angelhair.server.workers import Place

_log = logging.getLogger(__name__)


class Depths:
    """To be made inside a running loop. `queues` says which queues there are, `label` what the observer calls one."""

    def __init__(
        self, engine: MeasuredEngine, label: Callable[[str, str], str], queues: Callable[[], Iterable[Place]],
        observer: Observer,
    ) -> None:
        self._engine = engine
        self._label = label
        self._queues = queues
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        self._round: list[tuple[str, Place]] = []
        self._round_begun = 0.0
        self._known: set[str] = set()
        self._archived: dict[str, tuple[int, float]] = {}
        """By queue: how far it was in the lake, and since when it has not come further, or was said so."""
        self._aside: dict[str, tuple[int, int]] = {}
        """By timeline: how many messages were known to be set aside."""
        self._missing: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._loop.create_task(self._run(), name="depths")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def step(self) -> float:
        """One look at one queue; returns for how many seconds to rest."""
        if not self._round:
            self._begin_round()
        if not self._round:
            return limits.DEPTH_ROUND_SECONDS
        begun = self._loop.time()
        await self._look(*self._round.pop())
        now = self._loop.time()
        rest = max(limits.DEPTH_REST_SECONDS, (now - begun) * limits.DEPTH_REST)
        if not self._round:
            rest = max(rest, self._round_begun + limits.DEPTH_ROUND_SECONDS - now)
        return rest

    def _begin_round(self) -> None:
        self._round_begun = self._loop.time()
        named = sorted((self._label(*queue), queue) for queue in self._queues())
        names = [name for name, _ in named]
        for gone in self._known.difference(names):
            self._forget(gone)
        # Deleted through another server, or by another process of this one. Twice in a row: a new queue may be used
        # before its background work has found it.
        missing = self._observer.queues.difference(names)
        for gone in missing & self._missing:
            self._observer.forget_queue(gone)
            self._aside.pop(gone, None)
        self._missing = missing
        self._round = named[::-1]

    async def _look(self, name: str, queue: Place) -> None:
        stats, timeline, databag = None, None, None
        if name not in self._known and len(self._known) >= limits.METRICS_QUEUES:
            return
        try:
            stats = await self._engine.depth(*queue)
            timeline = await self._engine.timeline(*queue)
            databag = await self._engine.databag(*queue)
        except QueueNotFound:
            pass
        except StoreError as error:
            _log.debug("the depth of %s waits for the store: %s", name, error)
        except Exception:  # noqa: BLE001 - a figure less is no reason to lose all others
            _log.exception("the depth of %s met an error that it does not know; it goes on", name)
        if timeline is not None:
            self._tell_timeline(name, timeline)
        if stats is None:
            self._forget(name)
        else:
            self._known.add(name)
            self._observer.depth(name, stats)
            if databag is not None:
                self._observer.databag(name, databag)
            self._watch_archive(name, stats)

    def _tell_timeline(self, name: str, seen: TimelineSeen) -> None:
        aside, dead = self._aside.get(name, (0, 0))
        if seen.aside < aside or seen.dead < dead:
            # Another queue of this name.
            aside = dead = 0
        self._aside[name] = (seen.aside, seen.dead)
        self._observer.timeline(name, seen.shards_held, seen.lag_ms / 1000, seen.aside - aside, seen.dead - dead)

    def _watch_archive(self, name: str, stats: Stats) -> None:
        """Says when a queue fills the store because nobody archives it."""
        now = self._loop.time()
        archived, since = self._archived.get(name, (-1, now))
        if not stats.unarchived or archived != stats.archived:
            since = now
        elif now - since >= limits.ARCHIVE_PATIENCE_SECONDS:
            since = now
            _log.warning(
                "%s: %d finished buckets are kept until they are archived, and the archive mark has not moved for %d "
                "hours; is `angelhair pipeline archive` running?",
                name, stats.unarchived, limits.ARCHIVE_PATIENCE_SECONDS // 3_600,
            )
        self._archived[name] = (stats.archived, since)

    def _forget(self, name: str) -> None:
        self._archived.pop(name, None)
        if name in self._known:
            self._known.discard(name)
            self._observer.depth_unknown(name)

    async def _run(self) -> None:
        while True:
            rest_seconds = await self.step()
            await asyncio.sleep(rest_seconds)
