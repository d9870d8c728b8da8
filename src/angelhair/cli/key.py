"""`angelhair key`: make, list, disable, enable and delete access keys. Works on the store itself."""

from __future__ import annotations

import argparse
import secrets
from difflib import get_close_matches
from typing import Any

from angelhair.cli.exits import DONE, WrongUsage, complain
from angelhair.cli.keeping import add_store_flags, rfc3339_or_none, with_store
from angelhair.cli.output import Column, Room, print_json, print_table, say
from angelhair.cli.parsers import add_command, add_group
from angelhair.clock import SystemClock
from angelhair.engine import accounts
from angelhair.engine.accounts import DEFAULT_NAME, Key
from angelhair.engine.store import Store

ANY = "*"

CREATED = """\
AWS_ACCESS_KEY_ID={id}
AWS_SECRET_ACCESS_KEY={secret}"""
"""As shells and configuration files take it."""


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "key", "make, list, disable, enable and delete access keys",
        "Makes, lists, disables, enables and deletes access keys. Asks no server: works on the store itself, and "
        "servers hear of it within seconds. From the first key on every request has to be signed.",
    )
    parser = add_command(
        verbs, "create", "make an access key",
        "Makes an access key and prints its id and its secret, in two lines that a shell can read. The secret is shown "
        "this once.",
        """
        angelhair key create
        angelhair key create --account shop --queues 'orders*' --actions SendMessage,GetQueueUrl
        angelhair key create --account shop --contact-points 10.0.0.1 --keyspace queues --json""",
        create,
    )
    parser.add_argument(
        "--account", metavar="ACCOUNT", default=DEFAULT_NAME, help="whose it is, by number or name (default: default)"
    )
    parser.add_argument(
        "--queues", metavar="PATTERN,…", help="only for queues and topics of these names; * stands for any text"
    )
    parser.add_argument(
        "--actions", metavar="ACTION,…", help="only for these actions, as SQS and SNS call them (default: all)"
    )
    add_store_flags(parser)

    parser = add_command(
        verbs, "list", "list access keys",
        "Lists access keys without their secrets. Elsewhere than on a terminal: id, account, whether it is enabled, "
        "queues, actions, when it was made.",
        "angelhair key list\nangelhair key list --account shop --json", list_keys,
    )
    parser.add_argument("--account", metavar="ACCOUNT", help="only those of this account")
    add_store_flags(parser)

    for name, summary, description, run in (
        ("disable", "refuse what is signed with a key", "Disables a key. It stays, and can be enabled again.", disable),
        ("enable", "take back that a key was disabled", "Enables a key that was disabled.", enable),
        ("delete", "delete access keys for good", "Deletes a key. Running servers go on asking for keys even if it was "
         "the last one.", delete),
    ):
        parser = add_command(verbs, name, summary, description, f"angelhair key {name} AHKIAJ4EXAMPLE234567", run)
        parser.add_argument("key", metavar="KEY", help="the key's id")
        add_store_flags(parser)


def create(arguments: argparse.Namespace) -> int:
    from angelhair.server.auth import new_id, new_secret

    queues, actions = _listed(arguments.queues), _listed(arguments.actions)
    _check_actions(actions)

    async def make(store: Store) -> Key:
        account = accounts.find_account(await accounts.read_accounts(store), arguments.account)
        key = Key(
            new_id(secrets.token_bytes), new_secret(secrets.token_bytes), account.id, queues, actions, True,
            SystemClock().now().wall_ms,
        )
        await accounts.create_key(store, key)
        return key

    made = with_store(arguments, make, makes=True)
    if arguments.json:
        print_json({**_json(made), "secret": made.secret})
    else:
        print(CREATED.format(id=made.id, secret=made.secret))
        say("The secret is not shown again.")
    return DONE


def list_keys(arguments: argparse.Namespace) -> int:
    async def read(store: Store) -> list[Key]:
        found = (await accounts.read_keys(store)).keys
        if arguments.account is None:
            return list(found)
        account = accounts.find_account(await accounts.read_accounts(store), arguments.account)
        return [key for key in found if key.account == account.id]

    found = with_store(arguments, read)
    if arguments.json:
        print_json({"keys": [_json(key) for key in found]})
    else:
        columns = [
            Column("KEY"), Column("ACCOUNT"), Column("ENABLED"), Column("QUEUES", room=Room.WRAPPED),
            Column("ACTIONS", room=Room.WRAPPED), Column("MADE", room=Room.LEFT_OUT),
        ]
        print_table(columns, [
            [key.id, key.account, key.enabled, ",".join(key.queues or (ANY,)), ",".join(key.actions or (ANY,)),
             rfc3339_or_none(key.created_at_ms)]
            for key in found
        ])
    return DONE


def disable(arguments: argparse.Namespace) -> int:
    return _enable(arguments, False)


def enable(arguments: argparse.Namespace) -> int:
    return _enable(arguments, True)


def _enable(arguments: argparse.Namespace, enabled: bool) -> int:
    changed = with_store(arguments, lambda store: accounts.enable_key(store, arguments.key, enabled))
    if arguments.json:
        print_json(_json(changed))
    else:
        say(f"key {changed.id} is {'enabled' if enabled else 'disabled'}; servers know it within seconds")
    return DONE


def delete(arguments: argparse.Namespace) -> int:
    async def drop(store: Store) -> bool:
        await accounts.delete_key(store, arguments.key)
        return bool((await accounts.read_keys(store)).keys)

    others = with_store(arguments, drop)
    if arguments.json:
        print_json({"deleted": arguments.key})
    else:
        say(f"key {arguments.key} is deleted; servers know it within seconds")
    if not others:
        # Also where nothing is printed: who deletes keys by a script is to see it.
        complain(arguments.program, "warning: it was the last one; a server that starts now asks nobody for a key")
    return DONE


def _listed(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(","))


def _check_actions(actions: tuple[str, ...] | None) -> None:
    from angelhair.server.auth.actions import ACTIONS

    for action in actions or ():
        if action != ANY and action not in ACTIONS:
            meant = get_close_matches(action, ACTIONS, 1)
            hint = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(sorted(ACTIONS))}"
            raise WrongUsage(f"--actions: there is no action {action!r} ({hint})")


def _json(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "account": key.account,
        "enabled": key.enabled,
        "queues": None if key.queues is None else list(key.queues),
        "actions": None if key.actions is None else list(key.actions),
        "created_at": rfc3339_or_none(key.created_at_ms),
    }
