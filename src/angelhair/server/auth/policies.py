"""Policies, as Amazon has them: who may do what with a queue or a topic, beyond the keys of its own account.

A policy is a list of statements. Each allows or denies, and is about certain callers, actions, resources and
circumstances; a denial outweighs every permission. What is not understood makes a permission void and a denial valid:
a policy never lets somebody in because of a word that this server does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from angelhair import limits
from angelhair.server.auth.conditions import hold
from angelhair.server.auth.regions import in_region_of
from angelhair.server.auth.wildcards import matches

ANYBODY = "*"


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to do."""

    account: str | None
    """Of the caller; None for a service that acts by itself."""
    user: str
    """The caller's own ARN."""
    action: str
    """With the service before it: `sqs:SendMessage`."""
    resource: str
    """An ARN. Regions are names that clients choose, and make no difference."""
    circumstances: Mapping[str, str] = field(default_factory=dict)
    """What conditions may be about, by their names in lower case: `aws:sourceip`."""
    service: str | None = None
    """Who acts, if it is a service: `sns.amazonaws.com`."""


class Verdict(Enum):
    ALLOWED = "a statement allows it, and none denies it"
    DENIED = "a statement denies it"
    SILENT = "no statement is about it"


def judge(policy: str, wish: Wish) -> Verdict:
    """What a policy, as JSON, says to a wish. One that cannot be read denies."""
    statements = _read(policy)
    if statements is None:
        return Verdict.DENIED
    verdict = Verdict.SILENT
    for statement in statements:
        denies = statement.get("Effect") != "Allow"
        if _is_about(statement, wish, unsure=denies):
            if denies:
                return Verdict.DENIED
            verdict = Verdict.ALLOWED
    return verdict


@lru_cache(maxsize=limits.POLICIES_KEPT)
def _read(policy: str) -> tuple[Mapping[str, Any], ...] | None:
    try:
        read = json.loads(policy)
    except (ValueError, RecursionError):
        return None
    statements = read.get("Statement") if isinstance(read, dict) else None
    statements = [statements] if isinstance(statements, dict) else statements
    if not isinstance(statements, list) or not all(isinstance(statement, dict) for statement in statements):
        return None
    return tuple(statements)


def _is_about(statement: Mapping[str, Any], wish: Wish, unsure: bool) -> bool:
    """`unsure` is the answer where a part is missing or not understood."""
    parts: tuple[tuple[str, Callable[[Any, Wish], bool | None]], ...] = (
        ("Principal", _is_caller), ("Action", _is_action), ("Resource", _is_resource),
    )
    for name, fits in parts:
        wanted, unwanted = statement.get(name), statement.get(f"Not{name}")
        if (wanted is None) is (unwanted is None):
            found: bool | None = None
        elif wanted is not None:
            found = fits(wanted, wish)
        else:
            found = fits(unwanted, wish)
            found = None if found is None else not found
        if not (unsure if found is None else found):
            return False
    conditions = statement.get("Condition")
    return conditions is None or hold(conditions, wish.circumstances, unsure)


def _is_caller(principal: Any, wish: Wish) -> bool | None:
    if principal == ANYBODY:
        return True
    if not isinstance(principal, dict):
        return None
    for kind, given in principal.items():
        names = _texts(given)
        if names is None:
            return None
        if kind == "AWS" and wish.account is not None:
            known = {ANYBODY, wish.account, f"arn:aws:iam::{wish.account}:root", wish.user}
            if not known.isdisjoint(names):
                return True
        elif kind == "Service" and wish.service in names:
            return True
    return False


def _is_action(given: Any, wish: Wish) -> bool | None:
    patterns, action = _texts(given), wish.action.lower()
    return None if patterns is None else any(matches(pattern.lower(), action, "?") for pattern in patterns)


def _is_resource(given: Any, wish: Wish) -> bool | None:
    patterns = _texts(given)
    return None if patterns is None else any(
        matches(pattern, in_region_of(pattern, wish.resource), "?") for pattern in patterns
    )


def _texts(given: Any) -> Sequence[str] | None:
    """One text, or a list of them; None for anything else."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return given
    return None
