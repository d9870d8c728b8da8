"""What a server knows of access keys: news soon, nothing lost while the store is away, no load by unknown ids."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from angelhair import limits
from angelhair.engine import accounts
from angelhair.engine.accounts import Key
from angelhair.engine.schema import ACCESS_KEYS
from angelhair.errors import Unavailable
from angelhair.server.audit import Audit
from angelhair.server.keyring import Keyring
from angelhair.settings import ACCOUNT
from angelhair.stores.memory import MemoryStore
from tests.faults import UNAVAILABLE, FaultyStore

KEY = Key("AHKIALICE00000000000", "the secret", ACCOUNT, ("orders*",), None, True, 1)


def run(scenario: Callable[[FaultyStore, Keyring], Awaitable[None]]) -> None:
    async def main() -> None:
        store = FaultyStore(MemoryStore(lambda: 0))
        keyring = Keyring(store, Audit())
        await keyring.load()
        try:
            await scenario(store, keyring)
        finally:
            await keyring.stop()

    asyncio.run(main())


def reads(store: FaultyStore) -> Callable[[], int]:
    """How often keys have been read since now."""

    async def seen() -> None:
        """Only counted."""

    rule = store.next("read", ACCESS_KEYS, seen, times=1_000_000)
    return lambda: rule.happened


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def test_the_first_key_turns_enforcement_on_and_nothing_turns_it_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "KEYRING_SECONDS", 0.005)
    caplog.set_level(logging.INFO)

    async def scenario(store: FaultyStore, keyring: Keyring) -> None:
        assert not keyring.enforced
        keyring.start()
        await accounts.create_key(store, KEY)
        await eventually(lambda: keyring.enforced)
        found = keyring.find(KEY.id)
        assert found is not None
        assert (found.secret, found.account, found.queues, found.actions) == (KEY.secret, ACCOUNT, KEY.queues, None)
        await accounts.enable_key(store, KEY.id, False)
        await eventually(lambda: (known := keyring.find(KEY.id)) is not None and not known.enabled)
        await accounts.delete_key(store, KEY.id)
        await eventually(lambda: keyring.find(KEY.id) is None)
        assert keyring.enforced, "a server that has asked for keys does not open its doors because the last one is gone"

    run(scenario)
    told = [record.getMessage() for record in caplog.records if record.name == "angelhair.audit"]
    assert told == [f"access key {KEY.id} {change}" for change in ("made", "disabled", "deleted")]
    assert "the secret" not in caplog.text


def test_a_server_that_cannot_read_the_keys_does_not_begin() -> None:
    async def scenario(store: FaultyStore, _: Keyring) -> None:
        store.next("read", ACCESS_KEYS, UNAVAILABLE)
        with pytest.raises(Unavailable):
            await Keyring(store, Audit()).load()

    run(scenario)


def test_what_is_known_still_works_while_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEYRING_SECONDS", 0.005)

    async def scenario(store: FaultyStore, keyring: Keyring) -> None:
        await accounts.create_key(store, KEY)
        assert await keyring.look_for(KEY.id) is not None
        rule = store.next("read", ACCESS_KEYS, UNAVAILABLE, times=1_000_000)
        keyring.start()
        await eventually(lambda: rule.happened > 3)
        assert keyring.find(KEY.id) is not None
        store.heal()
        await accounts.delete_key(store, KEY.id)
        await eventually(lambda: keyring.find(KEY.id) is None)

    run(scenario)


def test_a_quiet_keyring_is_one_small_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEYRING_SECONDS", 0.001)

    async def scenario(store: FaultyStore, keyring: Keyring) -> None:
        await accounts.create_key(store, KEY)
        await keyring.look_for(KEY.id)
        whole = store.next("read", ACCESS_KEYS, _nothing, when=lambda span: span.limit is None, times=1_000_000)
        small = reads(store)
        keyring.start()
        await eventually(lambda: small() > 5)
        assert whole.happened == 0

    run(scenario)


async def _nothing() -> None:
    """Only counted."""


def test_unknown_ids_cost_the_store_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEYRING_LOOK_SECONDS", 0.1)

    async def scenario(store: FaultyStore, keyring: Keyring) -> None:
        count = reads(store)
        began = asyncio.get_running_loop().time()
        for _ in range(5):
            unknown = await asyncio.gather(*(keyring.look_for(f"unknown-{number}") for number in range(1_000)))
            assert set(unknown) == {None}
        spent = asyncio.get_running_loop().time() - began
        assert count() == 5 and spent >= 0.4, "a thousand share a look, and looks keep their distance"

    run(scenario)


def test_a_new_key_is_looked_for_at_once() -> None:
    async def scenario(store: FaultyStore, keyring: Keyring) -> None:
        await accounts.create_key(store, KEY)
        assert keyring.find(KEY.id) is None
        found = await asyncio.gather(*(keyring.look_for(KEY.id) for _ in range(10)))
        assert {key is not None for key in found} == {True}
        assert keyring.enforced
        other = replace(KEY, id="AHKIBOB0000000000000")

        async def meanwhile() -> None:
            await accounts.create_key(store.real, other)

        # Made while a look is under way that has read already: the next one finds it, and nobody is turned away.
        store.next("read", ACCESS_KEYS, meanwhile, after=True)
        assert await keyring.look_for("nobody") is None
        assert await keyring.look_for(other.id) is not None

    run(scenario)
