"""`angelhair account`: make, list and delete accounts. Works on the store itself."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair.batching.topics import on_their_way
from angelhair.cli.exits import DONE
from angelhair.cli.keeping import add_store_flags, rfc3339_or_none, with_store
from angelhair.cli.output import Column, print_json, print_result, print_table, say
from angelhair.cli.parsers import add_command, add_group
from angelhair.clock import SystemClock
from angelhair.engine import accounts
from angelhair.engine.accounts import Account
from angelhair.engine.engine import Engine
from angelhair.engine.store import Store
from angelhair.errors import InvalidRequest
from angelhair.identities import RandomIdentities


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "account", "make, list and delete accounts", "Makes, lists and deletes accounts. Asks no server."
    )
    parser = add_command(
        verbs, "create", "make an account",
        "Makes an account, which has queues of its own: two accounts may have queues of one name. Prints its number. "
        "`angelhair key create` then makes its first access key.",
        """
        angelhair account create shop
        angelhair account create shop --id 123456789012 --data ./angelhair-data""",
        create,
    )
    parser.add_argument("name", metavar="NAME", help="a name for people")
    parser.add_argument("--id", metavar="NUMBER", help="its number, of 12 digits (default: one is drawn)")
    add_store_flags(parser)

    parser = add_command(
        verbs, "list", "list accounts",
        "Lists accounts. The one named default is always there: it has the queues of a server without access keys. "
        "Elsewhere than on a terminal: number, name, when it was made.",
        "angelhair account list", list_accounts,
    )
    add_store_flags(parser)

    parser = add_command(
        verbs, "delete", "delete an account that has nothing",
        "Deletes an account. It must have neither queues nor topics nor access keys.",
        "angelhair account delete shop", delete,
    )
    parser.add_argument("account", metavar="ACCOUNT", help="its number or its name")
    add_store_flags(parser)


def create(arguments: argparse.Namespace) -> int:
    made = with_store(
        arguments,
        lambda store: accounts.create_account(
            store, arguments.name, arguments.id, RandomIdentities(), SystemClock().now()
        ),
        makes=True,
    )
    if arguments.json:
        print_json(_json(made))
    else:
        print_result(made.id, f"account {made.name} is there; its number is {made.id}")
    return DONE


def list_accounts(arguments: argparse.Namespace) -> int:
    found = with_store(arguments, accounts.read_accounts)
    if arguments.json:
        print_json({"accounts": [_json(account) for account in found]})
    else:
        rows = [[account.id, account.name, rfc3339_or_none(account.created_at_ms)] for account in found]
        print_table([Column("ACCOUNT"), Column("NAME"), Column("MADE")], rows)
    return DONE


def delete(arguments: argparse.Namespace) -> int:
    with_store(arguments, lambda store: _delete(store, arguments.account))
    if arguments.json:
        print_json({"deleted": arguments.account})
    else:
        say(f"account {arguments.account} is deleted")
    return DONE


async def _delete(store: Store, name: str) -> None:
    """Nobody works for an account that is gone: what it has published, to queues of others, must have arrived."""
    account = accounts.find_account(await accounts.read_accounts(store), name)
    if count := await on_their_way(Engine(store, RandomIdentities(), SystemClock()), account.id):
        raise InvalidRequest("account", f"{name} has {count} publications on their way; wait until they have arrived")
    await accounts.delete_account(store, name)


def _json(account: Account) -> dict[str, Any]:
    return {"id": account.id, "name": account.name, "created_at": rfc3339_or_none(account.created_at_ms)}
