"""Accounts own queues; access keys say who asks in an account's name, and what for.

All accounts lie in one partition and all keys in another, each with a `version` that every change raises: what was
decided on a reading of the whole is written only if nothing has changed since, and who keeps a copy sees by one small
read whether it is old. Nothing here is done often.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import catalog, places
from angelhair.engine.identities import Identities
from angelhair.engine.settling import begun, change_settled, expect_decided, not_denied, read_landed
from angelhair.engine.store import Applied, Change, Partition, RowChange, Slice, Span, Store, Values
from angelhair.engine.topics import catalog as topics
from angelhair.errors import InvalidRequest, Unavailable
from angelhair.model import validate_name
from angelhair.settings import ACCOUNT

DEFAULT_NAME = "default"
"""Of the account that is always there: whose queues a server without access keys serves."""

ID_DIGITS = 12
"""Of an account: as Amazon has it, so that it fits URLs and ARNs."""

VERSION = "version"

Rows = Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Account:
    id: str
    name: str
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class Key:
    id: str
    secret: str = field(repr=False)
    account: str
    queues: tuple[str, ...] | None
    """Patterns of queue names; None for all."""
    actions: tuple[str, ...] | None
    """Names of actions; None for all."""
    enabled: bool
    created_at_ms: int


class Keys(NamedTuple):
    version: int
    """If they were read to be remembered it is theirs, or older: who reads again by it reads too often rather than too
    seldom."""
    keys: Sequence[Key]


# --- accounts -------------------------------------------------------------------------------------------------------


async def read_accounts(store: Store) -> list[Account]:
    """In the order of their numbers."""
    (found,) = await store.read([Span(places.ALL_ACCOUNTS)])
    return _accounts({str(row.key): row.values for row in found.rows})


def find_account(accounts: Sequence[Account], text: str) -> Account:
    """By number or by name."""
    for account in accounts:
        if text in (account.id, account.name):
            return account
    raise InvalidRequest("account", f"there is no account {text!r}")


async def create_account(
    store: Store, name: str, account_id: str | None, identities: Identities, now: Moment
) -> Account:
    """`account_id`: the number that it is to have; by default one is drawn."""
    validate_name("name", name)
    if account_id is not None and not _is_id(account_id):
        raise InvalidRequest("id", f"must have {ID_DIGITS} digits")
    if _is_id(name):
        raise InvalidRequest("name", "looks like the number of an account")
    wanted = account_id or f"{int.from_bytes(identities.secret(), 'big') % 10**ID_DIGITS:0{ID_DIGITS}d}"
    made = Account(wanted, name, now.wall_ms)
    attempt = identities.fresh()

    def decide(rows: Rows, _again: bool) -> RowChange | None:
        if rows.get(made.id, {}).get("attempt") == attempt:
            return None
        known = _accounts(rows)
        for account in known:
            if account.id == made.id:
                raise InvalidRequest("id", f"account {made.id} exists; its name is {account.name}")
            if account.name == name:
                raise InvalidRequest("name", f"{name!r} is the name of account {account.id} already")
        if len(known) >= limits.ACCOUNTS:
            raise InvalidRequest("account", f"there are {len(known)} accounts already, which is the limit")
        values: Values = {"name": name, "attempt": attempt, "created_at": made.created_at_ms}
        return RowChange(made.id, {}, values)

    await _edit(store, places.ALL_ACCOUNTS, decide)
    return made


async def delete_account(store: Store, account_id: str) -> None:
    """Only one that has nothing: neither keys nor queues nor topics. What is made in it meanwhile brings it back."""
    account = find_account(await read_accounts(store), account_id)
    if account.id == ACCOUNT:
        raise InvalidRequest("account", "the default account cannot be deleted")
    if any(key.account == account.id for key in (await read_keys(store)).keys):
        raise InvalidRequest("account", f"{account_id} has access keys; delete them first")
    await _check_empty(store, account)
    deleted: Values = {}

    def delete(rows: Rows, again: bool) -> RowChange | None:
        nonlocal deleted
        if account.id not in rows:
            if again:
                return None
            raise InvalidRequest("account", f"there is no account {account_id!r}")
        deleted = rows[account.id]
        return RowChange(account.id, {}, None)

    await _edit(store, places.ALL_ACCOUNTS, delete)
    try:
        with begun():
            await _check_empty(store, account)
    except InvalidRequest:
        # A server that had not heard yet that the last key is gone made one. Somebody has to look after it.
        with begun():
            await _edit(
                store, places.ALL_ACCOUNTS,
                lambda rows, _: None if account.id in rows else RowChange(account.id, {}, deleted),
            )
        raise


async def _check_empty(store: Store, account: Account) -> None:
    names, _ = await catalog.list_names(store, account.id, "", None, 1)
    if names:
        raise InvalidRequest("account", f"{account.id} has queues, {names[0]!r} among them; delete them first")
    names, _ = await topics.list_names(store, account.id, "", None, 1)
    if names:
        raise InvalidRequest("account", f"{account.id} has topics, {names[0]!r} among them; delete them first")


def _accounts(rows: Rows) -> list[Account]:
    known = {ACCOUNT: Account(ACCOUNT, DEFAULT_NAME, 0)}
    for number, values in rows.items():
        created_at = values.get("created_at")
        known[number] = Account(number, str(values["name"]), created_at if isinstance(created_at, int) else 0)
    return [known[number] for number in sorted(known)]


def _is_id(text: str) -> bool:
    return len(text) == ID_DIGITS and text.isascii() and text.isdigit()


# --- access keys ----------------------------------------------------------------------------------------------------


async def read_keys(store: Store) -> Keys:
    """In the order of their ids."""
    (found,) = await store.read([Span(places.ALL_KEYS)])
    return _keys(found)


async def remember_keys(store: Store) -> Keys:
    """For who looks for keys again only when their version has grown."""
    return _keys(await read_landed(store, places.ALL_KEYS, VERSION))


def _keys(found: Slice) -> Keys:
    keys = [_key(str(row.key), row.values) for row in found.rows]
    return Keys(_version(found.flags), keys)


async def keys_version(store: Store) -> int:
    """Grows with every change of a key."""
    (found,) = await store.read([Span(places.ALL_KEYS, limit=1)])
    return _version(found.flags)


async def create_key(store: Store, key: Key) -> None:
    """Its id and secret are the caller's to draw; its account has to exist."""
    _check_limits("queues", key.queues)
    _check_limits("actions", key.actions)
    find_account(await read_accounts(store), key.account)

    def decide(rows: Rows, _again: bool) -> RowChange | None:
        if key.id in rows:
            if rows[key.id].get("secret") == key.secret:
                return None
            raise InvalidRequest("key", f"there is a key {key.id} already")
        if len(rows) >= limits.ACCESS_KEYS:
            raise InvalidRequest("key", f"there are {len(rows)} access keys already, which is the limit")
        return RowChange(key.id, {}, _values(key))

    await _edit(store, places.ALL_KEYS, decide)


async def enable_key(store: Store, key_id: str, enabled: bool) -> Key:
    """Or disables it: it stays, and no request that it signs is accepted. The key as it is then."""
    changed: list[Key] = []

    def decide(rows: Rows, _again: bool) -> RowChange | None:
        values = _known(rows, key_id)
        changed[:] = [_key(key_id, {**values, "enabled": int(enabled)})]
        return None if bool(values.get("enabled")) is enabled else RowChange(key_id, {}, {"enabled": int(enabled)})

    await _edit(store, places.ALL_KEYS, decide)
    return changed[0]


async def delete_key(store: Store, key_id: str) -> None:
    def decide(rows: Rows, again: bool) -> RowChange | None:
        if again and key_id not in rows:
            return None
        _known(rows, key_id)
        return RowChange(key_id, {}, None)

    await _edit(store, places.ALL_KEYS, decide)


def _known(rows: Rows, key_id: str) -> Values:
    if key_id not in rows:
        raise InvalidRequest("key", f"there is no access key {key_id!r}")
    return rows[key_id]


def _check_limits(what: str, given: tuple[str, ...] | None) -> None:
    if given is None:
        return
    if not 1 <= len(given) <= limits.KEY_PATTERNS:
        raise InvalidRequest(what, f"must be 1 to {limits.KEY_PATTERNS}, not {len(given)}")
    for one in given:
        if not 1 <= len(one) <= limits.NAME_LENGTH:
            raise InvalidRequest(what, f"must have 1 to {limits.NAME_LENGTH} characters each")


def _values(key: Key) -> Values:
    return {
        "account": key.account,
        "secret": key.secret,
        "queues": None if key.queues is None else json.dumps(key.queues),
        "actions": None if key.actions is None else json.dumps(key.actions),
        "enabled": int(key.enabled),
        "created_at": key.created_at_ms,
    }


def _key(key_id: str, values: Values) -> Key:
    created_at = values.get("created_at")
    return Key(
        key_id, str(values["secret"]), str(values["account"]), _names(values.get("queues")),
        _names(values.get("actions")), bool(values.get("enabled")), created_at if isinstance(created_at, int) else 0,
    )


def _names(value: object) -> tuple[str, ...] | None:
    return None if value is None else tuple(json.loads(str(value)))


# --- both -----------------------------------------------------------------------------------------------------------


async def _edit(store: Store, place: Partition, decide: Callable[[Rows, bool], RowChange | None]) -> None:
    """Changes a row by what the whole partition is, as often as somebody else is faster.

    `decide` says None when all is as it should be, which it finds when an attempt landed whose answer was lost; it is
    told whether that may have been so.
    """
    unsure: set[int] = set()
    with not_denied(unsure):
        for _ in range(limits.PUT_ROUNDS):
            found = await read_landed(store, place, VERSION)
            row = decide({str(row.key): row.values for row in found.rows}, bool(unsure))
            if row is None:
                return
            version = found.flags.get(VERSION)
            change = Change(place, [row], {VERSION: version}, {VERSION: _version(found.flags) + 1})
            (outcome,) = await change_settled(store, [change], unsure)
            if isinstance(expect_decided(outcome), Applied):
                return
        raise Unavailable("accounts or keys are being changed by others all the time")


def _version(flags: Values) -> int:
    version = flags.get(VERSION)
    return version if isinstance(version, int) else 0
