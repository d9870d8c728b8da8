"""The conditions of a policy's statement: under which circumstances it is about a wish at all.

    {"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:123456789012:*"}, "Bool": {"aws:SecureTransport": "true"}}

All of them have to hold, each for one of its values. A circumstance that is not known of a request fails a condition
that asks for a value, and meets one that forbids a value; `…IfExists` is met by it. `Null` asks for just that.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from angelhair.server.auth.regions import in_region_of
from angelhair.server.auth.wildcards import matches

KNOWN = frozenset({
    "aws:sourcearn", "aws:sourceaccount", "aws:sourceip", "aws:securetransport", "aws:currenttime",
    "aws:principalaccount", "aws:principalarn", "aws:useragent", "sns:endpoint", "sns:protocol",
})
"""What a condition may be about. Any other name is not understood."""

IF_EXISTS = "IfExists"
NULL = "Null"


class Unclear(Exception):
    """A value, or the circumstance that it is compared with, is not of its form."""


def _equal(value: str, has: str) -> bool:
    return value == has


def _equal_whatever_case(value: str, has: str) -> bool:
    return value.lower() == has.lower()


def _like(value: str, has: str) -> bool:
    return matches(value, has, "?")


def _same_truth(value: str, has: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise Unclear
    return value.lower() == has.lower()


def _in_network(value: str, has: str) -> bool:
    try:
        address, network = ipaddress.ip_address(has), ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise Unclear from None
    # A server that listens for both kinds of addresses sees the older kind inside the newer.
    return (getattr(address, "ipv4_mapped", None) or address) in network


def _moment(text: str) -> datetime:
    try:
        if text.replace(".", "", 1).isdecimal():
            return datetime.fromtimestamp(float(text), UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        raise Unclear from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


OPERATORS: Mapping[str, tuple[Callable[[str, str], bool], bool]] = {
    "StringEquals": (_equal, False),
    "StringNotEquals": (_equal, True),
    "StringEqualsIgnoreCase": (_equal_whatever_case, False),
    "StringNotEqualsIgnoreCase": (_equal_whatever_case, True),
    "StringLike": (_like, False),
    "StringNotLike": (_like, True),
    "ArnEquals": (_like, False),
    "ArnLike": (_like, False),
    "ArnNotEquals": (_like, True),
    "ArnNotLike": (_like, True),
    "Bool": (_same_truth, False),
    "IpAddress": (_in_network, False),
    "NotIpAddress": (_in_network, True),
    "DateEquals": (lambda value, has: _moment(has) == _moment(value), False),
    "DateNotEquals": (lambda value, has: _moment(has) == _moment(value), True),
    "DateLessThan": (lambda value, has: _moment(has) < _moment(value), False),
    "DateLessThanEquals": (lambda value, has: _moment(has) <= _moment(value), False),
    "DateGreaterThan": (lambda value, has: _moment(has) > _moment(value), False),
    "DateGreaterThanEquals": (lambda value, has: _moment(has) >= _moment(value), False),
}
"""How a value is compared, and whether the condition holds when none of its values fits."""


def hold(conditions: Any, circumstances: Mapping[str, str], unsure: bool) -> bool:
    """`unsure` is the answer to what is not understood. What surely does not hold goes before that."""
    if not isinstance(conditions, dict):
        return unsure
    understood = True
    for operator, wanted in conditions.items():
        if not isinstance(wanted, dict):
            understood = False
            continue
        for name, given in wanted.items():
            holds = _holds(str(operator), str(name).lower(), given, circumstances)
            if holds is False:
                return False
            understood = understood and holds is not None
    return understood or unsure


def _holds(operator: str, name: str, given: Any, circumstances: Mapping[str, str]) -> bool | None:
    values = _values(given)
    if name not in KNOWN or values is None:
        return None
    has = circumstances.get(name)
    if operator == NULL:
        return any(value.lower() == ("true" if has is None else "false") for value in values)
    known = OPERATORS.get(operator.removesuffix(IF_EXISTS))
    if known is None:
        return None
    fits, forbids = known
    if has is None:
        return forbids or operator.endswith(IF_EXISTS)
    try:
        return any(fits(value, in_region_of(value, has)) for value in values) is not forbids
    except Unclear:
        return None


def _values(given: Any) -> list[str] | None:
    """JSON's own words are taken for texts: `true` is written without quotes too."""
    several = given if isinstance(given, list) else [given]
    texts = []
    for one in several:
        if isinstance(one, bool):
            texts.append("true" if one else "false")
        elif isinstance(one, str | int | float):
            texts.append(str(one))
        else:
            return None
    return texts
