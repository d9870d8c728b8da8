"""Accounts and access keys in the store: changed by one at a time, whatever is lost on the way."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from angelhair import limits
from angelhair.engine import accounts
from angelhair.engine.accounts import Account, Key
from angelhair.engine.schema import ACCESS_KEYS, ACCOUNTS, QUEUES
from angelhair.engine.store import Store
from angelhair.errors import InvalidRequest, OutcomeUnknown, Unavailable
from angelhair.settings import ACCOUNT
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import World


def key_of(world: World, account: str = ACCOUNT, **fields: object) -> Key:
    plain = Key(f"AHKI{world.identities.fresh()[:16]}", "the secret", account, None, None, True, world.dial.wall_ms)
    return replace(plain, **fields)  # type: ignore[arg-type]


async def made(world: World, store: Store | None = None, account_id: str | None = None) -> Account:
    name = f"shop-{world.identities.fresh()}"
    return await accounts.create_account(store or world.store, name, account_id, world.identities, world.dial.now())


async def found(world: World, key: Key) -> Key | None:
    return next((each for each in (await accounts.read_keys(world.store)).keys if each.id == key.id), None)


async def test_the_default_account_is_always_there(world: World) -> None:
    default = (await accounts.read_accounts(world.store))[0]
    assert (default.id, default.name) == (ACCOUNT, "default")
    with pytest.raises(InvalidRequest, match="cannot be deleted"):
        await accounts.delete_account(world.store, ACCOUNT)


async def test_an_account_has_a_number_and_a_name_that_no_other_has(world: World) -> None:
    shop = await made(world)
    assert len(shop.id) == 12 and shop.id.isdigit()
    assert shop in await accounts.read_accounts(world.store)
    assert shop.id in await world.server().engine.list_accounts()
    for name, number, complaint in (
        (shop.name, None, "is the name of account"), ("another", shop.id, "exists"), ("another", "12", "12 digits"),
        ("123456789012", None, "looks like the number"), ("a/b", None, "may hold letters a to z and A to Z"),
    ):
        with pytest.raises(InvalidRequest, match=complaint):
            await accounts.create_account(world.store, name, number, world.identities, world.dial.now())


async def test_an_account_is_deleted_when_it_has_nothing(world: World) -> None:
    shop = await made(world)
    key = key_of(world, shop.id)
    await accounts.create_key(world.store, key)
    with pytest.raises(InvalidRequest, match="has access keys"):
        await accounts.delete_account(world.store, shop.id)
    await accounts.delete_key(world.store, key.id)
    server = world.server()
    server.world.account = shop.id
    await server.create("orders")
    with pytest.raises(InvalidRequest, match="has queues, 'orders' among them"):
        await accounts.delete_account(world.store, shop.name)
    await server.engine.delete_queue(shop.id, "orders")
    await server.bury()
    await accounts.delete_account(world.store, shop.name)
    assert shop not in await accounts.read_accounts(world.store)
    with pytest.raises(InvalidRequest, match="there is no account"):
        await accounts.delete_account(world.store, shop.name)


async def test_a_queue_made_while_its_account_goes_brings_the_account_back(world: World) -> None:
    """Naive: look for queues, then delete. A server that still knows the key makes one in between, which no server's
    background work would ever find."""
    shop, server = await made(world), world.server()
    server.world.account = shop.id

    async def between() -> None:
        await world.server().create("orders")

    server.store.next("change", ACCOUNTS, between)
    with pytest.raises(InvalidRequest, match="has queues"):
        await accounts.delete_account(server.store, shop.id)
    assert shop in await accounts.read_accounts(world.store)
    await server.engine.delete_queue(shop.id, "orders")
    await server.bury()


async def test_a_key_is_read_as_it_was_made_and_shows_no_secret(world: World) -> None:
    key = key_of(world, queues=("orders*", "a"), actions=("SendMessage",))
    before = await accounts.keys_version(world.store)
    await accounts.create_key(world.store, key)
    assert await found(world, key) == key
    assert "the secret" not in repr(key)
    assert await accounts.keys_version(world.store) == before + 1 == (await accounts.read_keys(world.store)).version
    disabled = await accounts.enable_key(world.store, key.id, False)
    assert disabled == replace(key, enabled=False) == await found(world, key)
    await accounts.enable_key(world.store, key.id, False)
    assert await accounts.keys_version(world.store) == before + 2, "what changes nothing is nobody's news"
    assert await accounts.enable_key(world.store, key.id, True) == key == await found(world, key)
    await accounts.delete_key(world.store, key.id)
    assert await found(world, key) is None
    assert await accounts.keys_version(world.store) == before + 4


async def test_wrong_keys_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(world)
    await accounts.create_key(world.store, key)
    with pytest.raises(InvalidRequest, match="already"):
        await accounts.create_key(world.store, replace(key, secret="another"))
    with pytest.raises(InvalidRequest, match="there is no account"):
        await accounts.create_key(world.store, key_of(world, "999999999999"))
    for wrong in (
        key_of(world, queues=()), key_of(world, actions=("",)), key_of(world, queues=("x" * 81,)),
        key_of(world, actions=("x",) * 51),
    ):
        with pytest.raises(InvalidRequest):
            await accounts.create_key(world.store, wrong)
    for verb in (accounts.delete_key(world.store, "nobody"), accounts.enable_key(world.store, "nobody", True)):
        with pytest.raises(InvalidRequest, match="there is no access key 'nobody'"):
            await verb
    monkeypatch.setattr(limits, "ACCESS_KEYS", len((await accounts.read_keys(world.store)).keys))
    with pytest.raises(InvalidRequest, match="which is the limit"):
        await accounts.create_key(world.store, key_of(world))
    monkeypatch.setattr(limits, "ACCOUNTS", len(await accounts.read_accounts(world.store)))
    with pytest.raises(InvalidRequest, match="which is the limit"):
        await made(world)
    await accounts.delete_key(world.store, key.id)


async def test_what_was_done_though_its_answer_was_lost_is_done_once(world: World) -> None:
    server = world.server()
    server.store.next("change", ACCOUNTS, LOSE_ANSWER)
    shop = await made(world, server.store)
    assert shop in await accounts.read_accounts(world.store)
    key = key_of(world, shop.id)
    for fault in (LOSE_ANSWER, NEVER_SENT):
        server.store.next("change", ACCESS_KEYS, fault)
        await accounts.create_key(server.store, key)
        server.store.next("change", ACCESS_KEYS, fault)
        assert not (await accounts.enable_key(server.store, key.id, False)).enabled
        assert await found(world, key) == replace(key, enabled=False)
        server.store.next("change", ACCESS_KEYS, fault)
        await accounts.delete_key(server.store, key.id)
        assert await found(world, key) is None
    server.store.next("change", ACCOUNTS, LOSE_ANSWER)
    await accounts.delete_account(server.store, shop.id)
    assert shop not in await accounts.read_accounts(world.store)


async def test_what_stays_unknown_is_said_to_be_so(world: World) -> None:
    server, key = world.server(), key_of(world)
    server.store.next("change", ACCESS_KEYS, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await accounts.create_key(server.store, key)
    server.store.next("change", ACCESS_KEYS, NEVER_SENT, times=100)
    with pytest.raises(OutcomeUnknown):
        await accounts.create_key(server.store, key)
    server.store.heal()
    assert await found(world, key) is None
    shop = await made(world)
    server.store.next("read", QUEUES, UNAVAILABLE, times=0)
    rule = server.store.next("change", ACCOUNTS, _nothing)
    server.store.next("read", QUEUES, UNAVAILABLE, when=lambda _: rule.happened > 0, times=100)
    with pytest.raises(OutcomeUnknown):
        await accounts.delete_account(server.store, shop.id)


async def _nothing() -> None:
    """Only seen to happen."""


async def test_many_at_once_lose_nothing(world: World) -> None:
    keys = [key_of(world) for _ in range(4)]
    await asyncio.gather(*(accounts.create_key(world.store, key) for key in keys))
    assert [await found(world, key) for key in keys] == keys
    await asyncio.gather(*(accounts.enable_key(world.store, key.id, False) for key in keys))
    assert [(await found(world, key)) for key in keys] == [replace(key, enabled=False) for key in keys]
    for key in keys:
        await accounts.delete_key(world.store, key.id)
