"""Which messages of a topic a subscription wants: filter policies, with every operator that SNS has, in both scopes.

A policy is JSON: by key, the conditions of which one must hold; all keys must agree. It looks at a message's attributes
or, nested as the message is, at its body. Pure: a policy is parsed once (`parsing`) into a tree of `conditions`, and
`matching` walks the tree and a message side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from angelhair import limits
from angelhair.engine.topics.filters.matching import attribute_values, body_value, holds
from angelhair.engine.topics.filters.parsing import Branch, InvalidFilterPolicy, parse
from angelhair.engine.topics.filters.reading import MISSING

BY_ATTRIBUTES, BY_BODY = "attributes", "body"
"""The scopes: what of a message a policy looks at."""

__all__ = ["BY_ATTRIBUTES", "BY_BODY", "InvalidFilterPolicy", "accepts", "check"]


def check(policy: str, scope: str) -> None:
    """Raises `InvalidFilterPolicy` for what is no policy in that scope, or too much of one."""
    parse(policy, nested=scope == BY_BODY)


def accepts(policy: str | None, scope: str, attributes: Mapping[str, tuple[str, str]], body: str) -> bool:
    """Whether a subscription with this policy wants the message. `attributes`: by name, the type and the text.

    A policy was checked before it was kept. One that cannot be read all the same, written by a later version perhaps,
    lets everything pass: a message too many is better than one that is lost.
    """
    if policy is None:
        return True
    tree = _parsed(policy, scope == BY_BODY)
    if tree is None:
        return True
    if scope == BY_BODY:
        found = body_value(body)
        return found is not MISSING and holds(tree, found)
    return holds(tree, attribute_values(attributes))


@lru_cache(maxsize=limits.FILTER_POLICIES_REMEMBERED)
def _parsed(policy: str, nested: bool) -> Branch | None:
    try:
        return parse(policy, nested)
    except InvalidFilterPolicy:
        return None
