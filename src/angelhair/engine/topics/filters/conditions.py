"""One condition of a filter policy, and whether a single value fulfils it.

Values are text, numbers (as `Decimal`), true, false and null. Of what is not there, only `exists` can be fulfilled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import NamedTuple

from angelhair import limits

Value = str | Decimal | bool | None
Network = IPv4Network | IPv6Network

_PLACES = Decimal(1).scaleb(-limits.FILTER_DECIMALS)


def number_of(text: str) -> Decimal | None:
    """As exact as policies are; None when it is no number, or beyond what policies compare."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    # In this order: what is no number has no size.
    if not number.is_finite() or abs(number) > limits.FILTER_NUMBER_MAXIMUM:
        return None
    return number.quantize(_PLACES)


class Exactly(NamedTuple):
    value: Value

    def fulfilled_by(self, value: Value) -> bool:
        return type(value) is type(self.value) and value == self.value


class Prefix(NamedTuple):
    start: str

    def fulfilled_by(self, value: Value) -> bool:
        return isinstance(value, str) and value.startswith(self.start)


class Suffix(NamedTuple):
    end: str

    def fulfilled_by(self, value: Value) -> bool:
        return isinstance(value, str) and value.endswith(self.end)


class EqualsIgnoringCase(NamedTuple):
    folded: str

    def fulfilled_by(self, value: Value) -> bool:
        return isinstance(value, str) and value.casefold() == self.folded


class Wildcard(NamedTuple):
    """The pieces of text between the stars. They are looked for from left to right, each once: no pattern is slow."""

    pieces: tuple[str, ...]

    def fulfilled_by(self, value: Value) -> bool:
        if not isinstance(value, str):
            return False
        first, *middle, last = self.pieces
        if len(value) < len(first) + len(last) or not (value.startswith(first) and value.endswith(last)):
            return False
        at, end = len(first), len(value) - len(last)
        for piece in middle:
            found = value.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True


class Cidr(NamedTuple):
    network: Network

    def fulfilled_by(self, value: Value) -> bool:
        if not isinstance(value, str):
            return False
        try:
            return ip_address(value) in self.network
        except ValueError:
            return False


class Numeric(NamedTuple):
    """All of the comparisons hold."""

    comparisons: tuple[tuple[Callable[[Decimal, Decimal], bool], Decimal], ...]

    def fulfilled_by(self, value: Value) -> bool:
        return isinstance(value, Decimal) and all(compare(value, bound) for compare, bound in self.comparisons)


class AnythingBut(NamedTuple):
    """There is a value, and it is none of these."""

    unwanted: tuple[Condition, ...]

    def fulfilled_by(self, value: Value) -> bool:
        return not any(condition.fulfilled_by(value) for condition in self.unwanted)


class Exists(NamedTuple):
    wanted: bool

    def fulfilled_by(self, _value: Value) -> bool:
        return self.wanted


Condition = Exactly | Prefix | Suffix | EqualsIgnoringCase | Wildcard | Cidr | Numeric | AnythingBut | Exists


def fulfilled(conditions: Sequence[Condition], values: Sequence[Value] | None) -> bool:
    """Whether one of the values fulfils one of the conditions; None when there is nothing to look at."""
    if not values:
        return any(isinstance(condition, Exists) and not condition.wanted for condition in conditions)
    return any(condition.fulfilled_by(value) for condition in conditions for value in values)
