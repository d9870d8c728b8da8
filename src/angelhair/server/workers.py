"""Background work: calls the engine's steps and sleeps in between. Nothing else in the tree sleeps."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import Context
from typing import Any

from angelhair import limits
from angelhair.engine.delays import is_line
from angelhair.engine.engine import Engine
from angelhair.engine.holding import holdings
from angelhair.engine.members import Member, Presence
from angelhair.errors import QueueNotFound, StoreError

_log = logging.getLogger(__name__)


Place = tuple[str, str]
"""A queue: its account, and its name."""


class Workers:
    """One task per queue, each stepping at its own pace; one that finds the queues; one that buries deleted ones; one
    that tells other servers that this one is there.

    `account` is whose queues are meant where nobody says."""

    def __init__(
        self, engine: Engine, account: str, accounts: Callable[[], Awaitable[Iterable[str]]] | None = None
    ) -> None:
        """`accounts`: whose queues are looked for; those of all accounts, where nobody says."""
        self._engine = engine
        self._account = account
        self._accounts = accounts or engine.list_accounts
        self._queues: dict[Place, _Pace] = {}
        self._lines_looked_at: dict[str, str] = {}
        """By account: the last delay line of which it was looked whether its queue is still there."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(limits.STEPS_AT_ONCE)
        self.steps = 0

    def start(self, names: Iterable[str], account: str | None = None) -> None:
        """Works on these queues, until they are deleted; and buries what deleted ones held."""
        for name in names:
            queue = (account or self._account, name)
            if queue not in self._queues:
                self._queues[queue] = _Pace()
                self._spawn(self._work(queue), f"worker of {name}")
        if not any(task.get_name() == "gravedigger" for task in self._tasks):
            self._spawn(self._bury(), "gravedigger")

    def discover(self) -> None:
        """Works on every queue of every account, also those that other servers will make."""
        self.start(())
        self._spawn(self._discover(), "discovery")

    def announce(self, presence: Presence) -> None:
        """Is one of the cluster's servers, until it stops."""
        self._spawn(self._be_there(presence), "membership")

    def wake(self, name: str, account: str | None = None) -> None:
        """Something happens in this queue: its background work keeps pace."""
        pace = self._queues.get((account or self._account, name))
        if pace is not None:
            pace.hurry()

    @property
    def queues(self) -> list[Place]:
        return list(self._queues)

    async def stop(self, release: bool = True) -> None:
        """Ends the work, says goodbye to other servers and gives the leases back, so that none need wait for them to
        lapse; all of this server's, so whoever else works with them has to have stopped, or does it in our place
        (`release` is False)."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._queues.clear()
        if release:
            with contextlib.suppress(StoreError):
                # One write, after which others may take all the leases, however many there are to be given back.
                await self._engine.membership.leave()
            with contextlib.suppress(StoreError):
                await self._engine.release_leases()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, queue: Place) -> None:
        pace = self._queues[queue]
        try:
            while True:
                async with self._turns:
                    pause_ms = await self._step(queue)
                if pause_ms is None:
                    return
                await pace.rest(pause_ms)
        finally:
            if self._queues.get(queue) is pace:
                del self._queues[queue]

    async def _step(self, queue: Place) -> int | None:
        """In how long to come back; None when the queue is gone. The discovery finds it if it is made again."""
        self.steps += 1
        try:
            return await self._engine.step(*queue)
        except QueueNotFound:
            return None
        except StoreError as error:
            _log.warning("background work on %s waits for the store: %s", queue[1], error)
        except Exception:  # noqa: BLE001 - see below
            # A queue whose repair has stopped loses its promises one by one: better a noisy log than a dead task.
            _log.exception("background work on %s met an error that it does not know; it goes on", queue[1])
        return limits.STEP_MS

    async def _be_there(self, presence: Presence) -> None:
        membership = self._engine.membership
        while True:
            before = membership.members.alive
            try:
                await membership.step(presence, holdings(self._engine.memory))
            except StoreError as error:
                _log.warning("telling other servers of this one waits for the store: %s", error)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("telling other servers of this one met an error that it does not know; it goes on")
            _log_changes(before, membership.members.alive, membership.id)
            await asyncio.sleep(limits.MEMBER_BEAT_MS / 1000)

    async def _discover(self) -> None:
        while True:
            try:
                for account in {self._account, *await self._accounts()}:
                    await self._discover_in(account)
            except StoreError as error:
                _log.warning("looking for queues waits for the store: %s", error)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("looking for queues met an error that it does not know; it goes on")
            await asyncio.sleep(limits.DISCOVERY_SECONDS)

    async def _discover_in(self, account: str) -> None:
        lines: list[str] = []
        after, more = None, True
        while more:
            names, more = await self._engine.list_queues(account, after=after)
            self.start([name for name in names if not is_line(account, name)], account)
            lines += [name for name in names if is_line(account, name)]
            after = names[-1] if names else None
        await self._bury_orphans(account, lines)

    async def _bury_orphans(self, account: str, lines: list[str]) -> None:
        """Some at a time, and all in turn."""
        reached = self._lines_looked_at.get(account, "")
        some = [line for line in lines if line > reached][: limits.DELAY_LINE_ORPHANS]
        for line in some:
            if await self._engine.bury_orphan(account, line):
                _log.info("the delay line %s was left behind by a queue that is gone", line)
        self._lines_looked_at[account] = some[-1] if some else ""

    async def _bury(self) -> None:
        while True:
            more = False
            try:
                more = await self._engine.bury_step()
            except StoreError as error:
                _log.warning("dropping deleted queues waits for the store: %s", error)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("dropping deleted queues met an error that it does not know; it goes on")
            await asyncio.sleep((limits.STEP_SOON_MS if more else 10 * limits.STEP_MS) / 1000)


def _log_changes(before: Iterable[Member], after: Iterable[Member], own: str) -> None:
    """For who looks for it: that servers come and go is no complaint, and a metric says how many there are."""
    was, now = {member.id: member for member in before}, {member.id: member for member in after}
    for identity in now.keys() - was.keys() - {own}:
        _log.debug("server %s is there, at %s", identity, now[identity].presence.address)
    for identity in was.keys() - now.keys() - {own}:
        _log.debug("server %s, at %s, is gone", identity, was[identity].presence.address)


class _Pace:
    """How fast one queue is worked on: as its steps ask for while something happens, ever slower while nothing does."""

    def __init__(self) -> None:
        self._idle_ms = limits.STEP_MS
        self._active = asyncio.Event()

    def hurry(self) -> None:
        """Something happens. Ends a long rest; the short one between two steps is always kept."""
        self._active.set()

    async def rest(self, pause_ms: int) -> None:
        if pause_ms < limits.STEP_MS or self._active.is_set():
            self._idle_ms = limits.STEP_MS
        long_ms = max(pause_ms, self._idle_ms)
        self._idle_ms = min(2 * self._idle_ms, limits.STEP_IDLE_MS)
        self._active.clear()
        await asyncio.sleep(pause_ms / 1000)
        if long_ms > pause_ms >= limits.STEP_MS:
            # Not `wait_for`: Python 3.11's swallows a cancellation that meets the event; `stop` would wait for ever.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout((long_ms - pause_ms) / 1000):
                    await self._active.wait()
