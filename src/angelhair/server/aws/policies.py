"""The form of access policies, and statements that come and go by their labels. What a policy means, others decide."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

VERSION = "2012-10-17"

_VERSIONS = ("2008-10-17", VERSION)
_MEMBERS = {"Version", "Id", "Statement"}
_STATEMENT_MEMBERS = {
    "Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition",
}


class LabelTaken(Exception):
    """The policy has a statement of that label already."""


class NoSuchLabel(Exception):
    """The policy has no statement of that label."""


def json_object(text: str) -> dict[str, Any] | None:
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return decoded if isinstance(decoded, dict) else None


def statements_in(text: str) -> list[dict[str, Any]] | None:
    """The statements of a policy; None when it has not the form of one."""
    policy = json_object(text)
    if policy is None or not policy.keys() <= _MEMBERS or policy.get("Version", _VERSIONS[0]) not in _VERSIONS:
        return None
    statements = policy.get("Statement")
    # A policy with one statement may have it without a list around it.
    statements = [statements] if isinstance(statements, dict) else statements
    if not isinstance(statements, list) or not statements or not all(map(_is_statement, statements)):
        return None
    return statements


def _is_statement(statement: object) -> bool:
    return (
        isinstance(statement, dict)
        and statement.keys() <= _STATEMENT_MEMBERS
        and statement.get("Effect") in ("Allow", "Deny")
        and bool(statement.get("Action") or statement.get("NotAction"))
    )


def grant(label: str, accounts: Sequence[str], actions: Sequence[str], resource: str) -> dict[str, Any]:
    """The statement that AddPermission makes. `actions` with the name of their service."""
    principals = [f"arn:aws:iam::{account}:root" for account in accounts]
    return {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": principals[0] if len(principals) == 1 else principals},
        "Action": actions[0] if len(actions) == 1 else list(actions),
        "Resource": resource,
    }


def with_statement(text: str | None, policy_id: str, statement: dict[str, Any]) -> str:
    """The policy with one statement more; a new one gets the id. Raises `LabelTaken`."""
    policy = {"Version": VERSION, "Id": policy_id} if text is None else json.loads(text)
    statements = statements_in(text) or [] if text is not None else []
    if any(known.get("Sid") == statement["Sid"] for known in statements):
        raise LabelTaken
    return json.dumps({**policy, "Statement": [*statements, statement]})


def without_statement(text: str | None, label: str) -> str | None:
    """The policy without it, or None when nothing is left of it. Raises `NoSuchLabel`."""
    statements = [] if text is None else statements_in(text) or []
    left = [known for known in statements if known.get("Sid") != label]
    if text is None or len(left) == len(statements):
        raise NoSuchLabel
    return json.dumps({**json.loads(text), "Statement": left}) if left else None
