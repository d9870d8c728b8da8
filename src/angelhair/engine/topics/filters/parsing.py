"""From the text of a filter policy to a tree of conditions; what is wrong with it is said in the words of SNS."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from ipaddress import ip_network
from typing import Any, NamedTuple

from angelhair import limits
from angelhair.engine.topics.filters.conditions import (
    AnythingBut,
    Cidr,
    Condition,
    EqualsIgnoringCase,
    Exactly,
    Exists,
    Numeric,
    Prefix,
    Suffix,
    Wildcard,
    number_of,
)
from angelhair.engine.topics.filters.reading import MISSING, decoded

OR = "$or"


class InvalidFilterPolicy(ValueError):
    """Its text is the reason, as SNS gives it."""


class Branch(NamedTuple):
    """An object of the policy: all of it must hold."""

    leaves: dict[str, tuple[Condition, ...]]
    branches: dict[str, Branch]
    choices: tuple[tuple[Branch, ...], ...]
    """Of each, one must hold."""


def parse(text: str, nested: bool) -> Branch:
    """`nested`: the policy is about bodies, and goes as deep as they do."""
    if len(text.encode()) > limits.FILTER_POLICY_BYTES:
        raise InvalidFilterPolicy(f"Filter policy is longer than {limits.FILTER_POLICY_BYTES} bytes")
    policy = decoded(text)
    if policy is MISSING:
        raise InvalidFilterPolicy("failed to parse JSON.")
    if not isinstance(policy, dict):
        raise InvalidFilterPolicy("Filter is not an object")
    parser = _Parser(nested)
    tree, combinations = parser.branch(policy, 1)
    if len(parser.keys) > limits.FILTER_KEYS:
        raise InvalidFilterPolicy(f"Filter policy can not have more than {limits.FILTER_KEYS} keys")
    if combinations > limits.FILTER_COMBINATIONS:
        raise InvalidFilterPolicy("Filter policy is too complex")
    return tree


class _Parser:
    def __init__(self, nested: bool) -> None:
        self._nested = nested
        self.keys: set[str] = set()

    def branch(self, policy: dict[str, Any], depth: int, path: str = "") -> tuple[Branch, int]:
        """The tree, and how many combinations of values it allows: what SNS bounds."""
        if depth > limits.FILTER_DEPTH:
            raise InvalidFilterPolicy("Filter policy is nested too deeply")
        tree = Branch({}, {}, ())
        choices = []
        combinations = 1
        for key, value in policy.items():
            here = f"{path}.{key}"
            if key == OR and _is_choice(value):
                parsed = [self.branch(choice, depth, path) for choice in value]
                choices.append(tuple(choice for choice, _ in parsed))
                combinations *= sum(count for _, count in parsed)
            elif isinstance(value, dict):
                if not self._nested:
                    raise InvalidFilterPolicy(
                        "Filter policy scope MessageAttributes does not support nested filter policy"
                    )
                if not value:
                    raise InvalidFilterPolicy("Empty objects are not allowed")
                tree.branches[key], count = self.branch(value, depth + 1, here)
                combinations *= count
            elif isinstance(value, list):
                if not value:
                    raise InvalidFilterPolicy("Empty arrays are not allowed")
                self.keys.add(here)
                tree.leaves[key] = tuple(_condition(item) for item in value)
                combinations *= len(value) * depth
            else:
                raise InvalidFilterPolicy(f'"{key}" must be an object or an array')
        return tree._replace(choices=tuple(choices)), combinations


def _is_choice(value: Any) -> bool:
    """Else `$or` is the name of a key, as in policies that are older than the operator."""
    return (
        isinstance(value, list) and len(value) > 1 and all(isinstance(item, dict) and item for item in value)
        and not any(key in _OPERATORS for item in value for key in item)
    )


def _condition(item: Any) -> Condition:
    if not isinstance(item, dict):
        return _exactly(item)
    if len(item) != 1:
        raise InvalidFilterPolicy("Only one key allowed in match expression")
    ((name, value),) = item.items()
    parse_value = _OPERATORS.get(name)
    if parse_value is None:
        raise InvalidFilterPolicy(f"Unrecognized match type {name}")
    return parse_value(value, name)


def _exactly(item: Any) -> Condition:
    if isinstance(item, Decimal):
        return Exactly(_number(item))
    if isinstance(item, str | bool) or item is None:
        return Exactly(item)
    raise InvalidFilterPolicy("Match value must be String, number, true, false, or null")


def _number(value: Any) -> Decimal:
    number = number_of(str(value))
    if number is None:
        most = limits.FILTER_NUMBER_MAXIMUM
        raise InvalidFilterPolicy(f"Numeric values must be between {-most} and {most} inclusive")
    return number


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidFilterPolicy(f"{name} match pattern must be a string")
    if not value:
        raise InvalidFilterPolicy(f"{name} match pattern must not be empty")
    return value


def _prefix(value: Any, name: str) -> Condition:
    return Prefix(_text(value, name))


def _suffix(value: Any, name: str) -> Condition:
    return Suffix(_text(value, name))


def _equals_ignore_case(value: Any, name: str) -> Condition:
    if not isinstance(value, str):
        raise InvalidFilterPolicy(f"{name} match pattern must be a string")
    return EqualsIgnoringCase(value.casefold())


def _wildcard(value: Any, name: str) -> Condition:
    """A star stands for any text; a backslash makes a star, or a backslash, mean itself."""
    text = _text(value, name)
    pieces, piece, characters, after_star = [], "", iter(text), False
    for character in characters:
        if character == "*":
            if after_star:
                raise InvalidFilterPolicy("Consecutive wildcard characters are not allowed")
            pieces.append(piece)
            piece = ""
        elif character == "\\":
            escaped = next(characters, "")
            if escaped not in ("*", "\\"):
                raise InvalidFilterPolicy("Invalid escape character in a wildcard match pattern")
            piece += escaped
        else:
            piece += character
        after_star = character == "*"
    if not pieces:
        return Exactly(piece)
    return Wildcard((*pieces, piece))


def _cidr(value: Any, name: str) -> Condition:
    text = _text(value, name)
    if "/" not in text:
        raise InvalidFilterPolicy("Malformed CIDR, one '/' required")
    try:
        return Cidr(ip_network(text, strict=False))
    except ValueError:
        raise InvalidFilterPolicy("Malformed CIDR, it is no network of addresses") from None


def _exists(value: Any, name: str) -> Condition:
    if not isinstance(value, bool):
        raise InvalidFilterPolicy(f"{name} match pattern must be either true or false.")
    return Exists(value)


_COMPARISONS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}
_ONE_COMPARISON, _TWO_COMPARISONS = 2, 4
"""Members of a numeric match: an operator and its number, once or twice."""


def _numeric(value: Any, name: str) -> Condition:
    if not isinstance(value, list):
        raise InvalidFilterPolicy(f"Value of {name} must be an array.")
    if not value:
        raise InvalidFilterPolicy("Invalid member in numeric match: ]")
    if len(value) > _TWO_COMPARISONS:
        raise InvalidFilterPolicy("Too many elements in numeric expression")
    if len(value) not in (_ONE_COMPARISON, _TWO_COMPARISONS):
        raise InvalidFilterPolicy(f"Value of {value[-1]} must be numeric")
    comparisons = []
    for sign, bound in zip(value[::2], value[1::2], strict=True):
        if not isinstance(sign, str):
            raise InvalidFilterPolicy(f"Invalid member in numeric match: {sign}")
        if sign not in _COMPARISONS:
            raise InvalidFilterPolicy(f"Unrecognized numeric range operator: {sign}")
        if not isinstance(bound, Decimal):
            raise InvalidFilterPolicy(f"Value of {sign} must be numeric")
        comparisons.append((sign, _number(bound)))
    if len(comparisons) > 1:
        (low_sign, low), (high_sign, high) = comparisons
        if low_sign not in (">", ">="):
            is_whole = low_sign == "="
            raise InvalidFilterPolicy(
                "Too many terms in numeric range" if is_whole else f"Bad numeric range operator: {low_sign}"
            )
        if high_sign not in ("<", "<="):
            raise InvalidFilterPolicy(f"Bad numeric range operator: {high_sign}")
        if low >= high:
            raise InvalidFilterPolicy("Bottom must be less than top")
    return Numeric(tuple((_COMPARISONS[sign], bound) for sign, bound in comparisons))


def _anything_but(value: Any, name: str) -> Condition:
    if isinstance(value, dict):
        if len(value) != 1 or next(iter(value)) not in _UNDER_ANYTHING_BUT:
            raise InvalidFilterPolicy(f"Unsupported {name} pattern: {next(iter(value), '')}")
        ((inner, wanted),) = value.items()
        each = wanted if isinstance(wanted, list) else [wanted]
        if not each:
            raise InvalidFilterPolicy("Empty arrays are not allowed")
        return AnythingBut(tuple(_OPERATORS[inner](one, inner) for one in each))
    unwanted = value if isinstance(value, list) else [value]
    if not unwanted:
        raise InvalidFilterPolicy("Empty arrays are not allowed")
    if not all(isinstance(item, str) for item in unwanted) and not all(isinstance(item, Decimal) for item in unwanted):
        raise InvalidFilterPolicy(
            f"Inside {name} list, either all values are number or string, mixed type is not supported"
        )
    return AnythingBut(tuple(_exactly(item) for item in unwanted))


_OPERATORS: dict[str, Callable[[Any, str], Condition]] = {
    "anything-but": _anything_but,
    "cidr": _cidr,
    "equals-ignore-case": _equals_ignore_case,
    "exists": _exists,
    "numeric": _numeric,
    "prefix": _prefix,
    "suffix": _suffix,
    "wildcard": _wildcard,
}
_UNDER_ANYTHING_BUT = ("prefix", "suffix", "equals-ignore-case", "wildcard")
