"""The access keys that a server knows: read from the store when it starts, and again when they have changed.

Requests are judged by what is in memory. So a store that is away locks nobody out; and a key that was disabled works
until the next look, some seconds at most while the store answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextvars import Context
from typing import Any

from angelhair import limits
from angelhair.engine import accounts
from angelhair.engine.accounts import Key
from angelhair.engine.store import Store
from angelhair.errors import StoreError
from angelhair.server.audit import Audit
from angelhair.server.auth import AccessKey

_log = logging.getLogger(__name__)


class Keyring:
    """To be made inside a running loop, and loaded before the first request."""

    def __init__(self, store: Store, audit: Audit) -> None:
        self._store = store
        self._audit = audit
        self._loop = asyncio.get_running_loop()
        self._version = -1
        self._keys: dict[str, AccessKey] = {}
        self._coming: asyncio.Task[None] | None = None
        """A look that has not begun yet."""
        self._may_look_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self.enforced = False
        """Whether requests have to be signed: from the first key on that there is, disabled or not, and until this
        server ends. Losing the last key must not open the doors."""

    async def load(self) -> None:
        """Raises `StoreError`: a server that cannot know whether there are keys must not serve."""
        await self._read()

    def start(self) -> None:
        self._spawn(self._watch())

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def find(self, key_id: str) -> AccessKey | None:
        return self._keys.get(key_id)

    async def look_for(self, key_id: str) -> AccessKey | None:
        """A key that is not known here may be new. Looks are rare: who comes too soon after one waits for the next,
        with all others who do."""
        if self._coming is None:
            self._coming = self._spawn(self._look_soon())
        # Who asked may go away; the others still want to know.
        await asyncio.shield(self._coming)
        return self.find(key_id)

    async def glance(self) -> None:
        """For who is not asked for a key and shows one: perhaps there are some by now. Nobody waits for that."""
        if self._coming is None and self._loop.time() >= self._may_look_at:
            await self.look_for("")

    async def _look_soon(self) -> None:
        await asyncio.sleep(max(0.0, self._may_look_at - self._loop.time()))
        self._may_look_at = self._loop.time() + limits.KEYRING_LOOK_SECONDS
        # A key that is made from now on may be too late for this look.
        self._coming = None
        await self._look()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # A context of its own: it works for many requests, and must not speak in the name of the one that started it.
        task = self._loop.create_task(work, name="keyring", context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(limits.KEYRING_SECONDS)
            await self._look()

    async def _look(self) -> None:
        try:
            if await accounts.keys_version(self._store) != self._version:
                await self._read()
        except StoreError as error:
            _log.warning("looking for access keys waits for the store, those that are known still work: %s", error)
        except Exception:  # noqa: BLE001 - a keyring that has stopped looking would honour disabled keys for ever
            _log.exception("looking for access keys met an error that it does not know; it goes on")

    async def _read(self) -> None:
        found = await accounts.remember_keys(self._store)
        known, self._keys = self._keys, {key.id: _access_key(key) for key in found.keys}
        is_first = self._version < 0
        self._version = found.version
        if self._keys and not self.enforced:
            self.enforced = True
            if not is_first:
                _log.warning("there are access keys now: requests have to be signed from now on")
        if not is_first:
            self._tell(known)

    def _tell(self, known: Mapping[str, AccessKey]) -> None:
        """What became of keys since the last look. Who did it had the store in hand, and is not known."""
        for key in {**known, **self._keys}.values():
            before, now = known.get(key.id), self._keys.get(key.id)
            if now is None:
                self._audit.key_changed(key, "deleted")
            elif before is None:
                self._audit.key_changed(key, "made")
            elif before.enabled is not now.enabled:
                self._audit.key_changed(key, "enabled" if now.enabled else "disabled")


def _access_key(key: Key) -> AccessKey:
    return AccessKey(key.id, key.secret, key.account, key.enabled, key.queues, key.actions)
